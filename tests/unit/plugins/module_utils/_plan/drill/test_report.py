"""The rounds of a drill, and what its measurements say about the plan."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import report
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import rounds as drill
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.drills import ASKED
from support.plans.pairs import pair

MEMBERS = pair()


def planned(**settings):
    """A pair's plan as the filter gives it."""
    return as_data(_pair.plan(pair(**settings)))


def seen(outage=20.0, gap=None, before="lb1", after="lb2", **changes):
    moves = [
        {"at_ms": 0.0, "holders": [before]},
        {"at_ms": 2000.0, "holders": []},
        {"at_ms": 2010.0, "holders": [after]},
    ]
    good = {
        "takeover": {"outage_ms": outage, "response_gap_ms": gap or outage + 5},
        "failback": {"outage_ms": 3.0},
        "tried": 1000,
        "failed_attempts": 4,
        "lasting": {"held": 20, "lost": 19},
        "most_holders": 1,
        "two_holders_ms": 0,
        "no_holder_ms": 10,
        "holders_known": True,
        "holder_before": before,
        "holder_after": before,
        "timeline": [*moves, {"at_ms": 5000.0, "holders": [before]}],
    }
    return {**good, **changes}


def results(*seens, event="haproxy_killed", limit=72, moves=True, member="lb1", **forecast):
    line = {"before": "lb1", "after": "lb2" if moves else "lb1", "outage_ms": limit, "back": "lb1", "back_ms": 60}
    line["two_holders_ms"] = 0
    return [
        {
            **ASKED,
            "vip": "192.0.2.10",
            "event": event,
            "forecast": {**line, **forecast},
            "holder": "lb1",
            "member": member,
            "interval_ms": 5.0,
            "seen": item,
        }
        for item in seens
    ]


def row(*args, **kwargs):
    return report.report(results(*args, **kwargs))["rows"][0]


def again_of(results):
    return report.report(results)["again"]


def fault(*args, **kwargs):
    """The one fault of a drill of a single round."""
    prefix, (told,) = "round 1 of 1: ", row(*args, **kwargs)["faults"]
    assert told.startswith(prefix)
    return told[len(prefix) :]


def test_every_event_is_injected_on_every_vip_in_the_order_asked_for():
    plan = planned(vips=["192.0.2.10", "192.0.2.11"])
    rounds = drill.rounds([plan], MEMBERS, ["host_cut", "haproxy_killed"], 2)
    assert [(r["event"], r["vip"], r["repeat"], r["holder"]) for r in rounds] == [
        ("host_cut", "192.0.2.10", 1, "lb1"),
        ("host_cut", "192.0.2.10", 2, "lb1"),
        ("host_cut", "192.0.2.11", 1, "lb2"),
        ("host_cut", "192.0.2.11", 2, "lb2"),
        ("haproxy_killed", "192.0.2.10", 1, "lb1"),
        ("haproxy_killed", "192.0.2.10", 2, "lb1"),
        ("haproxy_killed", "192.0.2.11", 1, "lb2"),
        ("haproxy_killed", "192.0.2.11", 2, "lb2"),
    ]


def test_a_failure_lasts_longer_than_the_vip_may_take_to_move():
    for item in drill.rounds([planned()], MEMBERS, ["host_cut", "haproxy_killed"], 1):
        assert item["revert_after"] * 1000 > item["forecast"]["outage_ms"]
        assert item["duration"] > item["minimum"] > item["revert_after"] + item["after"]


def test_before_a_round_the_pair_has_twice_the_time_in_which_a_round_may_settle():
    """The one before may have ended as late as it may, and something else may have happened on the way."""
    for item in drill.rounds([planned(preempt_delay=60)], MEMBERS, ["host_cut", "haproxy_killed"], 1):
        assert item["settle"] == 2 * (item["duration"] - item["minimum"])


def test_without_preemption_the_event_is_injected_wherever_the_vip_is():
    plan = planned(preempt=False)
    assert {found["holder"] for found in drill.rounds([plan], MEMBERS, ["haproxy_killed", "host_cut"], 1)} == {""}


def test_the_median_and_the_worst_are_shown():
    found = row(seen(20), seen(70), seen(30))
    assert (found["outage_ms"], found["worst_ms"], found["faults"]) == (30, 70, [])


