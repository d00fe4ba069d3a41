# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request server answers every client, and never waits for one."""

from __future__ import annotations

import errno
import os
import select
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import request_server
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.request_server import RequestServer
from support.agent.clients import while_running
from support.agent.loops import Looks, Time, run_until
from support.waiting import LIMIT_S, MOMENT_S, pause, until


def shout(received, ended):
    """Answer a line, or what there is at the end, in capitals."""
    return received.upper() if b"\n" in received or ended else None


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def serve(loop, listener):
    made = []

    def make(answer=shout):
        made.append(RequestServer(loop, listener, answer))
        return made[-1]

    yield make
    before = set(os.listdir("/proc/self/fd"))
    for each in made:
        inside = len(each)
        each.close()
        assert len(set(os.listdir("/proc/self/fd"))) == len(before) - inside


def come(listener):
    return socket.create_connection(listener.getsockname(), LIMIT_S)


def hear(client):
    heard = b""
    while True:
        data = client.recv(65536)
        if not data:
            return heard
        heard += data


def ask(listener, *parts):
    with come(listener) as client:
        for part in parts:
            client.sendall(part)
        return hear(client)


def test_a_question_may_come_in_parts(loop, listener, serve):
    serve()

    def visit():
        with come(listener) as client:
            for part in (b"who", b" is ", b"there\n"):
                client.sendall(part)
                pause(0.01)  # so that they are parts for the other end too
            return hear(client)

    assert while_running(loop, visit) == b"WHO IS THERE\n"


def test_what_comes_before_the_end_may_be_a_question(loop, listener, serve):
    serve()

    def visit():
        with come(listener) as client:
            client.sendall(b"no line")
            client.shutdown(socket.SHUT_WR)
            return hear(client)

    assert while_running(loop, visit) == b"NO LINE"


def test_a_reply_larger_than_the_socket_buffer_is_sent_whole(loop, listener, serve):
    serve(lambda _received, _ended: b"x" * 5_000_000)
    assert len(while_running(loop, lambda: ask(listener, b"?"))) == 5_000_000


def test_a_client_that_sends_too_much_still_gets_the_reply(loop, listener, serve):
    """Closed with something unread, the connection would be reset, and the answer lost."""
    serve()
    assert while_running(loop, lambda: ask(listener, b"hi\n" + b"x" * 3000, b"y" * 3000)).startswith(b"HI\n")


def test_a_client_that_never_ends_or_never_reads_is_dropped_and_delays_no_other(loop, listener, serve, monkeypatch):
    clock = Looks(tick=1)
    monkeypatch.setattr(loop, "now", clock)
    served = serve(lambda received, _ended: b"x" * 5_000_000 if b"\n" in received else None)

    def visit():
        with come(listener) as silent, come(listener) as slow, come(listener) as deaf:
            slow.sendall(b"I am just")
            deaf.sendall(b"tell me\n")
            length = len(ask(listener, b"quick\n"))
            left, _writable, _faulty = select.select([silent, slow], [], [], 0)
            clock.now += request_server.CLIENT_TIMEOUT
            ask(listener, b"wake up\n")
            return length, left, silent.recv(1), slow.recv(1)

    length, left_before, *ends = while_running(loop, visit)
    assert length == 5_000_000 and left_before == [] and ends == [b"", b""]
    run_until(loop, lambda: len(served) == 0)


def test_an_endless_request_is_dropped(loop, listener, serve, monkeypatch):
    monkeypatch.setattr(request_server, "MAX_REQUEST", 10_000)
    serve(lambda received, ended: None)

    def visit():
        with come(listener) as client, pytest.raises(OSError):
            for _each in range(10_000):
                client.sendall(b"x" * 1000)
                pause(0.001)
        return True

    assert while_running(loop, visit)


