# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill of a lost server: which may be lost, what is forecast of it, and what the measurements say about that."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import lost_servers, report, rounds
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import servers
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, events
from support.drills import ASKED
from support.plans.clusters import cluster
from support.plans.pairs import pair

VIP = "192.0.2.10"
SERVERS = ["192.0.2.31", "192.0.2.32"]
HTTP = {"name": "web", "port": 80, "servers": SERVERS, "check": {"type": "http"}}
both_engines = pytest.mark.parametrize("engine", [engines.NATIVE, engines.AGENT])
each_event = pytest.mark.parametrize("event", events.ON_SERVER)
GOOD = {"late": 0, "failed": 0, "open": 0, "window_ms": 0.0, "attempts": 0, "worst_ms": 9.0, "usual_ms": 2.0}


def planned(members, layout=_pair):
    plan = layout.plan(members)
    assert plan.faults == []
    return as_data(plan)


def of_services(*services, **settings):
    return pair(masters=[], infra_nodes=[], services=[*services], **settings)


def lines(members, layout=_pair):
    found = lost_servers.lines(planned(members, layout), members, events.ON_SERVER, "")
    return {line["event"]: line for line in found}


def seen(**states):
    """What `member_info` returned of the holder, whose balancer has these servers in other states than up."""
    others = [{"service": "web", "name": name, "state": state} for name, state in states.items()]
    return [
        {"item": "lb1", "servers": {"others": others}},
        {"item": "lb2", "servers": {"others": []}},
        {"failed": True},
    ]


THREE = {**HTTP, "servers": [{"name": name, "address": f"192.0.2.3{at}"} for at, name in enumerate("abc", 1)]}


def promised(found, engine=engines.NATIVE, service=THREE):
    members = of_services(service, engine=engine)
    plan = planned(members)
    every = lost_servers.lines(plan, members, events.ON_SERVER, "", found)
    assert (every == []) == bool(lost_servers.refusals([plan], members, events.ON_SERVER, "", found))
    return {line["event"]: line for line in every}


@both_engines
@pytest.mark.parametrize(
    "found, share, up",
    [
        ([], 33, ""),
        ([{"item": "lb1", "unreachable": True}], 33, ""),
        (seen(), 33, ""),
        (seen(b="not checked yet"), 33, ""),
        (seen(c="down"), 50, "2 of 3 servers up"),
        (seen(c="maint"), 50, "2 of 3 servers up"),
        (seen(c="late"), 50, "2 of 3 servers up"),
        (seen(a="late", b="late", c="late"), 33, "3 of 3 servers up"),
    ],
)
def test_the_share_is_one_of_the_servers_that_are_up(engine, found, share, up):
    line = promised(found, engine)[events.SERVER_CUT]
    assert (line["promise"]["late"] + line["promise"]["failed"], line["up"]) == (share, up)


@both_engines
def test_the_server_that_is_lost_is_one_that_is_up(engine):
    heavy = {**THREE, "servers": [{**server, "weight": 9 - at} for at, server in enumerate(THREE["servers"])]}
    line = promised(seen(a="down"), engine, heavy)[events.SERVER_CUT]
    assert line["server"]["services"] == {"web": ["b"]} and line["promise"]["late"] == 53


def test_haproxy_waits_before_the_only_other_one_that_is_up():
    ended = [promised(found)[events.SERVER_ENDED]["promise"] for found in (seen(), seen(c="down"))]
    assert [promise["worst"] for promise in ended] == [0, 1000]


def test_the_last_one_that_is_up_is_never_lost():
    found = seen(b="down", c="drain")
    members = of_services(THREE)
    said = lost_servers.refusals([planned(members)], members, [events.SERVER_CUT], "", found)
    assert said == [f"server_cut is not for {VIP}: web has no second active server (1 of 3 servers up)."]


def refusals(*services, wanted=events.ON_SERVER, **settings):
    members = of_services(*services, **settings)
    return lost_servers.refusals([planned(members)], members, wanted, "")


def test_each_event_of_a_server_has_a_forecast():
    assert set(lost_servers.FORECAST_AS) == set(events.ON_SERVER)


@both_engines
@pytest.mark.parametrize("layout", ["pair", "ipi"])
def test_each_line_has_what_the_forecast_says_of_the_service_that_is_asked(engine, layout):
    members = of_services(HTTP, engine=engine) if layout == "pair" else cluster(engine=engine)
    plan = planned(members, _pair if layout == "pair" else _ipi)
    found = lost_servers.lines(plan, members, events.ON_SERVER, "")
    assert [line["event"] for line in found] == [*events.ON_SERVER]
    text = "\n".join(plan["table"])
    for line in found:
        late, failed, worst = (line["promise"][key] for key in ("late", "failed", "worst"))
        said = [f"{late} % of new connections up to {worst} ms late for {line['outage_ms']} ms"] if late else []
        said += [f"{failed} % of new connections fail for {line['outage_ms']} ms"] if failed else []
        assert said or line["outage_ms"] == 0
        assert all(sentence in text for sentence in said)


