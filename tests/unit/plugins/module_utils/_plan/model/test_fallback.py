# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second backend of a service, for servers that answer late: what tests/netns/test_late_servers.py plays."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import fallback, pace
from support.rendering import haproxy, haproxy_model

SHOP = {"name": "shop", "paths": ["/shop"], "servers": ["192.0.2.41"]}
SPARE = {"address": "192.0.2.33", "backup": True, "maxconn": 7, "options": ["cookie spare", "guid one"]}


def service(**changes):
    check = {"type": "http", "path": "/healthz", "slow_start": 30, "tcp_user_timeout": 20}
    return {"name": "web", "port": 80, "mode": "http", "servers": ["192.0.2.31", SPARE], "check": check, **changes}


def sections(*services, **variables):
    """Return the lines of each section of haproxy.cfg, by its first line."""
    found, head = {}, ""
    for line in haproxy(list(services), **variables).splitlines():
        if line[:1].isalpha():
            head = line
        elif line.strip():
            found.setdefault(head, []).append(line.strip())
    return found


def test_a_fallback_has_the_servers_and_the_check_of_its_service_and_more_time():
    lines = ["stick-table type ip size 1m expire 1h", "stick on src"]
    found = sections(service(balance="leastconn", send_proxy=True, backend_lines=["id 7", "guid a", *lines]))
    usual, second = found["backend web"], found["backend web-fallback"]
    assert [line for line in usual if line not in second] == [
        "default-server check inter 200ms fall 6 rise 2",
        "default-server slowstart 30000ms send-proxy-v2",
        "id 7",
        "guid a",
        "server 192.0.2.33 192.0.2.33:80 weight 1 maxconn 7 backup tcp-ut 20000ms cookie spare guid one",
    ]
    assert [line for line in second if line not in usual] == [
        "timeout check 10s",
        "default-server check inter 1100ms fall 2 rise 2",
        "default-server fastinter 200ms slowstart 30000ms send-proxy-v2",
        "server 192.0.2.33 192.0.2.33:80 weight 1 maxconn 7 backup tcp-ut 20000ms cookie spare",
    ]


def test_where_sessions_end_with_their_server_the_check_that_waits_for_longer_is_the_only_one():
    found = sections(service(check={"type": "http", "shutdown_sessions": True}))
    assert "backend web-fallback" not in found and found["frontend web"][-1] == "default_backend web"
    assert [line for line in found["backend web"] if line.startswith(("timeout", "default-server"))] == [
        "timeout check 10s",
        "default-server check inter 1100ms fall 2 rise 2",
        "default-server fastinter 200ms on-marked-down shutdown-sessions",
    ]


def test_who_says_how_often_servers_are_asked_keeps_that_where_sessions_end_with_them():
    found = sections(service(check={"type": "http", "shutdown_sessions": True, "interval": 3}))
    assert "default-server check inter 3000ms fall 3 rise 2" in found["backend web"]


@pytest.mark.parametrize("seconds, idle, interval", [(1, 1, 1), (2.5, 1, 1), (10, 5, 1), (60, 30, 6)])
def test_a_server_that_acknowledges_nothing_is_probed_before_its_time_is_over(seconds, idle, interval):
    found = sections(service(check={"tcp_user_timeout": seconds}))
    for backend in (found["backend web"], found["backend web-fallback"]):
        assert ["option srvtcpka", f"srvtcpka-idle {idle}s", f"srvtcpka-intvl {interval}s"] == [
            line for line in backend if "srvtcpka" in line
        ]
        for server in [line for line in backend if line.startswith("server ")]:
            assert f" tcp-ut {1000 * seconds:.0f}ms" in server  # HAProxy ignores it among those of default-server


def test_without_a_time_the_kernel_decides_when_a_server_has_gone():
    assert not [line for line in sections(service(check={}))["backend web"] if "tcp" in line and "mode" not in line]


def test_a_frontend_uses_it_while_no_server_of_the_first_one_is_up():
    found = sections(service(routes=[SHOP]))["frontend web"]
    assert [line for line in found if "backend" in line] == [
        "use_backend shop-fallback if { path_beg /shop } { nbsrv(shop) eq 0 }",
        "use_backend shop if { path_beg /shop }",
        "use_backend web-fallback if { nbsrv(web) eq 0 }",
        "default_backend web",
    ]


