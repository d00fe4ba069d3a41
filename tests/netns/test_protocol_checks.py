# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks in a server's own protocol, and the agents beside the servers, with a real HAProxy and our own balancer.

A server that accepts connections, as its kernel does for a program that hangs, is up only if it answers.
"""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import PROTOCOLS
from support.netns import two_servers
from support.netns.links import PORT
from support.netns.two_servers import ONE, OTHER, Embedded, Native
from support.talks import TALKS, StandIn, answering, check_of, failing, hanging
from support.waiting import until

link, pages = two_servers.link, two_servers.pages
CHECKED = PORT + 7
BOTH = pytest.mark.parametrize("engine", [Native, Embedded])


def find(running, **states):
    until(lambda: running.states() == states)


@contextlib.contextmanager
def stand_ins(link, *behaviours):
    """Run a server beside each of the two."""
    with contextlib.ExitStack() as stack:
        spaces = [node.namespace for node in link.members[1:]]
        yield [stack.enter_context(StandIn(*each)) for each in zip(spaces, (CHECKED, CHECKED), behaviours)]


@BOTH
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_server_is_up_while_it_answers_and_down_while_it_refuses_or_hangs(link, pages, tmp_path, engine, kind):
    talk = TALKS[kind]
    good, given = answering(talk), {**check_of(kind), "path": "/", "port": CHECKED}
    with stand_ins(link, good, good) as (one, two), engine(link, tmp_path, **given) as running:
        until(lambda: len(one.heard) > 5 and len(two.heard) > 5)
        find(running, one="up", other="up")
        assert {*one.heard} == {question for question, _answer in talk.turns}
        one.behave = failing(talk)
        find(running, one="down", other="up")
        one.behave = good
        find(running, one="up", other="up")
        two.behave = hanging  # it may still be late
        until(lambda: running.states()[OTHER] in ("down", "late"))
        assert running.states()[ONE] == "up"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
@BOTH
def test_a_check_asks_with_its_method(link, pages, tmp_path, engine, method):
    def behave(connection, heard):
        heard.append(connection.recv(4096).split()[0].decode())
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" if heard[-1] == method else b"HTTP/1.0 405 No\r\n\r\n")

    given = {"method": method, "port": CHECKED}
    with stand_ins(link, behave) as (server,), engine(link, tmp_path, **given) as running:
        until(lambda: len(server.heard) > 5)
        assert running.states()[ONE] == "up"
        assert {*server.heard} == {method}


def test_haproxy_does_what_the_agents_of_the_servers_say(link, pages, tmp_path):
    def say(words):
        return lambda connection, _heard: connection.sendall(words)

    agent = {"port": CHECKED, "interval": 0.1}
    with stand_ins(link, say(b"up\n"), say(b"up\n")) as (one, _two), Native(link, tmp_path, agent=agent) as running:
        find(running, one="up", other="up")
        for words, state in ((b"drain\n", "drain"), (b"ready\n", "up"), (b"down\n", "down"), (b"up\n", "up")):
            one.behave = say(words)
            find(running, one=state, other="up")
