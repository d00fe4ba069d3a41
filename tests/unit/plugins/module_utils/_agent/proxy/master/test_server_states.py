# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of each server, and the updates that the workers get."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Run
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import Check
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import proxy_header
from support.agent.loops import SECOND
from support.proxy.health import A, B, HealthCase, service


def update(state, weight=10, shutdown=False):
    return {"state": state, "weight": weight, "shutdown": shutdown}


def test_before_the_first_check_a_server_is_up():
    assert HealthCase(service()).states() == {"web/a": "up", "web/b": "up"}
    assert HealthCase(service(type="none")).states() == {"web/a": "up", "web/b": "up"}


def test_each_server_is_checked_as_its_service_says():
    given = settings.Health(
        type="https", path="/x", host="h", sni="s", status=("200",), verify=True, ca="/ca",
        interval=7, fast_interval=3, timeout=5, rise=4, fall=6,
    )  # fmt: skip
    case = HealthCase(settings.Service("web", ("*",), 80, (A,), health=given), service([B], "other", port=9000))
    web, other = case.applied
    assert (web.name, web.address, web.port) == ("web/a", "192.0.2.1", 8080)
    for field in (
        "type",
        "path",
        "host",
        "sni",
        "status",
        "interval",
        "fast_interval",
        "timeout",
        "rise",
        "fall",
        "verify",
        "ca",
    ):
        assert getattr(web, field) == getattr(given, field), field
    assert (other.name, other.address, other.port, other.type) == ("other/b", "192.0.2.2", 9000, "tcp")
    assert HealthCase(service(type="none")).applied == []


@pytest.mark.parametrize("send_proxy, port, greeted", [(True, 0, True), (True, 9000, False), (False, 0, False)])
def test_where_servers_demand_a_proxy_header_a_check_of_their_port_has_one(send_proxy, port, greeted):
    (check, _other) = HealthCase(service(port=port)._replace(send_proxy=send_proxy)).applied
    assert check.greeting.encode("latin-1") == (proxy_header.local() if greeted else b"")


def test_a_step_without_a_port_goes_to_the_servers_own_with_its_proxy_header():
    steps = (settings.Step("http", path="/a"), settings.Step("http", 9345))
    (check, _other) = HealthCase(service(type="http", steps=steps)._replace(send_proxy=True)).applied
    first, second = check.sequence
    assert (first.port, first.path, bool(first.greeting)) == (8080, "/a", True)
    assert (second.port, second.greeting) == (9345, "")
    assert Check.from_json(json.loads(json.dumps(check))) == check


def test_a_change_is_sent_to_the_workers_and_logged():
    case = HealthCase(service())
    assert case.found("web/a", True) == []
    assert case.found("web/a", False, "connection refused") == [("web/a", update("down"))]
    assert case.log[-1] == "web/a is down: connection refused. 1 of 2 servers of web are up."
    assert case.found("web/a", False, "no connection within 2 s") == []
    assert case.found("web/a", True, "connected") == [("web/a", update("up"))]
    assert case.log[-1] == "web/a is up: connected. 2 of 2 servers of web are up."


def test_a_late_result_of_what_is_not_wanted_any_more_is_ignored():
    case = HealthCase(service())
    assert case.found("gone/a", False) == []


def test_an_outage_and_its_end_are_logged():
    case = HealthCase(service())
    case.found("web/a", False)
    case.found("web/b", False)
    assert case.log[-2:] == [
        "web/b is down: because. 0 of 2 servers of web are up.",
        "fault web: web has no server that is up: connections to it are refused.",
    ]
    case.found("web/b", True)
    assert case.log[-1] == "cured web: web has a server again."


def test_sessions_end_with_a_server_where_that_is_wanted():
    case = HealthCase(service(shutdown_sessions=True))
    assert case.found("web/a", False) == [("web/a", update("down", shutdown=True))]
    assert case.found("web/a", True) == [("web/a", update("up"))]
    assert case.admin_state("web/a", "maint") == [("web/a", update("maint", shutdown=True))]
    assert case.admin_state("web/a", "drain") == [("web/a", update("drain"))]


