# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forecast of lost servers: what follows from the settings, and that the defaults keep what is promised."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import servers
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.servers import (
    BACK,
    CUT,
    ENDS,
    FOR_GOOD,
    HANGS,
    LATE,
    Timeouts,
    losses,
    losses_of,
    rules_of,
    table,
    weights_of,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import presets as ipi_presets
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

BOTH = pytest.mark.parametrize("engine", [engines.NATIVE, engines.AGENT])
USUAL = Timeouts()
FORMER = {"interval": 2, "fall": 3}


def service(names=("192.0.2.31", "192.0.2.32"), **changes):
    (read,), faults = read_services([{"name": "web", "port": 80, "servers": [*names], **changes}], "services")
    assert not faults
    return read


def found(engine=engines.NATIVE, timeouts=USUAL, **changes):
    """Return the losses by their events."""
    return {loss.event: loss for loss in losses_of(service(**changes), engine, timeouts)}


def played(rules, each):
    """Return when a server that is lost at 0 is down, at worst: with a clock that goes from one check to the next."""
    clock, failures = rules.interval, 0  # the last good check has just ended
    while True:
        clock, failures = clock + each, failures + 1
        if failures == rules.fall:
            return clock
        clock += rules.pause


@BOTH
@pytest.mark.parametrize("kind", ["tcp", "http", "https"])
def test_by_default_nobody_is_later_than_promised_nor_for_longer(engine, kind):
    cut = found(engine, check={"type": kind})[CUT]
    assert (cut.late, cut.failed) == (50, 0) and cut.worst <= 1100 and cut.window <= 2500


@BOTH
def test_by_default_a_process_that_hangs_is_found_in_three_seconds_if_it_is_asked_for_an_answer(engine):
    hung = found(engine, check={"type": "http"})[HANGS]
    assert hung.failed == 50 and 0 < hung.window <= 3000


@BOTH
def test_a_cluster_by_its_default_preset_keeps_the_same_promises(engine):
    found_ones = found(engine, check=ipi_presets.PRESETS["default"].server_check)
    assert (found_ones[CUT].worst, found_ones[ENDS].late) == (1050, 0)
    assert found_ones[CUT].window <= 2500 and found_ones[HANGS].window <= 3000
    assert found_ones[BACK].note.endswith("its full share 60 s later")
    assert found_ones[CUT].lasting == "end after some 10 s" and found_ones[LATE].lasting == "go on"


@BOTH
@pytest.mark.parametrize(
    "kind, interval, fall, fast", [*itertools.product(["tcp", "http"], [0.2, 2, 5], [1, 3], [0, 1])]
)
def test_the_window_is_what_passes_until_the_last_of_the_failed_checks(engine, kind, interval, fall, fast):
    check = {"type": kind, "interval": interval, "fall": fall, "fast_interval": fast}
    rules = rules_of(service(check=check), engine, Timeouts())
    each = losses(rules, [1, 1])
    assert each[0].window == round(1000 * played(rules, rules.check_connect))
    if kind == "http":
        assert each[2].window == round(1000 * played(rules, rules.check_answer))


def test_the_values_of_before_cost_what_was_measured_then():
    before = found(check=FORMER, timeouts=Timeouts(5, 10))[CUT]
    assert (before.window, before.worst) == (12000, 5000)


def test_a_tcp_check_does_not_see_a_process_that_hangs_and_the_forecast_names_the_check_that_would():
    hung = found()[HANGS]
    assert (hung.failed, hung.window) == (50, FOR_GOOD)
    assert hung.note == "a tcp check does not see it: http or https would"


def test_without_a_check_a_lost_server_is_lost_for_good():
    lost = found(check={"type": "none"})
    assert lost[CUT].window == FOR_GOOD and "set check.type" in lost[CUT].note and lost[HANGS].failed == 50


def test_of_a_single_server_all_connections_fail():
    alone = found(names=["192.0.2.31"], check={"type": "http"})
    assert [alone[event].failed for event in (CUT, ENDS, HANGS)] == [100, 100, 100]
    assert {alone[event].window for event in (CUT, ENDS, HANGS)} == {FOR_GOOD}


@pytest.mark.parametrize(
    "given, weights",
    [
        ([{"address": "192.0.2.31", "weight": 3}, "192.0.2.32"], [3, 1]),
        (["192.0.2.31", {"address": "192.0.2.32", "backup": True}], [1]),
        (["192.0.2.31", {"address": "192.0.2.32", "weight": 0}], [1]),
        ([{"address": "192.0.2.31", "backup": True}, {"address": "192.0.2.32", "backup": True}], [1]),
    ],
)
def test_the_share_is_that_of_the_servers_weight_among_those_that_get_connections(given, weights):
    assert weights_of(service(given)["servers"]) == weights
    assert losses(rules_of(service(given), engines.NATIVE, Timeouts()), weights)[1].event == ENDS


def mixed(active, backups):
    return [{"address": f"192.0.2.{31 + at}", "backup": at >= active} for at in range(active + backups)]


def clients(down_at, step, retries):
    """Return how late each client is that comes until the only server is down, None if it fails: it tries again."""
    began = [at * down_at / 1000 for at in range(1000)]
    attempts = [[begin + attempt * step for attempt in range(retries + 1)] for begin in began]
    served = [[at for at in each if at >= down_at] for each in attempts]
    return [min(found) - begin if found else None for begin, found in zip(began, served)]


@BOTH
@pytest.mark.parametrize("active, backups", [*itertools.product(range(4), range(3))])
def test_a_lost_server_is_lost_for_good_only_where_no_other_server_is_left(engine, active, backups):
    if not active + backups:
        return
    for event, loss in found(engine, names=mixed(active, backups), check={"type": "http"}).items():
        if event in servers.LOST:
            assert (loss.window == FOR_GOOD) == (active + backups == 1), event
            is_last = max(active, min(1, backups)) == 1
            assert ("backup" in loss.note) == (is_last and active + backups > 1), event
            assert loss.late + loss.failed == 100 or not is_last, event


@BOTH
@pytest.mark.parametrize("active, backups", [(1, 1), (1, 2), (0, 2), (0, 3)])
@pytest.mark.parametrize("retries", [0, 1, 2, 3])
@pytest.mark.parametrize("check", [{}, FORMER], ids=["usual", "former"])
def test_until_the_last_active_server_is_down_its_clients_try_it_again_and_then_get_a_backup(
    engine, active, backups, retries, check
):
    changes = {"names": mixed(active, backups), "check": {"type": "http", **check}}
    rules = rules_of(service(**changes), engine, USUAL)
    steps = {CUT: rules.connect, ENDS: 1, HANGS: 0}
    for event, loss in found(engine, USUAL._replace(retries=retries), **changes).items():
        if event not in steps:
            continue
        each = clients(loss.window / 1000, steps[event], retries if steps[event] else 0)
        late = [1000 * client for client in each if client is not None]
        assert abs(loss.failed - each.count(None) / 10) <= 1, event
        assert loss.late == 100 - loss.failed and max(late, default=0) < loss.worst + 1, event
        assert loss.worst - max(late, default=loss.worst) <= 1000 * steps[event], event


@BOTH
def test_by_default_no_connection_fails_as_a_backup_follows_a_server_that_is_cut_or_ends(engine):
    given = found(engine, names=mixed(1, 1), check={"type": "http"})
    assert [(given[event].failed, given[event].late) for event in (CUT, ENDS, HANGS)] == [(0, 100), (0, 100), (100, 0)]


@BOTH
@pytest.mark.parametrize("kind, seen", [("none", ()), ("tcp", (CUT, ENDS))])
def test_a_backup_gets_no_connection_while_no_check_sees_that_the_active_server_is_lost(engine, kind, seen):
    given = found(engine, names=mixed(1, 1), check={"type": kind})
    assert {event for event in (CUT, ENDS, HANGS) if given[event].window != FOR_GOOD} == {*seen}
    assert all("no backup gets connections" in given[event].note for event in (CUT, ENDS, HANGS) if event not in seen)


@pytest.mark.parametrize("engine, share", [(engines.NATIVE, 33), (engines.AGENT, 0)])
def test_haproxy_may_be_told_to_use_all_backups_at_once(engine, share):
    given = found(engine, names=mixed(0, 3), backend_lines=["option allbackups"], check={"type": "http"})
    assert given[HANGS].failed == (share or 100) and ("then a backup serves" in given[CUT].note) == (not share)


@pytest.mark.parametrize("engine, ends", [(engines.NATIVE, True), (engines.AGENT, False)])
@pytest.mark.parametrize("active, backups", [(1, 1), (2, 0), (3, 1)])
def test_haproxy_ends_what_it_connects_to_a_server_that_goes_down_if_sessions_end_with_it(
    engine, ends, active, backups
):
    """With HAProxy 2.6 and nft 116 of 116 clients failed before a backup, and 26 of 58 beside another server."""
    loss = found(engine, names=mixed(active, backups), check={"type": "tcp", "shutdown_sessions": True})[CUT]
    assert (loss.failed > 0) == ends and (loss.failed == 100) == (ends and active == 1)
    assert loss.late + loss.failed == round(100 / active)


def test_the_retries_of_a_service_count():
    given = {"names": mixed(1, 1), "check": {"type": "http"}}
    assert found(**given)[CUT].failed == 0 and found(backend_lines=["retries 1"], **given)[CUT].failed > 50


def test_the_server_with_the_greatest_share_is_the_one_that_is_lost():
    assert found(names=[{"address": "192.0.2.31", "weight": 3}, "192.0.2.32"])[CUT].late == 75


@BOTH
@pytest.mark.parametrize("kind", ["tcp", "http", "https"])
def test_by_default_no_connection_fails_while_all_servers_answer_late(engine, kind):
    late = found(engine, check={"type": kind})[LATE]
    assert (late.failed, late.late) == (0, 0) and "within 10 s" in late.note


@pytest.mark.parametrize(
    "engine, changes, timeouts, limit",
    [
        (engines.NATIVE, {"check": {"type": "http", "interval": 5}}, USUAL, 10),
        (engines.AGENT, {"check": {"type": "http", "interval": 5}}, USUAL, 5),
        (engines.NATIVE, {"check": {"type": "http"}}, Timeouts(check=2), 2),
        (engines.AGENT, {"check": {"type": "http"}}, Timeouts(check=0.5), 0.5),
        (engines.NATIVE, {"check": {"type": "http"}, "backend_lines": ["timeout check 3s"]}, USUAL, 3),
    ],
)
def test_whoever_sets_the_pace_or_the_limit_of_checks_is_told_which_limit_fails_all_connections(
    engine, changes, timeouts, limit
):
    late = found(engine, timeouts, **changes)[LATE]
    assert (late.failed, late.window) == (100, FOR_GOOD)
    assert late.note == f"where a check takes longer than {limit:g} s"


@pytest.mark.parametrize("engine, cut, hung", [(engines.NATIVE, 3400, 21300), (engines.AGENT, 2900, 20800)])
@pytest.mark.parametrize("names", [["192.0.2.31"], ["192.0.2.31", "192.0.2.32"]])
def test_sessions_that_end_with_their_server_end_once_it_does_not_answer_late_either(engine, cut, hung, names):
    given = found(engine, names=names, check={"type": "http", "shutdown_sessions": True})
    assert (given[CUT].lasting, given[HANGS].lasting) == (f"end after {cut} ms", f"end after {hung} ms")
    assert given[LATE].lasting == ("go on" if engine == engines.AGENT else f"end after {hung} ms")


def test_haproxy_which_has_one_check_where_sessions_end_is_forecast_with_that_one():
    given = found(check={"type": "http", "shutdown_sessions": True})
    assert (given[CUT].window, given[HANGS].window) == (3400, 21300)
    assert given[LATE].note == "where a check takes longer than 10 s"


@BOTH
def test_who_sets_the_pace_has_sessions_end_when_that_check_says_so(engine):
    given = found(engine, check={"type": "http", "shutdown_sessions": True, **FORMER})
    for event in (CUT, HANGS):
        assert given[event].lasting == f"end after {given[event].window} ms"


@BOTH
@pytest.mark.parametrize(
    "check, cut, hung",
    [
        ({"tcp_user_timeout": 10}, "end after some 10 s", "hang until they time out"),
        ({"tcp_user_timeout": 1, "shutdown_sessions": True}, "end after some 1 s", "end after"),
        ({"tcp_user_timeout": 10, "shutdown_sessions": True}, "end after ", "end after"),
        ({"tcp_user_timeout": 10, "type": "none"}, "end after some 10 s", "hang until they time out"),
        ({"shutdown_sessions": True, "type": "none"}, "hang until they time out", "hang until they time out"),
    ],
)
def test_a_server_that_acknowledges_nothing_loses_its_connections_and_one_that_hangs_does_not(engine, check, cut, hung):
    given = found(engine, check={"type": "http", **check})
    assert given[CUT].lasting.startswith(cut) and given[HANGS].lasting.startswith(hung)
    assert ("some" in given[CUT].lasting) == ("some" in cut)


@BOTH
def test_a_hung_server_that_no_check_sees_keeps_its_connections(engine):
    given = found(engine, check={"type": "tcp", "shutdown_sessions": True})
    assert given[HANGS].lasting == "hang until they time out" and given[CUT].lasting.startswith("end after")


def test_a_services_own_timeouts_count():
    slow = found(backend_lines=["timeout connect 5s", "timeout  check 10s"], check={"type": "http", **FORMER})
    assert slow[CUT].worst == 5000 and slow[HANGS].window == 2000 + 3 * 10000 + 2 * 2000


def test_haproxy_limits_the_connection_of_a_check_by_the_interval_too_and_the_agent_does_not():
    limits = [rules_of(service(), engine, Timeouts()).check_connect for engine in (engines.NATIVE, engines.AGENT)]
    assert limits == [0.2, 0.28]


def test_the_table_says_it_in_a_line_for_each_event():
    lines = table([service(check={"type": "http"})], {engines.NATIVE: Timeouts()})
    assert lines == [
        "web: 2 servers, assumed up, check http",
        "  server cut           50 % of new connections up to 1050 ms late for 2400 ms; "
        "lasting ones hang until they time out",
        "  process ends         no new connection late; but 1000 ms if refused as the server goes down; "
        "lasting ones end at once",
        "  process hangs        50 % of new connections fail for 2880 ms; lasting ones hang until they time out",
        "  server back          gets connections after 400 ms; lasting ones go on",
        "  all answer late      those that answer within 10 s get connections while none is in time; "
        "lasting ones go on",
    ]


@pytest.mark.parametrize("connect, wait", [(1.05, 1000), (0.3, 300)])
def test_who_is_refused_as_one_of_two_servers_goes_down_waits_with_haproxy_alone(connect, wait):
    """HAProxy waits a second, or `timeout connect`, before each retry while only one server is up."""
    two, three = ("192.0.2.31", "192.0.2.32"), ("192.0.2.31", "192.0.2.32", "192.0.2.33")
    limits = Timeouts(connect=connect)
    loss = found(names=two, timeouts=limits)[ENDS]
    assert (loss.late, loss.window, loss.worst) == (0, 0, wait)
    assert loss.note == f"but {wait} ms if refused as the server goes down"
    for other in (
        found(names=three, timeouts=limits),
        found(engines.AGENT, names=two, timeouts=limits),
        found(names=two, timeouts=limits, check={"type": "none"}),  # it never goes down
    ):
        assert (other[ENDS].worst, other[ENDS].note) == (0, "")


def test_where_two_engines_differ_each_has_its_line():
    lines = table([service()], dict.fromkeys((engines.NATIVE, engines.AGENT), Timeouts()))
    cut = [line for line in lines if line.startswith(f"  {CUT}")]
    assert [line.rpartition("; ")[2] for line in cut] == ["with the engine native", "with the engine agent"]


def test_a_route_has_servers_of_its_own_and_a_service_without_any_has_no_lines():
    route = {"name": "shop", "paths": ["/shop"], "servers": ["192.0.2.41"]}
    lines = table([service(mode="http", routes=[route])], {engines.NATIVE: Timeouts()})
    assert [line for line in lines if not line.startswith(" ")] == [
        "web: 2 servers, assumed up, check tcp",
        "shop: 1 server, assumed up, check tcp",
    ]
    assert table([{**service(), "servers": []}], {engines.NATIVE: Timeouts()}) == []


def test_services_of_which_the_same_is_to_be_said_have_one_block():
    heads = [line for line in table([service(), service(name="api")], {engines.NATIVE: USUAL}) if line[0] != " "]
    assert heads == ["web, api: 2 servers, assumed up, check tcp"]


def test_every_event_is_forecast():
    assert tuple(found()) == servers.EVENTS