def test_an_outage_longer_than_planned_fails():
    assert fault(seen(73)) == "the VIP was gone for 73 ms, the plan says at most 72 ms."


def test_connections_that_are_only_late_count_too():
    assert row(seen(20, gap=80))["faults"] == []
    assert fault(seen(20, gap=400)) == "nothing answered for 400 ms, the plan says at most 72 ms."


def test_a_reload_may_lose_nothing():
    stays = {"event": "haproxy_reloaded", "limit": 0, "moves": False}
    assert row(seen(0.0, after="lb1"), **stays)["faults"] == []
    assert fault(seen(5.0, after="lb1"), **stays) == "the VIP was gone for 5.0 ms, the plan says at most 0 ms."


def test_a_vip_that_stays_where_it_should_leave_fails():
    assert fault(seen(0.0, after="lb1")) == "the VIP stayed on lb1."


def test_a_vip_that_goes_elsewhere_than_planned_fails():
    assert fault(seen(after="lb3")) == "the VIP was on lb3, the plan says lb2."
    assert fault(seen(holder_after="lb2")) == "after the return the VIP was on lb2, the plan says lb1."
    assert fault(seen(failback={"outage_ms": 61.0})) == "the failback took 61.0 ms, the plan says at most 60 ms."


def test_two_holders_are_a_fault_unless_the_preempted_one_has_only_just_heard_of_the_other():
    assert row(seen(two_holders_ms=15.0))["faults"] == []
    assert fault(seen(two_holders_ms=15.1)) == "two members held the VIP for 15.1 ms, the plan says at most 0 ms."


def test_two_holders_for_as_long_as_the_plan_says_are_none():
    cut = {"event": "host_cut", "limit": 3072, "two_holders_ms": 1060}
    found = row(seen(two_holders_ms=1065.0), **cut)
    assert (found["two_holders_ms"], found["two_holders_limit_ms"], found["faults"]) == (1065.0, 1060, [])
    assert fault(seen(two_holders_ms=1065.1), **cut).startswith("two members held the VIP for 1065.1 ms")


def test_every_way_to_break_the_plan_is_told():
    bad = seen(73, two_holders_ms=99.0, after="lb3", failback={"outage_ms": 61.0})
    assert len(row(bad)["faults"]) == 4


FAULTY = {
    "outage": seen(73),
    "no answer": seen(20, gap=400),
    "stayed": seen(0.0, after="lb1"),
    "wrong holder": seen(after="lb3"),
    "wrong return": seen(holder_after="lb2"),
    "slow return": seen(failback={"outage_ms": 61.0}),
    "two holders": seen(two_holders_ms=30.0),
    "nothing measured": seen(before="lb2", after="lb1"),
}


@pytest.mark.parametrize("bad", FAULTY.values(), ids=FAULTY)
def test_of_three_rounds_one_may_be_faulty_and_is_told(bad):
    found = row(seen(), bad, seen())
    assert (found["rounds"], found["faulty"], found["faults"]) == (3, 1, [])
    assert found["broken"] == [f"round 2 of 3: {found['because']}"]
    assert found["because"]


@pytest.mark.parametrize("bad", FAULTY.values(), ids=FAULTY)
def test_two_faulty_rounds_of_three_fail_also_when_they_are_faulty_in_different_ways(bad):
    for other in FAULTY.values():
        assert len(row(bad, seen(), other)["faults"]) == 2


@pytest.mark.parametrize("rounds, may", [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (10, 3)])
def test_a_third_of_the_rounds_may_be_faulty_and_not_one_more(rounds, may):
    def judged(faulty):
        return row(*[seen(73)] * faulty, *[seen()] * (rounds - faulty))["faults"]

    assert judged(may) == []
    assert len(judged(may + 1)) == may + 1


def test_a_faulty_event_is_repeated_to_three_rounds_and_says_so():
    good, bad = results(seen()), results(seen(3000), event="host_cut")
    again = again_of([*good, *bad])
    assert [(item["event"], item["repeat"]) for item in again] == [("host_cut", 2), ("host_cut", 3)]
    assert not {"member", "seen"} & set(again[0])
    repeated = [{**item, "member": "lb1", "seen": seen()} for item in again]
    one, two = report.report([*good, *bad, *repeated])["rows"]
    assert (one["rounds"], one["repeated"], one["because"]) == (1, 0, "")
    because = "the VIP was gone for 3000 ms, the plan says at most 72 ms."
    assert (two["rounds"], two["repeated"], two["because"], two["faults"]) == (3, 2, because, [])