@both_engines
@pytest.mark.parametrize("event", [event for event in events.ON_SERVER if event != events.SERVER_BACK])
def test_a_server_stays_lost_until_the_last_late_connection_would_have_been_seen(engine, event):
    line = lines(of_services(HTTP, engine=engine))[event]
    assert line["lasts_ms"] >= line["outage_ms"] + line["promise"]["worst"] + rounds.LATE_MS


@both_engines
@pytest.mark.parametrize("slow_start", [0, 60])
def test_a_server_that_comes_back_is_down_before_the_probe_and_has_its_full_share_while_it_looks(engine, slow_start):
    service = {**HTTP, "check": {"type": "http", "slow_start": slow_start}}
    members = of_services(service, engine=engine)
    cut = lines(members)[events.SERVER_CUT]
    (each,) = rounds.rounds([planned(members)], members, [events.SERVER_BACK], 1)
    back = each["after"] + each["revert_after"]
    assert each["waits"] >= each["after"] + cut["lasts_ms"] / 1000 - lost_servers.BEYOND_MS / 1000
    assert each["waits"] + 2 * rounds.START_DELAY < back < each["waits"] + each["minimum"] - slow_start
    assert each["duration"] > each["minimum"] and each["holder"] == "lb1"
    assert each["forecast"]["note"].startswith("gets connections after ")
    assert ("its full share 60 s later" in each["forecast"]["note"]) == bool(slow_start)


def test_the_server_of_the_greatest_share_is_lost_with_all_of_its_names_on_the_balancer():
    weighted = [
        {"name": "one", "address": SERVERS[0], "weight": 1},
        {"name": "two", "address": SERVERS[1], "weight": 9},
    ]
    again = {
        "name": "again",
        "port": 5000,
        "servers": [{"name": "same", "address": SERVERS[1], "port": 80}, SERVERS[0]],
    }
    line = lines(of_services({**HTTP, "servers": weighted}, again))[events.SERVER_CUT]
    assert line["server"] == {"address": SERVERS[1], "port": 80, "services": {"web": ["two"], "again": ["same"]}}
    assert line["promise"]["late"] == 90


def test_where_members_have_two_engines_the_line_has_the_worst_of_them():
    members = of_services(HTTP)
    mixed = [members[0], {**members[1], "settings": {**members[1]["settings"], "engine": engines.AGENT}}]
    alone = {engine: lines(of_services(HTTP, engine=engine)) for engine in (engines.NATIVE, engines.AGENT)}
    for event, line in lines(mixed).items():
        assert line["outage_ms"] == max(each[event]["outage_ms"] for each in alone.values())


def test_the_users_own_time_outs_count():
    members = [{**member, "timeouts": {"haproxy_timeout_connect": "7s"}} for member in of_services(HTTP)]
    line = lines(members)[events.SERVER_CUT]
    (of_drill,) = rounds.rounds([planned(members)], members, [events.SERVER_CUT], 1)
    assert line["promise"]["worst"] == 7000
    assert of_drill["late_ms"] > 7000 and of_drill["late_ms"] / of_drill["apart_ms"] <= rounds.MOST_OPEN


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"servers": SERVERS[:1]}, "web has no second active server"),
        (
            {"servers": [SERVERS[0], {"name": "b", "address": SERVERS[1], "backup": True}]},
            "web has no second active server",
        ),
        (
            {"mode": "http", "routes": [{"name": "shop", "paths": ["/shop"], "servers": SERVERS}]},
            "web has routes, each",
        ),
        ({"check": {"type": "none"}}, "of web connections would be lost for as long as it lasts"),
    ],
    ids=["alone", "backup", "routes", "unchecked"],
)
def test_a_server_that_cannot_be_spared_is_refused_with_the_reason(changes, why):
    said = refusals({**HTTP, **changes}, wanted=[events.SERVER_CUT])
    assert len(said) == 1 and said[0].startswith(f"server_cut is not for {VIP}: {why}")


def test_a_service_with_direct_return_has_no_balancer_that_could_lose_a_server():
    said = refusals({**HTTP, "check": {}, "plane": "direct"}, wanted=[events.SERVER_CUT])
    assert said == [f"server_cut is not for {VIP}: clients of web may reach its servers without a balancer."]


def test_a_check_that_does_not_see_a_process_that_hangs_lets_none_hang():
    said = refusals({**HTTP, "check": {"type": "tcp"}})
    assert said == [f"server_hung is not for {VIP}: of web connections would be lost for as long as it lasts."]