@pytest.mark.parametrize(
    "changes, variables",
    [
        ({"check": {"interval": 0.2}}, {}),
        ({"check": {"interval": 5}}, {}),
        ({"check": {"fall": 6}}, {}),
        ({"check": {"fast_interval": 1}}, {}),
        ({"backend_lines": ["default-server inter 5s"]}, {}),
        ({"backend_lines": ["  default-server fall 3"]}, {}),
        ({"servers": [{"address": "192.0.2.31", "options": ["downinter 9s"]}]}, {}),
        ({}, {"haproxy_defaults_lines": ["default-server fastinter 1s"]}),
    ],
)
def test_whoever_says_how_often_servers_are_asked_has_none_and_waits_as_long_as_in_the_first_release(
    changes, variables
):
    found = sections(service(**changes), **variables)
    assert "backend web-fallback" not in found and "timeout check 10s" in found["backend web"]
    assert [line for line in found["frontend web"] if "backend" in line] == ["default_backend web"]


@pytest.mark.parametrize(
    "changes, variables",
    [
        ({}, {"haproxy_timeout_check": "2s"}),
        ({"check": {"interval": 5}}, {"haproxy_timeout_check": "2s"}),
        ({"backend_lines": ["timeout  check 3s"]}, {}),
        ({}, {"haproxy_defaults_lines": ["timeout check 3s"]}),
        ({"check": {"type": "none"}}, {}),
    ],
)
def test_whoever_says_how_long_an_answer_may_take_keeps_exactly_that(changes, variables):
    found = sections(service(**changes), **variables)
    assert "backend web-fallback" not in found
    assert [line for line in found["backend web"] if line.startswith("timeout")] == changes.get("backend_lines", [])


def test_a_connection_may_take_as_long_for_a_late_server_as_for_its_clients():
    """HAProxy limits that of a check by its interval."""
    check = pace.of_fallback({"type": "tcp", "interval": pace.INTERVAL, "fall": pace.FALL, "fast_interval": 0})
    assert check["interval"] > pace.CONNECT_S


def test_a_server_that_says_no_leaves_it_hardly_later_than_the_service():
    check = {"type": "http", "interval": pace.INTERVAL, "fall": pace.FALL, "fast_interval": 0}
    second = pace.of_fallback(check)
    one, other = pace.FALL * check["interval"], second["interval"] + (second["fall"] - 1) * second["fast_interval"]
    assert other <= one + check["interval"]


def test_a_monitor_counts_the_servers_that_get_connections():
    given = {"name": "ready", "port": 9999, "at_least": {"web": 2, "own": 2, "one": 1}}
    two = ["192.0.2.31", "192.0.2.32"]
    services = [
        service(servers=two),
        {"name": "own", "port": 81, "servers": two, "check": {"interval": 5}},
        {"name": "one", "port": 82, "servers": two},
    ]
    found = sections(*services, monitors=[given])["listen ready"]
    assert [line for line in found if line.startswith("monitor fail")] == [
        "monitor fail if { nbsrv(web) eq 0 } { nbsrv(web-fallback) lt 2 }",
        "monitor fail if { nbsrv(web) gt 0 } { nbsrv(web) lt 2 }",
        "monitor fail if { nbsrv(own) lt 2 }",
        "monitor fail if { nbsrv(one) eq 0 } { nbsrv(one-fallback) lt 1 }",
    ]


@pytest.mark.parametrize(
    "others, monitors",
    [
        ([{"name": "web-fallback", "port": 81, "servers": ["192.0.2.31"]}], []),
        ([], [{"name": "web-fallback", "port": 9999}]),
    ],
)
def test_nothing_else_may_have_its_name(others, monitors):
    assert haproxy_model([service(), *others], monitors)["faults"] == [
        "haproxy_services has the name 'web-fallback', which HAProxy's fallback of web has: choose another one."
    ]
    assert haproxy_model([service(check={"interval": 5}), *others], monitors)["faults"] == []
    assert fallback.name_of("web") == "web-fallback"