def test_orders_stand_above_and_beside_what_checks_find():
    case = HealthCase(service())
    assert case.admin_state("web/a", "drain") == [("web/a", update("drain"))]
    assert case.found("web/a", False) == [("web/a", update("down"))]
    assert case.admin_state("web/a", "maint") == [("web/a", update("maint"))]
    assert case.found("web/a", True) == [("web/a", update("maint"))]
    assert case.admin_state("web/a", "ready") == [("web/a", update("up"))]
    assert case.admin_state("web/a", "ready") == []


def test_usable_is_who_gets_new_connections():
    none = settings.Server("none", "192.0.2.3", 80, weight=0)
    backup = settings.Server("backup", "192.0.2.4", 80, backup=True)
    case = HealthCase(service([A, B, none, backup, backup._replace(name="other")]), service(name="other"))
    assert case.health.usable("web") == 2
    case.admin_state("web/a", "drain")
    assert case.health.usable("web") == 1
    case.admin_state("web/b", "maint")
    assert case.health.usable("web") == 1  # the backup
    assert case.log[-1] == "web/b is maint: as ordered. 3 of 5 servers of web are up."
    case.found("web/backup", False)
    assert case.health.usable("web") == 1  # the other one
    case.found("web/other", False)
    assert case.health.usable("web") == 0 and case.health.usable("other") == 2 and case.health.usable("no such") == 0


def test_a_failed_connection_has_an_up_server_checked_at_once():
    case = HealthCase(service(), service(name="free", type="none"))
    case.health.suspect("web/a")
    assert case.suspected == ["web/a"] and case.updates == []
    case.found("web/a", False)
    for ignored in ("web/a", "free/a", "no/such"):  # down already, checked by nobody, a server of before
        case.health.suspect(ignored)
    assert case.suspected == ["web/a"]


def test_a_slow_start_raises_the_weight_in_steps():
    case = HealthCase(service(slow_start=60 * SECOND))
    case.found("web/a", False)
    assert case.found("web/a", True) == [("web/a", update("up", 0.5))]
    case.updates.clear()
    case.time.advance(30 * SECOND)
    assert [orders["web/a"]["weight"] for orders in case.updates] == [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]
    assert case.health.updates()["web/a"]["weight"] == 5
    case.time.advance(40 * SECOND)
    assert case.updates[-1] == {"web/a": update("up", 10)} and len(case.updates) == 20


def test_a_server_that_was_up_at_the_start_or_is_ready_after_a_drain_has_no_slow_start():
    case = HealthCase(service(slow_start=60 * SECOND))
    assert case.health.updates()["web/a"] == update("up", 10)
    case.admin_state("web/a", "drain")
    assert case.admin_state("web/a", "ready") == [("web/a", update("up", 10))]
    case.admin_state("web/a", "maint")
    assert case.admin_state("web/a", "ready") == [("web/a", update("up", 0.5))]


def test_a_slow_start_ends_with_the_next_failure():
    case = HealthCase(service(slow_start=60 * SECOND))
    case.found("web/a", False)
    case.found("web/a", True)
    case.time.advance(10 * SECOND)
    case.found("web/a", False)
    case.updates.clear()
    case.time.advance(70 * SECOND)
    assert case.updates == []
    assert case.found("web/a", True) == [("web/a", update("up", 0.5))]


def test_a_slow_start_goes_on_over_a_reload_and_a_new_version():
    slow = service(slow_start=60 * SECOND)
    case = HealthCase(slow)
    case.found("web/a", False)
    case.found("web/a", True)
    case.time.advance(30 * SECOND)
    case.health.apply([slow])
    remembered = json.loads(json.dumps(case.health.to_json()))
    for one in (case, HealthCase(slow, remembered=remembered, begun=30 * SECOND)):
        assert one.health.updates()["web/a"]["weight"] == 5
        one.updates.clear()
        one.time.advance(40 * SECOND)
        assert one.updates[-1] == {"web/a": update("up", 10)} and len(one.updates) == 10
    assert HealthCase(service(), remembered=remembered).health.updates()["web/a"]["weight"] == 10


def test_a_reload_without_a_slow_start_ends_the_one_under_way():
    case = HealthCase(service(slow_start=60 * SECOND))
    case.found("web/a", False)
    case.found("web/a", True)
    case.health.apply([service()])
    assert case.health.updates()["web/a"] == update("up", 10)


def test_a_new_worker_gets_all_states():
    case = HealthCase(service())
    case.found("web/a", False)
    case.admin_state("web/b", "drain")
    assert case.health.updates() == {"web/a": update("down"), "web/b": update("drain", 1)}