def test_one_that_no_check_would_find_is_not_lost_in_order_to_come_back():
    said = refusals({**HTTP, "check": {"type": "none"}}, wanted=[events.SERVER_BACK])
    assert said == [f"server_back is not for {VIP}: of web connections would be lost for as long as it lasts."]


def test_an_event_that_one_vip_can_have_is_not_refused_for_another_one():
    members = cluster()
    plan = planned(members, _ipi)
    assert len({line["vip"] for line in plan["outages"]}) == 2
    assert lost_servers.refusals([plan], members, events.ON_SERVER, "") == []


def test_other_events_ask_for_no_server():
    assert refusals({**HTTP, "servers": SERVERS[:1]}, wanted=["haproxy_killed"]) == []
    members = of_services(HTTP)
    (of_drill,) = rounds.rounds([planned(members)], members, ["haproxy_killed"], 1)
    assert of_drill["server"] is None and of_drill["late_ms"] == rounds.LATE_MS and of_drill["apart_ms"] < 5


@each_event
def test_the_host_is_told_which_server(event):
    members = of_services(HTTP)
    found = rounds.rounds([planned(members)], members, [event], 1)
    assert [each["server"]["address"] for each in rounds.asked(found)] == [SERVERS[0]]


def result(event=events.SERVER_CUT, promise=(50, 0, 1050), window=2400, **seen):
    stays = {**dict.fromkeys(("before", "after", "back"), "lb1"), "back_ms": 0, "two_holders_ms": 0}
    late, failed, worst = promise
    forecast = {**stays, "outage_ms": window, "promise": {"late": late, "failed": failed, "worst": worst}}
    phase = {"outage_ms": 5.0, "response_gap_ms": 20.0}
    holders = {"holders_known": True, "holder_before": "lb1", "holder_after": "lb1", "timeline": [], "most_holders": 1}
    counts = {"tried": 1000, "failed_attempts": 4, "two_holders_ms": 0, "no_holder_ms": 0}
    probed = {"takeover": phase, "failback": {"outage_ms": 0.0}, "impaired": {**GOOD, **seen}, **holders, **counts}
    return {
        **ASKED,
        "unproved": "",
        "vip": VIP,
        "event": event,
        "forecast": forecast,
        "member": "lb1",
        "holder": "lb1",
        "interval_ms": 5.0,
        "seen": probed,
    }


def judged(*results, **budget):
    found = report.report([*results], **budget)
    return found["rows"][0], found["faults"]


LATE = {"late": 240, "attempts": 480, "window_ms": 2390.0, "worst_ms": 1060.0}


def test_what_clients_saw_stands_beside_what_is_forecast():
    row, faults = judged(result(**LATE))
    assert faults == [] and (row["outage_ms"], row["worst_ms"], row["limit_ms"]) == (2390.0, 2390.0, 2400)
    assert row["clients"] == "240 of 480 up to 1058 ms late (plan: 50 % up to 1050 ms late)"


@pytest.mark.parametrize(
    "given, said",
    [
        ({**LATE, "window_ms": 2410.0}, "connections were late or failed for 2410 ms, the plan says at most 2400 ms."),
        ({**LATE, "worst_ms": 1200.0}, "a connection was 1198 ms late, the plan says at most 1050 ms."),
        ({**LATE, "failed": 3}, "3 of 480 connections failed, the plan says none."),
    ],
    ids=["for too long", "too late", "failed"],
)
def test_what_breaks_the_forecast_is_a_fault(given, said):
    assert judged(result(**given))[1] == [f"{VIP}, server_cut: round 1 of 1: {said}"]


def test_a_connection_that_was_open_when_it_happened_breaks_no_forecast():
    row, faults = judged(result(**LATE, open=1))
    assert faults == [] and "1 ended that may have been open" in row["clients"]


def test_connections_that_fail_as_forecast_are_no_fault_and_those_that_outlast_it_are():
    hung = {"event": events.SERVER_HUNG, "promise": (0, 50, 0), "window": 2880, "attempts": 560}
    row, faults = judged(result(**hung, failed=270, late=4, worst_ms=1500.0, window_ms=2800.0))
    assert faults == [] and "270 of 560 failed (plan: 50 % failed)" in row["clients"]
    assert "for 2900 ms" in judged(result(**hung, failed=270, window_ms=2900.0))[1][0]


@pytest.mark.parametrize("worst, faulty", [(0, True), (1000, False)])
def test_one_that_was_refused_as_its_server_went_down_may_be_late_where_that_is_forecast(worst, faulty):
    ended = {"event": events.SERVER_ENDED, "promise": (0, 0, worst), "window": 0}
    assert bool(judged(result(**ended, late=1, attempts=1, worst_ms=1003.0))[1]) == faulty
    assert judged(result(**ended))[1] == []
    assert judged(result(**ended, late=2, attempts=9, worst_ms=1003.0, window_ms=40.0))[1] != []


