# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What checks and people say of servers, seen by the clients of a whole proxy."""

from __future__ import annotations

import contextlib
import os
import signal
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import proxy_header
from support.ports import free_ports
from support.proxy.masters import Echo, Running, ask, get
from support.proxy.proxies import LIMIT, LOCAL
from support.waiting import until

NEVER = {"interval": 3600, "rise": 1, "fall": 1}  # after the first time, unless a failure is reported
QUICK = {"interval": 0.1, "rise": 2, "fall": 2}


@pytest.fixture
def case(tmp_path):
    """Start a proxy in front of the servers a and b, by a check; they are stopped at the end."""
    with contextlib.ExitStack() as stack:

        def begin(check, servers=("a", "b"), **changes):
            echoes = {name: stack.enter_context(Echo(name, free_ports(1)[0])) for name in servers}
            given = [{"name": name, "address": LOCAL, "port": echo.port} for name, echo in echoes.items()]
            (port, monitored) = free_ports(2)
            service = {"name": "web", "bind": LOCAL, "port": port, "servers": given, "check": check, **changes}
            monitor = {"name": "all", "bind": LOCAL, "port": monitored, "at_least": {"web": len(servers)}}
            proxy = stack.enter_context(Running(tmp_path, {"services": [service], "monitors": [monitor]}))
            proxy.port, proxy.monitored, proxy.echoes = port, monitored, echoes
            until(
                lambda: all(proxy.server(f"web/{name}")["check"]["up"] for name in servers) or check["type"] == "none"
            )
            return proxy

        yield begin


def names(proxy, count=6):
    return {ask(proxy.port)[:1].decode() for _each in range(count)}


def test_a_server_that_a_check_finds_dead_gets_nothing_until_it_is_back(case):
    proxy = case({**QUICK, "type": "tcp"})
    assert names(proxy) == {"a", "b"} and get(proxy.monitored)[0] == 200
    proxy.echoes["a"].close()
    until(lambda: proxy.server("web/a")["state"] == "down")
    assert names(proxy) == {"b"}
    assert get(proxy.monitored) == (503, "all: web has 1 of 2 servers\n")
    assert proxy.server("web/a")["check"]["detail"] == "connection refused"
    for key, found in (("web/a", False), ("web/b", True)):  # whatever is believed, each check is told of
        before = proxy.server(key)["check"]
        until(lambda key=key, at=before["at"]: proxy.server(key)["check"]["at"] > at)
        assert before["up"] is found
    with Echo("a", proxy.echoes["a"].port):
        until(lambda: proxy.server("web/a")["state"] == "up")
        until(lambda: names(proxy) == {"a", "b"})
        assert get(proxy.monitored)[0] == 200


def test_a_connection_that_fails_is_as_good_as_a_failed_check(case):
    proxy = case({**NEVER, "type": "tcp"})
    proxy.echoes["a"].close()
    assert names(proxy) == {"b"}
    until(lambda: proxy.server("web/a")["state"] == "down")
    assert proxy.lines("web/a is down: connection refused. 1 of 2 servers of web are up.")


def test_a_check_over_http_decides_by_the_status(case):
    """The echo's answer to a request is no HTTP at all, so the servers are down."""
    proxy = case({**QUICK, "type": "none"})
    assert names(proxy) == {"a", "b"}
    service = {"name": "web", "bind": LOCAL, "port": proxy.port, "check": {**QUICK, "type": "http"}}
    servers = [{"address": LOCAL, "port": proxy.echoes["a"].port}]
    proxy.reload({"services": [{**service, "servers": servers}]})
    until(lambda: proxy.service()["state"] == "down")
    assert "not an answer of HTTP" in proxy.server(f"web/{LOCAL}")["check"]["detail"]


def test_when_all_servers_are_down_a_client_is_reset_at_once_and_it_is_said_once(case):
    proxy = case({**QUICK, "type": "tcp"}, servers=("a",))
    proxy.echoes["a"].close()
    until(lambda: proxy.service()["state"] == "down")
    for _each in range(5):
        with pytest.raises(ConnectionResetError), socket.create_connection((LOCAL, proxy.port), LIMIT) as client:
            assert client.recv(1)
    until(lambda: proxy.service()["refused"] == 5)
    assert len(proxy.lines("web has no server that is up: connections to it are refused.")) == 1