def test_a_reload_keeps_the_state_while_the_check_is_the_same():
    case = HealthCase(service())
    case.found("web/a", False)
    case.admin_state("web/b", "maint")
    case.health.apply([service([A._replace(weight=3), B])])
    assert case.states() == {"web/a": "down", "web/b": "maint"}
    assert case.health.updates()["web/a"]["weight"] == 3


def test_a_reload_that_changes_the_check_begins_anew_but_orders_stay():
    case = HealthCase(service())
    case.found("web/a", False)
    case.admin_state("web/b", "drain")
    case.health.apply([service([A._replace(port=8081), B._replace(port=8081)])])
    assert case.states() == {"web/a": "up", "web/b": "drain"}


def test_a_new_version_keeps_the_states():
    case = HealthCase(service())
    case.wall = 1234.0
    case.ran("web/a", False, "connection refused")
    case.found("web/a", False)
    case.admin_state("web/b", "drain")
    remembered = json.loads(json.dumps(case.health.to_json()))
    after = HealthCase(service(), remembered=remembered)
    assert after.states() == {"web/a": "down", "web/b": "drain"}
    assert after.health["web/a"].run == Run("web/a", False, "connection refused", 1500)
    assert (after.health["web/a"].since, after.health["web/a"].run_at) == (1234.0, 1234.0)
    assert after.health["web/b"].run is None
    changed = HealthCase(service(fall=7), remembered=remembered)
    assert changed.states() == {"web/a": "up", "web/b": "drain"}


def test_since_when_it_is_so():
    case = HealthCase(service())
    case.wall = 2000.0
    case.found("web/a", True)
    assert case.health["web/a"].since == 1000.0
    case.wall = 3000.0
    case.found("web/a", False)
    assert case.health["web/a"].since == 3000.0


def test_the_result_of_the_last_check_is_reported_whatever_the_state_is():
    case = HealthCase(service())
    assert case.health["web/a"].run is None
    for moment, success in ((2000.0, True), (2002.0, False)):
        case.wall = moment
        case.ran("web/a", success, "because")
        case.ran("gone/a", success, "because")
        assert case.health["web/a"].run == Run("web/a", success, "because", 1500)
        assert (case.health["web/a"].run_at, case.health["web/a"].since) == (moment, 1000.0)
    assert case.states() == {"web/a": "up", "web/b": "up"}
    case.health.apply([service()])
    assert case.health["web/a"].run_at == 2002.0


@pytest.mark.parametrize("order", ["drain", "maint"])
def test_no_update_is_sent_where_nothing_changes_for_the_workers(order):
    case = HealthCase(service())
    case.found("web/a", False)
    assert case.admin_state("web/a", order) == ([] if order == "drain" else [("web/a", update("maint"))])


