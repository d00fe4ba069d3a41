# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TCP checks against real sockets."""

from __future__ import annotations

import errno
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.network import BadResponse, NetworkProbe, after
from support.agent.loops import LIMIT, SECOND, Runs, run_until
from support.waiting import LIMIT_S


@pytest.fixture(params=["127.0.0.1", "::1"])
def server(request):
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        with socket.create_server((request.param, 0), family=family) as listening:
            listening.settimeout(LIMIT_S)
            yield listening
    except OSError:
        pytest.skip(f"no {request.param} here")


@pytest.fixture
def closed_port():
    """An address and a port without a listener; it stays ours, so that no other program listens there."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()


@pytest.fixture
def deaf():
    """A server that takes no more connections: what is sent to it is dropped, as by a firewall."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:
        clients = []
        for _client in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(listening.getsockname())
            clients.append(client)
        yield listening.getsockname()
        for client in clients:
            client.close()


def probe(loop, at, timeout=LIMIT, **others):
    return Runs(loop, NetworkProbe(loop, at[0], at[1], timeout, **others))


def test_a_server_that_takes_the_connection_is_up(loop, server, no_leak):
    outcome = probe(loop, server.getsockname()).one()
    assert (outcome.success, outcome.detail) == (True, "connected")
    assert 0 < outcome.duration < LIMIT


def test_the_connection_is_reset_so_that_nothing_of_it_remains(loop, server):
    probe(loop, server.getsockname()).one()
    accepted = server.accept()[0]
    with accepted, pytest.raises(ConnectionResetError):
        accepted.recv(1)


def test_a_closed_port_is_down(loop, closed_port, no_leak):
    outcome = probe(loop, closed_port).one()
    assert (outcome.success, outcome.detail) == (False, "connection refused")


def test_silence_is_down_when_the_time_is_over(loop, deaf, no_leak):
    outcome = probe(loop, deaf, SECOND // 10).one()
    assert (outcome.success, outcome.detail) == (False, "no connection within 0.1 s")
    assert outcome.duration >= SECOND // 10


def test_a_server_that_cannot_be_reached_is_known_before_the_time_is_over(loop, deaf, no_leak):
    outcome = probe(loop, deaf, connect_timeout=SECOND // 10).one()
    assert (outcome.success, outcome.detail) == (False, "no connection within 0.1 s")


@pytest.mark.parametrize("answers", [True, False])
def test_one_that_was_reached_has_the_whole_time_for_its_answer(loop, server, no_leak, answers):
    def dialogue(stream):
        stream.expect("no answer")
        return (yield from stream.receive(1)).decode()

    accepted = []

    def answer():
        accepted.append(server.accept()[0])
        accepted[0].send(b"x")

    if answers:
        loop.after(SECOND // 5, answer)
    outcome = probe(loop, server.getsockname(), SECOND // 2, dialogue=dialogue, connect_timeout=SECOND // 20).one()
    for each in accepted:
        each.close()
    assert (outcome.success, outcome.detail) == (True, "x") if answers else (False, "no answer within 0.5 s")
    assert outcome.duration >= SECOND // 5


def test_a_socket_that_met_itself_is_no_server(loop):
    def meet(address, port):
        alone = socket.socket()
        alone.bind((address, port))
        alone.setblocking(False)
        assert alone.connect_ex(alone.getsockname()) in (0, errno.EINPROGRESS)
        return alone

    outcome = probe(loop, ("127.0.0.1", 0), connect=meet).one()
    assert (outcome.success, outcome.detail) == (False, "connection refused")


def test_an_address_that_cannot_be_reached_is_down(loop, no_leak):
    def unreachable(_address, _port):
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    outcome = probe(loop, ("192.0.2.1", 1), connect=unreachable).one()
    assert (outcome.success, outcome.detail, outcome.known) == (False, "network is unreachable", True)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL])
def test_a_host_without_sockets_or_ports_says_nothing_of_the_server(loop, no_leak, number):
    def exhausted(_address, _port):
        raise OSError(number, "")

    outcome = probe(loop, ("192.0.2.1", 1), connect=exhausted).one()
    assert (outcome.success, outcome.known) == (False, False)


def test_what_the_talk_finds_unfit_is_down(loop, server, no_leak):
    def dialogue(_stream):
        yield from ()
        raise BadResponse("not what was wanted")

    assert probe(loop, server.getsockname(), dialogue=dialogue).one()[:2] == (False, "not what was wanted")


def test_the_time_covers_the_talk_too_and_says_what_was_lacking(loop, server, no_leak):
    def dialogue(stream):
        stream.expect("no greeting")
        return (yield from stream.receive(1)).decode()

    outcome = probe(loop, server.getsockname(), SECOND // 10, dialogue=dialogue).one()
    assert (outcome.success, outcome.detail) == (False, "no greeting within 0.1 s")


def test_a_greeting_is_the_first_that_the_server_reads(loop, server, no_leak):
    def dialogue(stream):
        yield from stream.send(b"question")
        return "asked"

    assert probe(loop, server.getsockname(), dialogue=after(b"greeting ", dialogue)).one()[:2] == (True, "asked")
    with server.accept()[0] as accepted:
        assert accepted.recv(100) == b"greeting question"


def test_more_is_sent_than_the_connection_takes_at_once(loop, server, no_leak):
    size = 400_000

    def dialogue(stream):
        stream.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10_000)
        yield from stream.send(b"x" * size)
        return "sent"

    runs = probe(loop, server.getsockname(), dialogue=dialogue)
    runs.start()
    accepted = server.accept()[0]
    with accepted:
        accepted.setblocking(False)
        heard = []

        def hear(_ready):
            heard.append(len(accepted.recv(1_000_000)))

        loop.watch(accepted.fileno(), hear)
        run_until(loop, lambda: sum(heard) == size and runs.outcomes)
        loop.forget(accepted.fileno())
    assert runs.outcomes[0].detail == "sent"


def test_a_run_that_is_given_up_says_nothing_and_leaves_nothing(loop, deaf, no_leak):
    runs = probe(loop, deaf, SECOND // 20)
    runs.start()
    runs.probe.stop()
    late = loop.now() + SECOND // 10
    run_until(loop, lambda: loop.now() > late)
    assert runs.outcomes == []


def test_a_probe_can_be_run_again(loop, server, no_leak):
    runs = probe(loop, server.getsockname())
    assert [runs.one().success for _run in range(3)] == [True] * 3


def test_a_name_is_never_looked_up(loop, server, no_leak):
    outcome = probe(loop, ("localhost", server.getsockname()[1])).one()
    assert not outcome.success
    assert "illegal IP address" in outcome.detail
