# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Monitor endpoints and the page at real sockets."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.http_endpoints import HttpEndpoints
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.listeners import Listeners
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.master import listeners_of
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import http
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import request_server
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from support.agent.clients import while_running
from support.agent.loops import Looks
from support.ports import free_ports
from support.proxy.masters import ask, get, is_refused
from support.proxy.proxies import LIMIT, LOCAL
from support.waiting import until

PAGES = {"/": "the page", "/metrics": "figures"}


class EndpointsCase:
    """Endpoints whose settings and servers a test changes."""

    def __init__(self):
        self.loop, self.listeners, self.there, self.serves = Loop(), Listeners({}), {"web": 2, "api": 0}, True
        pages = {path: http.Route(lambda text=text: http.Page(text), slow=True) for path, text in PAGES.items()}
        self.endpoints = HttpEndpoints(
            self.loop, lambda service: self.there[service], lambda: self.serves, pages, self.render
        )

    def render(self, page):
        """Answer with a slow page, a moment later."""
        return lambda reply: self.loop.after(10_000, lambda: reply(page()))

    def apply(self, *monitors, page=None):
        given = settings.Settings((), monitors=monitors, page=page)
        prepared = self.listeners.prepare(listeners_of(given))
        self.endpoints.apply(given, prepared)
        self.listeners.keep(prepared)

    def visit(self, action, *arguments):
        return while_running(self.loop, lambda: action(*arguments))


@pytest.fixture
def case():
    before = set(os.listdir("/proc/self/fd"))
    made = EndpointsCase()
    yield made
    made.endpoints.close()
    made.listeners.close()
    made.loop.close()
    assert set(os.listdir("/proc/self/fd")) <= before


@pytest.fixture
def port():
    return free_ports(1)[0]


def monitor(port, name="alive", path="/", bind=(LOCAL,), **at_least):
    wanted = tuple(settings.Condition(*pair) for pair in at_least.items())
    return settings.Monitor(name, bind, port, path, wanted)


def test_a_monitor_moves_from_one_address_to_every_one_and_to_another(case, port):
    other = "127.0.0.2"
    for bind, asked in ((LOCAL, [LOCAL]), ("*", [LOCAL, other]), ("*", [LOCAL]), (other, [other])):
        case.apply(monitor(port, bind=(bind,)))
        for address in asked:
            assert case.visit(get, port, "/", address) == (200, "alive: good\n")
    assert is_refused(port)


def test_a_monitor_without_conditions_is_good_while_the_proxy_runs(case, port):
    case.apply(monitor(port))
    assert case.visit(get, port) == (200, "alive: good\n")
    assert case.visit(get, port, "/other") == (404, "Not Found\n")
    case.endpoints.stopping = True
    assert case.visit(get, port) == (503, "alive: the proxy is stopping\n")


def test_without_a_worker_that_serves_a_monitor_says_so(case, port):
    case.apply(monitor(port))
    case.serves = False
    assert case.visit(get, port) == (503, "alive: no worker serves\n")


def test_a_monitor_counts_servers_at_that_moment(case, port):
    case.apply(monitor(port, web=2), monitor(port, "both", "/both", web=1, api=1))
    assert case.visit(get, port) == (200, "alive: good\n")
    assert case.visit(get, port, "/both") == (503, "both: api has 0 of 1 servers\n")
    case.there = {"web": 1, "api": 1}
    assert case.visit(get, port) == (503, "alive: web has 1 of 2 servers\n")
    assert case.visit(get, port, "/both") == (200, "both: good\n")


def test_a_reload_changes_what_is_answered_and_keeps_the_socket(case):
    first, second = free_ports(2)
    case.apply(monitor(first, web=1))

    def visit():
        with socket.create_connection((LOCAL, first), LIMIT) as early:
            early.sendall(b"GET / HTTP/1.1\r\n")
            # A client that is connected already is answered by the new ones.
            until(lambda: served(second))
            answer = get(second)
            early.sendall(b"\r\n")
            return answer, early.recv(1000)

    (before,) = case.endpoints.request_servers
    case.loop.after(200_000, lambda: case.apply(monitor(first, api=1), monitor(second)))
    answer, early = case.visit(visit)
    assert before in case.endpoints.request_servers
    assert answer[0] == 200 and early.startswith(b"HTTP/1.1 503 ")
    case.apply(monitor(second))
    with pytest.raises(ConnectionRefusedError):
        get(first)


def test_a_removed_endpoint_leaves_nothing_behind(case):
    """The next socket may be given the same descriptor."""
    for port in free_ports(3):
        case.apply(monitor(port))
        assert case.visit(get, port)[0] == 200


def served(port):
    with socket.socket() as probe:
        return probe.connect_ex((LOCAL, port)) == 0


def test_the_page_has_an_address_of_its_own(case):
    first, second = free_ports(2)
    case.apply(monitor(first), page=settings.Page((LOCAL, "::1"), second))
    assert case.visit(get, second) == (200, "the page")
    assert case.visit(get, second, "/metrics", "::1") == (200, "figures")
    assert case.visit(get, first, "/metrics")[0] == 404


def test_endless_requests_and_garbage_neither_delay_others_nor_stay(case, port, monkeypatch):
    clock = Looks()
    monkeypatch.setattr(case.loop, "now", clock)
    case.apply(monitor(port))

    def visit():
        slow = [socket.create_connection((LOCAL, port), LIMIT) for _each in range(50)]
        for at, client in enumerate(slow):
            client.sendall((b"", b"GET", b"GET / HTTP/1.1\r\nX: ", b"\x16\x03\x01\x02\x00")[at % 4])
        answers = {get(port)[0] for _each in range(20)}
        garbage = ask(port, b"\x00\xff" * 2000 + b"\n")
        endless = ask(port, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 3000)
        clock.now += request_server.CLIENT_TIMEOUT
        get(port)  # wakes the loop up
        ends = {_rest(client) for client in slow}
        for client in slow:
            client.close()
        return answers, garbage[:12], endless[:12], ends

    answers, garbage, endless, ends = case.visit(visit)
    assert answers == {200}
    assert (garbage, endless, ends) == (b"HTTP/1.1 400", b"HTTP/1.1 431", {b""})
    assert all(len(each) == 0 for each in case.endpoints._request_servers.values())


def _rest(client):
    try:
        return client.recv(1)
    except ConnectionResetError:
        return b""


def test_more_silent_clients_than_there_is_room_for_keep_no_check_out(case, port, monkeypatch):
    monkeypatch.setattr(request_server, "MAX_CLIENTS", 10)
    case.apply(monitor(port))

    def visit():
        silent = [socket.create_connection((LOCAL, port), LIMIT) for _each in range(40)]
        found = [get(port)[0] for _each in range(20)]
        for client in silent:
            client.close()
        return found

    assert case.visit(visit) == [200] * 20