LATE = {"type": "http", "interval": SECOND // 5, "timeout": SECOND // 4, "fall": 6, "late_timeout": 10 * SECOND}


def late_case(**changes):
    return HealthCase(service(**{**LATE, **changes}))


def test_a_second_check_asks_the_same_and_waits_for_longer():
    second, first = late_case().applied[:2]
    assert (first.name, second.name) == ("web/a", "web/a/late")
    assert (second.timeout, second.interval, second.fast_interval, second.fall) == (10 * SECOND, 600_000, 200_000, 2)
    assert (first.connect_timeout, late_case(late_connect=7).applied[0].connect_timeout) == (0, 7)
    same = ("type", "address", "port", "path", "host", "status", "greeting", "steps", "rise", "verify", "ca", "sni")
    assert all(getattr(first, key) == getattr(second, key) for key in same)
    assert [check.name for check in late_case(late_timeout=0).applied] == ["web/a", "web/b"]


def test_a_server_that_says_no_is_down_before_it_could_be_late():
    """Its second check fails for good before the first one has, whatever the phases of the two are."""
    second, first = late_case().applied[:2]
    longest = second.interval + (second.fall - 1) * second.fast_interval
    assert longest < (first.fall - 1) * first.interval


def test_a_server_that_fails_its_first_check_alone_is_late():
    case = late_case()
    assert case.found("web/a", False, "no answer within 0.25 s") == [("web/a", update("late"))]
    assert case.log[-1] == "web/a is late: no answer within 0.25 s. 1 of 2 servers of web are up."
    assert case.found("web/a/late", False, "status 503") == [("web/a", update("down"))]
    assert case.log[-1] == "web/a is down: status 503. 1 of 2 servers of web are up."
    assert case.found("web/a/late", True, "status 200") == [("web/a", update("late"))]
    assert case.found("web/a", True, "status 200") == [("web/a", update("up"))]


def test_a_server_is_certain_once_the_checks_have_spoken_that_its_state_follows_from():
    case = late_case()
    certain = [case.health["web/a"].certain]
    for name, up in (("web/a", True), ("web/a", False), ("web/a/late", True)):
        case.found(name, up)
        certain.append(case.health["web/a"].certain)
    assert certain == [False, True, False, True]
    known = json.loads(json.dumps(case.health.to_json()))
    assert HealthCase(service(**LATE), remembered=known).health["web/a"].certain
    case.health.apply([service(**LATE)._replace(maxconn=7)])
    assert case.health["web/a"].certain and not case.health["web/b"].certain
    assert HealthCase(service(type="none")).health["web/a"].certain


def test_the_second_check_alone_changes_nothing():
    case = late_case()
    assert case.found("web/a/late", False) == [] and case.states()["web/a"] == "up"
    assert case.found("web/a", False) == [("web/a", update("down"))]
    assert case.found("web/c/late", False) == []


def test_late_servers_are_usable_while_none_is_up():
    case = late_case()
    case.found("web/a", False)
    assert case.health.usable("web") == 1
    case.found("web/b", False)
    assert case.health.usable("web") == 2 and not case.faults
    case.found("web/a/late", False)
    assert case.health.usable("web") == 1
    case.found("web/b/late", False)
    assert case.health.usable("web") == 0 and case.faults == {"web"}


def test_orders_count_for_a_late_server():
    case = late_case()
    case.found("web/a", False)
    assert case.admin_state("web/a", "drain") == [("web/a", update("drain"))]
    assert case.admin_state("web/a", "maint") == [("web/a", update("maint"))]
    assert case.admin_state("web/a", "ready") == [("web/a", update("late"))]


def test_sessions_of_a_late_server_end_once_it_is_down():
    case = late_case(shutdown_sessions=True)
    assert case.found("web/a", False) == [("web/a", update("late"))]
    assert case.found("web/a/late", False) == [("web/a", update("down", shutdown=True))]


def test_a_failed_connection_to_a_late_server_has_its_second_check_made_at_once():
    case = late_case()
    case.found("web/a", False)
    case.health.suspect("web/a")
    case.found("web/a/late", False)
    case.health.suspect("web/a")
    assert case.suspected == ["web/a/late"]


def test_a_reload_and_an_upgrade_keep_what_the_second_check_has_found():
    case = late_case()
    for name in ("web/a", "web/a/late", "web/b"):
        case.found(name, False)
    known = json.loads(json.dumps(case.health.to_json()))
    case.health.apply([service(**LATE)._replace(maxconn=7)])
    assert case.states() == {"web/a": "down", "web/b": "late"}
    assert HealthCase(service(**LATE), remembered=known).states() == {"web/a": "down", "web/b": "late"}


def test_what_a_version_with_fewer_fields_of_a_check_has_found_counts_after_the_upgrade():
    case = HealthCase(service())
    case.found("web/a", False)
    known = json.loads(json.dumps(case.health.to_json()))
    first_release = Check._fields.index("steps") + 1
    older = {key: {**state, "check": state["check"][:first_release]} for key, state in known.items()}
    assert older != known and HealthCase(service(), remembered=older).states()["web/a"] == "down"
    assert HealthCase(service(fall=7), remembered=older).states()["web/a"] == "up"


def test_a_server_that_a_version_without_a_second_check_took_for_lost_may_be_late():
    """An upgrade, or a reload, brings the second check; until it has a result, connections are tried."""
    case = late_case(late_timeout=0)
    case.found("web/a", False)
    known = json.loads(json.dumps(case.health.to_json()))
    without = {
        key: {name: value for name, value in state.items() if name != "answers_late"} for key, state in known.items()
    }
    assert HealthCase(service(**LATE), remembered=without).states()["web/a"] == "late"
    case.health.apply([service(**LATE)])
    assert case.states()["web/a"] == "late"
    case.health.apply([service(**{**LATE, "late_timeout": 0})])
    assert case.states()["web/a"] == "down"