def test_a_drained_server_keeps_its_sessions_and_gets_nothing_new(case):
    proxy = case({**QUICK, "type": "tcp"})
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection((LOCAL, proxy.port), LIMIT)) for _each in range(4)]
        mine = next(client for client in clients if _who(client) == "a")
        assert proxy.order("web/a", "drain") == "web/a is drain."
        assert names(proxy) == {"b"}
        assert _who(mine) == "a"
        assert proxy.order("web/a", "ready") == "web/a is up."
        assert names(proxy) == {"a", "b"}


def _who(client):
    client.sendall(b"?")
    return client.recv(10).decode()[:1]


def test_sessions_are_cut_where_that_is_wanted_of_a_server_that_goes_down(case):
    proxy = case({**QUICK, "type": "tcp", "shutdown_sessions": True})
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection((LOCAL, proxy.port), LIMIT)) for _each in range(4)]
        whose = {client: _who(client) for client in clients}
        assert proxy.order("web/a", "maint") == "web/a is maint."
        for client, name in whose.items():
            if name == "a":
                with pytest.raises(ConnectionResetError):
                    client.recv(1)
            else:
                assert _who(client) == "b"


def test_an_order_is_confirmed_once_the_workers_have_executed_it(case):
    proxy = case({**QUICK, "type": "tcp"})
    (worker,) = (each["pid"] for each in proxy.report()["workers"])
    os.kill(worker, signal.SIGSTOP)
    try:
        assert proxy.order("web/a", "maint") == "web/a is maint. 1 worker has not executed it yet."
    finally:
        os.kill(worker, signal.SIGCONT)
    assert proxy.order("web/b", "drain") == "web/b is drain."
    with pytest.raises(ConnectionResetError):
        ask(proxy.port)


def test_an_order_outlives_a_reload(case):
    proxy = case({**QUICK, "type": "tcp"})
    proxy.order("web/a", "maint")
    proxy.reload()
    assert proxy.server("web/a")["state"] == "maint" and names(proxy) == {"b"}


def test_a_slow_start_gives_little_at_first(case):
    proxy = case({**QUICK, "type": "tcp", "slow_start": 60})
    proxy.order("web/a", "maint")
    until(lambda: names(proxy) == {"b"})
    proxy.order("web/a", "ready")
    assert proxy.server("web/a")["weight"] == {"configured": 1, "effective": 0.05}
    heard = [ask(proxy.port)[:1] for _each in range(40)]
    assert heard.count(b"a") <= 6


def test_a_check_of_a_server_that_demands_a_proxy_header_begins_with_one(tmp_path):
    (port, server) = free_ports(2)
    service = {"name": "web", "bind": LOCAL, "port": port, "servers": [{"address": LOCAL, "port": server}]}
    given = {"services": [{**service, "send_proxy": True, "check": {**NEVER, "type": "http", "path": "/healthz"}}]}
    with socket.create_server((LOCAL, server)) as listening, Running(tmp_path, given, wait=False) as proxy:
        listening.settimeout(LIMIT)
        with listening.accept()[0] as accepted, accepted.makefile("rb") as received:
            begin = proxy_header.local() + b"GET /healthz HTTP/1.1\r\n"
            assert received.read(len(begin)) == begin  # it may come in pieces
            while received.readline().strip():  # unread headers would reset the connection at its end
                pass
            accepted.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        until(lambda: proxy.generation() and proxy.service()["servers"][0]["check"]["up"])


def test_until_its_first_check_has_ended_a_server_is_up(tmp_path):
    (port, server) = free_ports(2)
    # Its checks take a second to fail, because a full queue answers nothing.
    with socket.create_server((LOCAL, server), backlog=0) as full, contextlib.ExitStack() as stack:
        for _each in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        check = {"type": "tcp", "timeout": 30, "interval": 30}
        service = {"name": "web", "bind": LOCAL, "port": port, "servers": [{"address": LOCAL, "port": server}]}
        with Running(tmp_path, {"services": [{**service, "check": check}]}) as proxy:
            assert proxy.service()["state"] == "up"