def test_rounds_that_were_asked_for_are_no_repeats():
    found = row(seen(), seen(73), seen())
    assert (found["rounds"], found["repeated"], found["faulty"]) == (3, 0, 1)


@pytest.mark.parametrize("rounds, again", [(1, 2), (2, 1), (3, 0), (10, 0)])
def test_no_event_runs_more_than_three_times_because_of_a_fault(rounds, again):
    assert len(again_of(results(*[seen(73)] * rounds))) == again
    assert again_of(results(*[seen()] * rounds)) == []


def test_a_harmless_failure_is_watched_for_longer_than_any_check_takes():
    plan = planned()
    (reload,) = (line for line in plan["outages"] if line["event"] == "haproxy_reloaded")
    plan["outages"].append({**reload, "event": "server_lost", "outage_ms": 60})
    (found,) = drill.rounds([plan], MEMBERS, ["server_lost"], 1)
    assert found["revert_after"] > 10


def test_without_preemption_any_member_may_have_been_the_holder():
    there = {"before": "lb2", "after": "lb1", "holder_after": "lb1"}
    assert row(seen(**there), member="lb2", back="lb2", back_ms=0)["faults"] == []
    stays = seen(**{**there, "after": "lb2"})
    assert fault(stays, member="lb2", back="lb2", back_ms=0) == "the VIP stayed on lb2."


def test_any_member_of_the_same_priority_may_win():
    there = {"after": "lb3", "holder_after": "lb3"}
    tied = {"back": "lb2", "back_ms": 0, "tied": ["lb3"]}
    assert row(seen(**there), **tied)["faults"] == []
    assert fault(seen(**there), back="lb2", back_ms=0) == "the VIP was on lb3, the plan says lb2."
    returns = seen(**{**there, "holder_after": "lb2"})
    assert fault(returns, **tied) == "after the return the VIP was on lb2, the plan says lb3."


def test_the_return_is_watched_for_as_long_as_the_preemption_may_wait():
    slow, usual = (drill.rounds([planned(preempt_delay=delay)], MEMBERS, ["host_cut"], 1)[0] for delay in (60, 0))
    assert slow["duration"] - usual["duration"] == 60


def test_a_killed_keepalived_may_be_back_before_its_peer_takes_over():
    assert row(seen(0.0, after="lb1"), event="keepalived_killed", limit=3072)["faults"] == []


@pytest.mark.parametrize("member", ["lb1", "lb2"])
def test_a_killed_haproxy_may_be_back_before_a_check_asks_for_it(member):
    """As in the presets upstream and ocp45, whose routers track no file."""
    stays = seen(20.0, before=member, after=member)
    assert row(stays, limit=4708, member=member)["faults"] == []
    assert fault(stays, limit=72, member=member) == f"the VIP stayed on {member}."
    assert fault(stays, limit=4708, member=member, event="haproxy_stopped") == f"the VIP stayed on {member}."


def test_a_probe_that_began_too_late_is_no_measurement():
    assert "nothing was measured" in fault(seen(before="lb2", after="lb1"))


def test_a_round_that_came_too_late_has_no_part_in_the_figures():
    assert row(seen(500, before="lb2", after="lb1"), seen(20), seen(30))["outages_ms"] == [20, 30]


def test_an_unknown_holder_is_shown_as_such_and_the_outage_still_counts():
    blind = seen(99, holders_known=False, holder_before=None, timeline=[])
    found = report.report(results(blind))
    assert "unknown" in found["table"][2]
    assert len(found["faults"]) == 1


def test_the_table_has_a_line_for_each_event_and_its_columns_stand_in_line():
    found = report.report([*results(seen()), *results(seen(3000), event="host_cut", limit=3072)])
    assert len(found["table"]) == 4
    assert len({len(line) for line in found["table"]}) == 1
    assert "| haproxy killed | TLS at 8443 | lb1    | lb2   | 20 ms" in found["table"][2]


def test_a_failure_that_the_holder_survives_beside_another_lasts_as_long_as_the_plan_says():
    (found,) = drill.rounds([planned()], MEMBERS, ["vrrp_lost"], 1)
    assert found["revert_after"] == found["forecast"]["lasts_ms"] / 1000 > 3.072


