# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real proxy of the agent gets the servers that it should have."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.proxy import Balancer
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Proxy, Server, Target
from support.ports import free_ports
from support.proxy.masters import QUICK_CHECK, Echo, Load, Running, ask
from support.proxy.proxies import LOCAL
from support.waiting import until

A, B, C = (Server(name, f"127.0.0.{at}") for at, name in enumerate("abc", 1))


class Case:
    """A proxy in front of three servers on one port, and what follows."""

    def __init__(self, folder) -> None:
        self.port, self.backend = free_ports(2)
        self.echoes = [Echo(name, self.backend, f"127.0.0.{at}") for at, name in enumerate("aba", 1)]
        servers = [{"name": "a", "address": A.address, "port": self.backend, "weight": 7}]
        web = {"name": "web", "bind": LOCAL, "port": self.port, "servers": servers, "check": QUICK_CHECK}
        self.proxy = Running(folder, {"services": [web]})
        self.balancer = Balancer(Proxy((Target("web"),), str(self.proxy.path), self.proxy.socket))

    def close(self, *fault) -> None:
        self.proxy.__exit__(None, *fault)
        for echo in self.echoes:
            echo.close()

    def present(self):
        return {each["name"]: each["address"] for each in self.proxy.service()["servers"]}

    def written(self):
        return json.loads(self.proxy.path.read_text())["services"][0]["servers"]


@pytest.fixture
def case(tmp_path):
    found = Case(tmp_path)
    yield found
    found.close()


def test_a_server_that_joins_serves_and_stands_in_the_file(case):
    assert case.balancer.apply([A, B]).lines == ["web: b at 127.0.0.2 is added: 2 servers."]
    assert case.present() == {"a": "127.0.0.1", "b": "127.0.0.2"}
    until(lambda: ask(case.port) == b"b:hello")
    assert case.written() == [
        {"name": "a", "address": A.address, "port": case.backend, "weight": 7},
        {"name": "b", "address": B.address, "port": case.backend, "weight": 7},
    ]
    assert case.balancer.apply([A, B]).lines == []


def test_a_server_at_another_address_keeps_its_options(case):
    assert case.balancer.apply([A._replace(address=B.address)]).lines == ["web: a is at 127.0.0.2 now: 1 server."]
    assert case.written() == [{"name": "a", "address": B.address, "port": case.backend, "weight": 7}]
    until(lambda: ask(case.port) == b"b:hello")


def test_no_connection_fails_while_servers_join_and_leave(case):
    case.balancer.apply([A, B])
    with Load(case.port) as load:
        for wanted in ([A, B, C], [A, B], [A, B, C]):
            case.balancer.apply(wanted)
            load.more()
    assert load.faults == []
    assert set(case.present()) == {"a", "b", "c"}


def test_a_file_that_the_proxy_would_refuse_never_reaches_its_path(case):
    before = case.proxy.path.read_text()
    with pytest.raises(Refused) as refused:
        case.balancer.apply([A, Server("x", "0.0.0.0")])
    assert str(refused.value).startswith(f"{case.proxy.path} stays as it is, because the new one is refused: services")
    assert case.proxy.path.read_text() == before and set(case.present()) == {"a"}


def test_a_service_that_is_not_there_is_a_sentence(case):
    balancer = Balancer(Proxy((Target("wab"),), str(case.proxy.path), case.proxy.socket))
    with pytest.raises(Refused) as refused:
        balancer.apply([A])
    assert str(refused.value) == f"{case.proxy.path}: it has no service wab: correct proxy.services."


def test_a_reload_that_was_missed_is_made_good(case):
    before = case.proxy.path.read_text()
    lost = Balancer(Proxy((Target("web"),), str(case.proxy.path), "/nonexistent/socket"))
    with pytest.raises(Refused, match="the proxy keeps the servers that it had: no agent answers at"):
        lost.apply([A, B])
    assert case.proxy.path.read_text() != before and set(case.present()) == {"a"}
    assert case.balancer.apply([A, B]).lines == []
    assert set(case.present()) == {"a", "b"}


def test_a_reload_by_the_socket_says_why_it_is_refused(case):
    case.proxy.path.write_text("{")
    with pytest.raises(Refused, match="the proxy keeps the servers that it had: .*proxy.json is not JSON"):
        case.balancer._reload()
    assert set(case.present()) == {"a"}


def test_an_empty_list_changes_nothing(case):
    with pytest.raises(Refused):
        case.balancer.apply([])
    assert set(case.present()) == {"a"}


def test_it_says_which_servers_answer_and_which_the_file_has(case):
    case.balancer.apply([A, B, Server("gone", "127.0.0.9")])
    assert [each.name for each in case.balancer.written()] == ["a", "b", "gone"]
    wanted = {"127.0.0.1": True, "127.0.0.2": True, "127.0.0.9": False}
    until(lambda: dict(case.balancer.answering()) == wanted)
