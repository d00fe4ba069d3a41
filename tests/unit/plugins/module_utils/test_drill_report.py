"""What a drill plays, and what its figures say about the plan."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils import _drill_report, _pair
from support.plans.pairs import pair


def seen(outage=20.0, silence=None, before="lb1", after="lb2", **changes):
    moves = [
        {"at_ms": 0.0, "holders": [before]},
        {"at_ms": 2000.0, "holders": []},
        {"at_ms": 2010.0, "holders": [after]},
    ]
    good = {
        "takeover": {"outage_ms": outage, "silence_ms": silence or outage + 5},
        "comeback": {"outage_ms": 3.0},
        "tried": 1000,
        "failed_attempts": 4,
        "most_holders": 1,
        "two_holders_ms": 0,
        "no_holder_ms": 10,
        "holders_known": True,
        "holder_before": before,
        "holder_after": before,
        "timeline": [*moves, {"at_ms": 5000.0, "holders": [before]}],
    }
    return {**good, **changes}


def played(*seens, event="haproxy_killed", limit=72, moves=True, member="lb1", **foreseen):
    line = {"before": "lb1", "after": "lb2" if moves else "lb1", "outage_ms": limit, "back": "lb1", "back_ms": 60}
    return [
        {
            "vip": "192.0.2.10",
            "event": event,
            "foreseen": {**line, **foreseen},
            "holder": "lb1",
            "member": member,
            "seen": item,
        }
        for item in seens
    ]


def row(*args, **kwargs):
    return _drill_report.report(played(*args, **kwargs))["rows"][0]


def test_every_event_is_played_on_every_vip_in_the_order_asked_for():
    plan = _pair.plan(pair(vips=["192.0.2.10", "192.0.2.11"]))
    rounds = _drill_report.rounds(plan, ["host_cut", "haproxy_killed"], 2)
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
    for item in _drill_report.rounds(_pair.plan(pair()), ["host_cut", "haproxy_killed"], 1):
        assert item["undo_after"] * 1000 > item["foreseen"]["outage_ms"]
        assert item["duration"] > item["minimum"] > item["undo_after"] + item["after"]


def test_without_preemption_the_event_is_played_wherever_the_vip_is():
    plan = _pair.plan(pair(preempt=False))
    assert {found["holder"] for found in _drill_report.rounds(plan, ["haproxy_killed", "host_cut"], 1)} == {""}


def test_the_median_is_judged_and_the_worst_is_shown():
    found = row(seen(20), seen(90), seen(30))
    assert (found["outage_ms"], found["worst_ms"], found["faults"]) == (30, 90, [])


def test_an_outage_longer_than_planned_fails():
    assert row(seen(73))["faults"] == ["the VIP was gone for 73 ms, the plan says at most 72 ms."]


def test_connections_that_are_only_late_count_too():
    assert row(seen(20, silence=80))["faults"] == []
    assert row(seen(20, silence=400))["faults"] == ["nothing answered for 400 ms, the plan says at most 72 ms."]


def test_a_reload_may_lose_nothing():
    stays = {"after": "lb1", "event": "haproxy_reloaded"}
    assert row(seen(0.0, after="lb1"), event=stays["event"], limit=0, moves=False)["faults"] == []
    assert row(seen(5.0, after="lb1"), event=stays["event"], limit=0, moves=False)["faults"]


def test_a_vip_that_stays_where_it_should_leave_fails():
    assert row(seen(0.0, after="lb1"))["faults"] == ["the VIP stayed on lb1."]


def test_a_vip_that_goes_elsewhere_than_planned_fails():
    assert row(seen(after="lb3"))["faults"] == ["the VIP was on lb3, the plan says lb2."]
    assert row(seen(holder_after="lb2"))["faults"] == ["after the return the VIP was on lb2, the plan says lb1."]
    assert row(seen(comeback={"outage_ms": 61.0}))["faults"] == [
        "the return took 61.0 ms, the plan says at most 60 ms."
    ]


def test_a_harmless_failure_is_watched_for_longer_than_any_check_takes():
    plan = _pair.plan(pair())
    plan["outages"].append({**plan["outages"][-1], "event": "server_lost", "outage_ms": 60})
    (found,) = _drill_report.rounds(plan, ["server_lost"], 1)
    assert found["undo_after"] > 10


def test_where_nobody_preempts_any_member_may_have_been_the_holder():
    there = {"before": "lb2", "after": "lb1", "holder_after": "lb1"}
    assert row(seen(**there), member="lb2", back="lb2", back_ms=0)["faults"] == []
    stays = seen(**{**there, "after": "lb2"})
    assert row(stays, member="lb2", back="lb2", back_ms=0)["faults"] == ["the VIP stayed on lb2."]


def test_the_return_is_watched_for_as_long_as_the_preemption_may_wait():
    slow, usual = (_drill_report.rounds(_pair.plan(pair(preempt_delay=delay)), ["host_cut"], 1)[0] for delay in (60, 0))
    assert slow["duration"] - usual["duration"] == 60


def test_a_killed_keepalived_may_be_back_before_anybody_misses_it():
    assert row(seen(0.0, after="lb1"), event="keepalived_killed", limit=3072)["faults"] == []


def test_a_probe_that_began_too_late_is_no_measurement():
    assert "nothing was measured" in row(seen(before="lb2", after="lb1"))["faults"][0]


def test_a_round_that_came_too_late_does_not_count_beside_others():
    found = row(seen(500, before="lb2", after="lb1"), seen(20), seen(30))
    assert (found["outages_ms"], found["faults"]) == ([20, 30], [])


def test_most_of_the_measurements_say_whether_the_vip_stayed():
    stays = seen(0.0, after="lb1")
    assert row(stays, seen(20), seen(30))["faults"] == []
    assert row(stays, seen(20))["faults"] == []
    assert row(stays, stays, seen(30))["faults"] == ["the VIP stayed on lb1."]


def test_what_breaks_the_plan_is_measured_three_times_before_it_is_blamed():
    good, bad = played(seen()), played(seen(3000), event="host_cut")
    again = _drill_report.in_doubt([*good, *bad])
    assert [(item["event"], item["repeat"]) for item in again] == [("host_cut", 2), ("host_cut", 3)]
    assert not {"member", "seen"} & set(again[0])
    assert _drill_report.in_doubt(bad * 3) == []


def test_an_unknown_holder_is_shown_as_such_and_the_outage_still_counts():
    blind = seen(99, holders_known=False, holder_before=None, timeline=[])
    found = _drill_report.report(played(blind))
    assert "unknown" in found["table"][2]
    assert len(found["faults"]) == 1


def test_the_table_has_a_line_for_each_event_and_its_columns_stand_in_line():
    report = _drill_report.report([*played(seen()), *played(seen(3000), event="host_cut", limit=3072)])
    assert len(report["table"]) == 4
    assert len({len(line) for line in report["table"]}) == 1
    assert "| haproxy killed | lb1    | lb2   | 20 ms" in report["table"][2]


def test_members_are_known_by_all_their_addresses_on_the_wire():
    assert _drill_report.members_by_mac(pair())[0] == {
        "name": "lb1",
        "macs": ["02:00:00:00:00:01"],
    }