RETURN = {"event": events.SERVER_BACK, "promise": (0, 0, 0), "window": 0}


def test_of_a_return_that_nobody_noticed_the_note_of_the_forecast_is_told():
    given = result(**RETURN)
    given["forecast"]["note"] = "gets connections after 400 ms, its full share 60 s later"
    row, faults = judged(given, budget=500)
    assert faults == [] and (row["outage_ms"], row["unserved_ms"]) == (0.0, 0.0)
    assert row["clients"] == "none late (plan: none late; gets connections after 400 ms, its full share 60 s later)"


@pytest.mark.parametrize(
    "seen, said",
    [
        ({"failed": 2, "attempts": 7, "window_ms": 30.0}, "2 of 7 connections failed, the plan says none."),
        ({"open": 1, "attempts": 1}, "1 of 1 connections failed, the plan says none."),
        ({"late": 1, "attempts": 1, "worst_ms": 1052.0}, "a connection was 1050 ms late, the plan says at most 0 ms."),
    ],
    ids=["failed", "failed alone", "late"],
)
def test_whoever_notices_a_return_is_a_fault_and_no_connection_is_excused_as_one_that_was_open(seen, said):
    row, faults = judged(result(**RETURN, **seen))
    assert faults == [f"{VIP}, server_back: round 1 of 1: {said}"]
    assert "may have been open" not in row["clients"]


def told(*others, total=2):
    return {"servers": {"total": total, "others": [dict(zip(("service", "name", "state"), each)) for each in others]}}


A, SAME, OTHER = ("web", "a", "down"), ("again", "same", "down"), ("web", "b", "down")


@pytest.mark.parametrize(
    "before, after, said",
    [
        (told(A, SAME), told(), ""),
        (told(A, SAME, OTHER), told(OTHER), ""),
        (told(A), told(), "192.0.2.31 at 80 was not down before its return, so nothing was measured."),
        (told(), told(), "192.0.2.31 at 80 was not down before its return, so nothing was measured."),
        (told(A, SAME), told(SAME), "192.0.2.31 at 80 is not up again, the plan says after 1250 ms at most."),
        *(
            (
                *seen,
                "whether 192.0.2.31 at 80 was down and is up again is not known, because its balancer did not say so.",
            )
            for silent in ({"unreachable": True}, told(total=0))
            for seen in ((silent, told()), (told(A, SAME), silent))
        ),
    ],
)
def test_the_balancer_says_whether_a_server_was_down_and_is_up_again(before, after, said):
    server = {"address": SERVERS[0], "port": 80, "services": {"web": ["a"], "again": ["same"]}}
    given = {**result(**RETURN), "server": server}
    given["forecast"]["returns_ms"] = 1250
    given["unproved"] = lost_servers.unproved(given, before, after)
    row, faults = judged(given)
    assert given["unproved"] == said
    assert [fault.endswith(f"round 1 of 1: {said}") for fault in faults] == ([True] if said else [])
    assert (row["outage_ms"] is None) == bool(said) and row["clients"].startswith(said.rstrip(".") or "none late")
    assert lost_servers.unproved({**given, "event": events.SERVER_CUT}, before, after) == ""
    assert judged({**given, "measured": False})[1] == faults  # also where the probe connects only


def test_a_probe_that_met_other_servers_has_measured_nothing():
    """As with `balance: source`, of which the probe is one client."""
    row, faults = judged(result())
    assert faults == [] and row["outage_ms"] is None and row["unserved_ms"] is None
    assert row["clients"] == "the probe met other servers (plan: 50 % up to 1050 ms late)"
    assert judged(result(), budget=3000)[1] != []


def test_a_budget_counts_for_how_long_clients_saw_it():
    assert judged(result(**LATE), budget=2500)[1] == []
    assert judged(result(**LATE), budget=2000)[1] == [
        f"{VIP}, server_cut: the VIP was not served for 2390 ms, drill_budget is 2000 ms."
    ]


def test_of_several_rounds_the_longest_is_told():
    row, _faults = judged(result(**LATE), result(**{**LATE, "late": 7, "window_ms": 100.0}))
    assert row["clients"].startswith("240 of 480 ")


def test_rows_of_other_events_have_no_such_column():
    head, *_rows = report.cells([judged(result(**LATE))[0]])
    assert "clients" in head and "reason" not in head
    head, *_rows = report.cells([{**judged(result(**LATE))[0], "clients": ""}])
    assert "clients" not in head


def test_a_lost_server_of_the_forecast_is_one_of_these_events_or_comes_after_it():
    assert {*servers.EVENTS} - {*lost_servers.FORECAST_AS.values()} == {servers.LATE}
