# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that answer their checks late are not lost: while no server is up, clients get them, and nobody is refused.

Both engines, with the pace that they have by default. One who says no, or never answers, is not late. Lasting
connections end with a server that has gone, where that is required, and never with one that is late.
"""

from __future__ import annotations

import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import pace
from support.netns import two_servers
from support.netns.links import PORT, sh
from support.netns.namespaces import inside
from support.netns.two_servers import ONE, OTHER, QUICK, READY, Clients, Embedded, Native, ask
from support.waiting import LIMIT_S, until

link, pages = two_servers.link, two_servers.pages
LATE_S = 1
FIRST_RELEASE = {"interval": 2, "fall": 3}
HALF_LATE = (200, 0.3)  # for a quick check, and soon enough that several can be waited for
LATE, NO, HUNG = (200, LATE_S), (503, 0), (200, 10 * LIMIT_S)
BOTH = pytest.mark.parametrize("engine", [Native, Embedded])


class Lasting:
    """Lasting connections of a client, by the server that each has got."""

    def __init__(self, link):
        self._connections = {}
        while {*self._connections} != {ONE, OTHER}:
            with inside(link.client.namespace):
                connection = socket.create_connection((link.lb1.addresses[0], PORT), LIMIT_S)
            self._connections[self._ask(connection)] = connection

    def __enter__(self):
        return self

    def __exit__(self, *_fault):
        for connection in self._connections.values():
            connection.close()

    def answers(self, name):
        return self._ask(self._connections[name]) == name

    def has_ended(self, name):
        """Wait until a connection ends."""
        return self._read(self._connections[name]) == ""

    def send(self, name):
        self._connections[name].sendall(b"STAY")

    def _ask(self, connection):
        try:
            connection.sendall(b"STAY")
        except OSError:
            return ""
        return self._read(connection)

    def _read(self, connection):
        try:
            return connection.recv(4096).decode()
        except ConnectionError:
            return ""


@BOTH
@pytest.mark.parametrize("check", [{"shutdown_sessions": True}, {"tcp_user_timeout": 2}])
def test_a_late_server_keeps_its_lasting_connections(link, pages, tmp_path, engine, check):
    with engine(link, tmp_path, **check) as running, Lasting(link) as lasting:
        until(lambda: running.states() == {ONE: "up", OTHER: "up"})
        pages.answer(one=HALF_LATE)
        before = pages.asked[ONE]

        def has_missed_enough():
            pages.answer(one=HALF_LATE)
            return running.states()[ONE] == "late" or pages.asked[ONE] > before + 2 * pace.FALL  # of two checks

        until(has_missed_enough)
        assert lasting.answers(ONE) and lasting.answers(OTHER)


@BOTH
def test_with_a_server_that_says_no_end_its_lasting_connections_where_that_is_wanted(link, pages, tmp_path, engine):
    with engine(link, tmp_path, shutdown_sessions=True), Lasting(link) as lasting:
        pages.answer(one=NO)
        assert lasting.has_ended(ONE) and lasting.answers(OTHER)


@BOTH
@pytest.mark.parametrize("is_busy", [False, True])
def test_lasting_connections_end_whose_server_acknowledges_nothing_any_more(link, pages, tmp_path, engine, is_busy):
    lost = link.members[1]
    with engine(link, tmp_path, tcp_user_timeout=1), Lasting(link) as lasting:
        sh("ip", "-n", link.bridge, "link", "set", lost.port, "nomaster")
        try:
            if is_busy:
                lasting.send(ONE)
            assert lasting.has_ended(ONE) and lasting.answers(OTHER)
        finally:
            sh("ip", "-n", link.bridge, "link", "set", lost.port, "master", "br0")


@BOTH
def test_late_servers_get_connections_while_none_is_up_and_nobody_is_refused(link, pages, tmp_path, engine):
    with engine(link, tmp_path) as running, Clients(link) as clients:
        pages.answer(one=LATE, other=LATE)
        until(lambda: running.states() == {ONE: "late", OTHER: "late"})
        clients.find(ONE, OTHER)
        assert ask(link, READY) == "200"
        pages.answer(other=QUICK)
        until(lambda: running.states() == {ONE: "late", OTHER: "up"})
        clients.find(OTHER)
        pages.answer(one=QUICK)
        until(lambda: running.states() == {ONE: "up", OTHER: "up"})
        clients.find(ONE, OTHER)
        pages.answer(one=LATE, other=LATE)
        clients.find(ONE, OTHER)
        assert "" not in clients.answers


@BOTH
def test_servers_that_say_no_get_none_and_a_late_one_beside_them_gets_all(link, pages, tmp_path, engine):
    with engine(link, tmp_path) as running, Clients(link) as clients:
        pages.answer(one=NO, other=LATE)
        until(lambda: running.states() == {ONE: "down", OTHER: "late"})
        clients.find(OTHER)
        until(lambda: ask(link, READY) == "503")
        pages.answer(other=NO)
        until(lambda: running.states() == {ONE: "down", OTHER: "down"})
        clients.find("")
        pages.answer(one=LATE)
        until(lambda: running.states() == {ONE: "late", OTHER: "down"})
        clients.find(ONE)


@BOTH
def test_a_server_that_never_answers_gets_none_beside_one_that_does_and_alone_until_its_time_is_over(
    link, pages, tmp_path, engine, monkeypatch
):
    monkeypatch.setattr(pace, "LATE_S", 2)
    monkeypatch.setattr(pace, "LATE", "2s")
    with engine(link, tmp_path) as running, Clients(link) as clients:
        pages.answer(one=HUNG)
        until(lambda: running.states()[ONE] != "up")
        clients.find(OTHER)
        until(lambda: running.states()[ONE] == "down")
        assert "" not in clients.answers
        pages.answer(other=HUNG)
        until(lambda: running.states() == {ONE: "down", OTHER: "down"})
        clients.find("")


@BOTH
def test_from_its_start_on_a_balancer_whose_servers_are_late_refuses_nobody(link, pages, tmp_path, engine):
    pages.answer(one=LATE, other=LATE)
    with engine(link, tmp_path) as running, Clients(link) as clients:
        until(lambda: running.states() == {ONE: "late", OTHER: "late"})
        clients.find(ONE, OTHER)
        assert "" not in clients.answers


@BOTH
def test_an_upgrade_to_quick_checks_refuses_nobody_while_all_servers_are_late(link, pages, tmp_path, engine):
    pages.answer(one=LATE, other=LATE)
    with engine(link, tmp_path, **FIRST_RELEASE) as running, Clients(link) as clients:
        clients.find(ONE, OTHER)
        until(lambda: running.states() == {ONE: "up", OTHER: "up"})
        running.reload()
        until(lambda: running.states() == {ONE: "late", OTHER: "late"})
        clients.find(ONE, OTHER)
        assert "" not in clients.answers