def test_one_client_too_many_closes_the_oldest_connection(loop, listener, serve, monkeypatch):
    """So that silent ones cannot keep those out who say at once what they want."""
    monkeypatch.setattr(request_server, "MAX_CLIENTS", 5)
    served = serve()

    def visit():
        silent = [come(listener) for _each in range(20)]
        answers = [ask(listener, b"quick\n") for _each in range(20)]
        for each in silent:
            each.close()
        return answers

    assert while_running(loop, visit) == [b"QUICK\n"] * 20
    assert len(served) <= 5


def test_a_client_that_leaves_at_once_does_no_harm(loop, listener, serve):
    serve(lambda _received, _ended: b"x" * 5_000_000)

    def visit():
        for _each in range(20):
            with come(listener) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.sendall(b"x")
        return len(ask(listener, b"x"))

    assert while_running(loop, visit) == 5_000_000


class Full:
    """A listener of a host that has no descriptors left."""

    def fileno(self):
        return 7

    def accept(self):
        raise OSError(errno.EMFILE, "Too many open files")


def test_a_host_without_descriptors_does_not_make_the_loop_spin():
    loop = Time()
    RequestServer(loop, Full(), shout)
    for _each in range(3):
        loop.is_ready(7)
        loop.advance(request_server.ACCEPT_RETRY - 1)
        assert not loop.watched
        loop.advance(1)
        assert set(loop.watched) == {7}


def test_after_the_end_no_client_is_accepted_even_after_a_pause():
    loop = Time()
    served = RequestServer(loop, Full(), shout)
    loop.is_ready(7)
    served.close()
    loop.advance(2 * request_server.ACCEPT_RETRY)
    assert not loop.watched


def test_while_it_pauses_new_clients_wait_and_accepted_ones_are_answered(loop, listener, serve):
    served = serve()

    def visit():
        with come(listener) as inside, come(listener) as outside:
            inside.sendall(b"in")
            until(lambda: len(served) == 2)
            asking.append(1)
            until(lambda: not served._open)
            with come(listener) as late:
                late.sendall(b"late\n")
                inside.sendall(b"side\n")
                outside.sendall(b"\n")
                heard = hear(inside)
                late.settimeout(4 * MOMENT_S)
                with pytest.raises(socket.timeout):
                    late.recv(1)
                asking.append(2)
                late.settimeout(LIMIT_S)
                return heard, hear(late)

    asking = []

    def look():
        if asking == [1] and served._open:
            served.pause()
        if asking == [1, 2] and not served._open:
            served.resume()
        loop.after(5000, look)

    loop.after(0, look)
    assert while_running(loop, visit) == (b"INSIDE\n", b"LATE\n")


def test_an_answer_may_come_later_and_others_are_served_meanwhile(loop, listener, serve):
    promised = []

    def answer(received, ended):
        return promised.append if received == b"slow" and ended else shout(received, ended)

    serve(answer)

    def visit():
        with come(listener) as slow, come(listener) as quick:
            slow.sendall(b"slow")
            slow.shutdown(socket.SHUT_WR)
            quick.sendall(b"quick\n")
            found = hear(quick)
            until(lambda: promised)
            promised[0](b"at last")
            return found, hear(slow)

    assert while_running(loop, visit) == (b"QUICK\n", b"at last")


def test_the_time_of_a_client_does_not_pass_while_it_waits_for_a_later_answer():
    loop, promised = Time(), []
    ours, client = socket.socketpair()
    with ours, client:
        request_server.Client(loop, ours, lambda _received, ended: promised.append if ended else None, {})
        client.shutdown(socket.SHUT_WR)
        loop.is_ready(ours.fileno())
        loop.advance(2 * request_server.CLIENT_TIMEOUT)
        promised[0](b"x")
        assert hear(client) == b"x"


def test_an_answer_for_a_client_that_was_closed_meanwhile_is_dropped(loop, listener, serve):
    promised = []
    server = serve(lambda received, ended: promised.append if ended else None)
    with come(listener) as client:
        client.shutdown(socket.SHUT_WR)
        run_until(loop, lambda: promised)
        server.close()
        promised[0](b"too late")
        assert client.recv(1) == b""