def test_the_table_says_how_many_lasting_connections_a_row_cost():
    found = report.report(results(seen(), seen(lasting={"held": 18, "lost": 0})))
    assert (found["rows"][0]["lasting_lost"], found["rows"][0]["lasting_held"]) == (19, 38)
    at = [cell.strip() for cell in found["table"][0].split("|")].index("long-lived lost")
    assert found["table"][2].split("|")[at].strip() == "19 of 38"


def test_the_table_says_how_often_a_row_was_repeated_and_why():
    first = results(seen(two_holders_ms=30.0))
    again = [{**item, "member": "lb1", "seen": seen()} for item in again_of(first)]
    because = "two members held the VIP for 30.0 ms, the plan says at most 0 ms."
    for rounds, head, cells in (
        (results(seen()), ["two holders (allowed)", "failed rounds"], ["0 ms (0 ms)", "0 of 1"]),
        (
            [*first, *again],
            ["two holders (allowed)", "failed rounds", "extra rounds", "reason"],
            ["30 ms (0 ms)", "1 of 3", "2", because],
        ),
    ):
        lines = report.report(rounds)["table"]
        columns = [[cell.strip() for cell in text.strip("|").split("|")][-len(head) :] for text in lines[::2]]
        assert columns == [head, cells]


def over_budget(*seens, budget=100, own=None, event="haproxy_killed"):
    return report.report(results(*seens, event=event, limit=5000), budget, own)["faults"]


def test_an_event_over_its_budget_is_one_sentence_however_many_rounds_were():
    assert over_budget(seen(101), seen(20), seen(900)) == [
        "192.0.2.10, haproxy_killed: the VIP was not served for 900 ms, drill_budget is 100 ms."
    ]
    assert over_budget(seen(100), seen(20)) == []


@pytest.mark.parametrize(
    "slow, takes",
    [(seen(20, gap=300), 285), (seen(20, failback={"outage_ms": 250.5}), 250.5)],
    ids=["connections that only wait", "the return"],
)
def test_a_budget_is_spent_by_whatever_leaves_the_vip_unserved(slow, takes):
    (told,) = [each for each in over_budget(slow) if "drill_budget" in each]
    assert f"not served for {takes:g} ms" in told


@pytest.mark.parametrize("none", [0, None, ""])
def test_no_budget_is_none(none):
    assert over_budget(seen(4000), budget=none) == []


def test_an_event_may_have_a_budget_of_its_own_or_none():
    assert over_budget(seen(900), own={"haproxy_killed": 3500, "host_cut": 1}) == []
    assert over_budget(seen(900), own={"haproxy_killed": 0}) == []
    (told,) = over_budget(seen(900), budget=0, own={"haproxy_killed": "50"})
    assert told.endswith("drill_budgets.haproxy_killed is 50 ms.")


def not_measured(*seens, budget=0, **more):
    words = {"port": 5000, "words": "connects only"}
    given = [{**item, "question": words, "measured": False} for item in results(*seens, event="haproxy_hung", **more)]
    return report.report(given, budget)


def test_where_the_probe_does_not_measure_an_event_the_row_says_so_and_has_no_figure():
    found = not_measured(seen(0.0), limit=2622)
    (one,) = found["rows"]
    none = ("outage_ms", "worst_ms", "unserved_ms", "response_gap_ms")
    assert [one[key] for key in none] == [None] * 4 and one["outages_ms"] == one["took_ms"] == []
    head, _line, cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in found["table"]]
    told = dict(zip(head, cells))
    assert [told[name] for name in ("probe", "outage", "longest gap", "worst", "allowed")] == [
        "connects only",
        *["not measured"] * 3,
        "2622 ms",
    ]


def test_what_is_not_measured_breaks_no_bound_but_the_holders_are_still_judged():
    assert not_measured(seen(9000.0))["faults"] == []
    (told,) = not_measured(seen(0.0, after="lb3"))["faults"]
    assert told.endswith("the VIP was on lb3, the plan says lb2.")


def test_a_budget_of_what_is_not_measured_fails_and_says_what_would_measure_it():
    assert not_measured(seen(0.0), budget=500)["faults"] == [
        "192.0.2.10, haproxy_hung: for how long the VIP was not served is not measured (connects only), drill_budget "
        "is 500 ms: set drill_send to something that the service answers."
    ]


def test_the_worst_round_is_the_longest_wait_for_an_answer_too():
    found = row(seen(20, gap=60), seen(20, gap=400))
    assert (found["outage_ms"], found["took_ms"], found["worst_ms"]) == (20, [45, 385], 385)
    reload = row(seen(0.0, gap=30, after="lb1"), event="haproxy_reloaded", limit=0, moves=False)
    assert (reload["worst_ms"], reload["faults"]) == (0, [])


def test_a_row_says_what_was_asked_and_who_might_hold_the_vip():
    found = row(seen())
    assert (found["asks"], found["members"]) == ("TLS at 8443", {"lb1": "native", "lb2": "native"})


def test_each_round_has_a_row_of_its_own():
    found = report.each_round(results(seen(20), seen(70)))
    assert [(each["outage_ms"], each["rounds"]) for each in found] == [(20, 1), (70, 1)]


def test_members_are_known_by_all_their_addresses_on_the_wire():
    (found,) = drill.rounds([planned()], MEMBERS, ["host_cut"], 1)
    assert found["members"][0] == {"name": "lb1", "macs": ["02:00:00:00:00:01"]}


def test_a_host_that_reboots_is_waited_for_and_no_other():
    reboot, cut = (drill.rounds([planned()], MEMBERS, [event], 1)[0] for event in ("host_rebooted", "host_cut"))
    assert (reboot["boots_for"], cut["boots_for"]) == (drill.BOOT_TIMEOUT, 0)
    assert reboot["duration"] > drill.BOOT_TIMEOUT > cut["duration"]
    assert reboot["minimum"] < 10


def test_an_event_happens_on_the_interface_that_carries_the_vip():
    plan = planned(vips=["192.0.2.10", "192.0.2.11"])
    for member in plan["members"].values():
        member["router"]["instances"][1]["interface"] = "eth1"
    found = {round_["vip"]: round_["targets"] for round_ in drill.rounds([plan], MEMBERS, ["port_down"], 1)}
    assert found["192.0.2.10"] == dict.fromkeys(("lb1", "lb2"), {"engine": "native", "interface": "eth0"})
    assert found["192.0.2.11"]["lb2"]["interface"] == "eth1"


def test_where_vrrp_has_a_link_of_its_own_an_event_knows_both():
    plan = planned()
    plan["members"]["lb1"]["router"]["instances"][0].update(interface="eth1", addresses=["192.0.2.10/32 dev eth0"])
    found = drill.rounds([plan], MEMBERS, ["host_cut"], 1)[0]["targets"]
    assert found["lb1"] == {"engine": "native", "interface": "eth0", "vrrp_interface": "eth1"}
    assert found["lb2"] == {"engine": "native", "interface": "eth0"}


@pytest.mark.parametrize("preempt, members", [(True, ["lb1"]), (False, ["lb1", "lb2"])])
def test_each_member_that_may_have_an_event_is_asked_for_it_once(preempt, members):
    asked = drill.asked(drill.rounds([planned(preempt=preempt)], MEMBERS, ["host_cut", "link_flapping"], 2))
    assert [(each["event"], each["member"]) for each in asked] == [
        (event, member) for event in ("host_cut", "link_flapping") for member in members
    ]
    target = {"engine": "native", "interface": "eth0", "flap_seconds": 1.0}
    assert all(target.items() <= each.items() for each in asked)


def test_an_event_that_a_member_cannot_have_is_named_with_the_member_and_the_reason():
    item = {"event": "port_down", "member": "lb1"}
    refused = {"item": item, "failed": True, "msg": "eth0 has no link: its port cannot go down."}
    assert drill.refusals([{"item": item, "changed": True}, refused]) == [
        "port_down is not for lb1: eth0 has no link: its port cannot go down."
    ]
    assert drill.refusals([{"item": item, "unreachable": True, "msg": "no route"}]) == [
        "port_down is not for lb1: no route"
    ]


def test_servers_are_slow_for_less_long_than_the_plan_allows_for_answers():
    (found,) = drill.rounds([planned()], MEMBERS, ["slow_backend"], 1)
    assert found["revert_after"] * 1000 < found["forecast"]["outage_ms"]
    assert found["forecast"]["before"] == found["forecast"]["after"] == "lb1"
