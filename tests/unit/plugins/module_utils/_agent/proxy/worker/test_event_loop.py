# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event loop: which handlers it calls, in which order, and what it moves without a call."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.event_loop import (
    BATCH,
    ERR,
    IN,
    INWARDS,
    LARGE_READ,
    PRI,
    RDHUP,
    SIZE,
    EventLoop,
    Handler,
)


class Recorder(Handler):
    """Records its calls; moves bytes like an endpoint when it has a ``forward``."""

    def __init__(self, connection, forward=None) -> None:
        self.socket, self.descriptor = connection, connection.fileno()
        self.receive, self.forward = connection.recv, forward
        self.count, self.pipe = 0, None
        self.calls = []
        self.then = None  # called at each call

    def _note(self, *what) -> None:
        self.calls.append(what)
        if self.then:
            self.then()

    def ready(self, events) -> None:
        self._note("ready", events)

    def slow_path(self, data, sent) -> None:
        self._note("slow_path", len(data), sent)

    def unreadable(self, fault) -> None:
        self._note("unreadable", type(fault))

    def unwritable(self, fault, data) -> None:
        self._note("unwritable", type(fault), data)


@pytest.fixture
def event_loop():
    event_loop = EventLoop()
    yield event_loop
    event_loop.close()


@pytest.fixture
def pairs():
    made = [socket.socketpair() for _each in range(3)]
    for pair in made:
        for each in pair:
            each.setblocking(False)
    yield made
    for pair in made:
        for each in pair:
            each.close()


@pytest.fixture
def watched(event_loop, pairs):
    """A handler at one end of each pair."""
    found = [Recorder(ours) for _theirs, ours in pairs]
    for each in found:
        event_loop.watch(each.descriptor, each, INWARDS)
    return found


def turn(event_loop, rounds=1) -> None:
    left = iter(range(rounds - 1, -1, -1))

    def on_tick() -> float:
        if not next(left):
            event_loop.stop()
        return 0.0

    event_loop.run(on_tick)


# -- which handlers are called


def test_a_watched_handler_is_called_once_for_each_change(event_loop, pairs, watched):
    pairs[0][0].send(b"some")
    turn(event_loop, 3)
    assert [each.calls for each in watched] == [[("ready", IN)], [], []]
    pairs[0][0].send(b"more")
    turn(event_loop, 3)
    assert watched[0].calls == [("ready", IN)] * 2


def test_an_ignored_handler_is_not_called(event_loop, pairs, watched):
    event_loop.ignore(watched[0].descriptor)
    pairs[0][0].send(b"some")
    turn(event_loop)
    assert watched[0].calls == []


def test_a_handler_closed_in_a_round_is_not_called_again_in_it(event_loop, pairs, watched):
    watched[0].then = lambda: event_loop.close_later(watched[1])
    watched[1].then = lambda: event_loop.close_later(watched[0])
    for theirs, _ours in pairs[:2]:
        theirs.send(b"some")
    turn(event_loop)
    assert sorted(map(len, (watched[0].calls, watched[1].calls))) == [0, 1]


def test_a_closed_handlers_socket_is_closed_after_the_round_and_not_before(event_loop, pairs, watched):
    """Its number could be reused at once, and the new socket would get the events of the old one."""
    still_there = []

    def close_later() -> None:
        event_loop.close_later(watched[0])
        still_there.append(watched[0].socket.fileno() >= 0)

    watched[0].then = close_later
    pairs[0][0].send(b"some")
    turn(event_loop)
    assert still_there == [True]
    assert watched[0].socket.fileno() == -1


def test_a_closed_handlers_pipe_is_used_again(event_loop, pairs, watched):
    watched[0].pipe = event_loop.pipes.take()
    event_loop.close_later(watched[0])
    turn(event_loop)
    another = event_loop.pipes.take()
    event_loop.pipes.give(another)
    assert another is watched[0].pipe


def test_what_is_to_be_done_later_is_done_after_the_next_round_without_waiting_for_anything(event_loop, pairs, watched):
    order = []
    watched[0].then = lambda: order.append("called")
    event_loop.deferred.append(
        lambda: (order.append("done"), event_loop.deferred.append(lambda: order.append("done again")))
    )
    pairs[0][0].send(b"some")

    def on_tick() -> float:
        order.append("tick")
        if len(order) > 4:
            event_loop.stop()
        return 60.0  # and it would wait so long

    event_loop.run(on_tick)
    assert order == ["called", "done", "tick", "done again", "tick"]


def test_a_round_has_an_end_however_many_there_are(event_loop):
    pairs = [socket.socketpair() for _each in range(BATCH + 10)]
    try:
        calls = []
        for theirs, ours in pairs:
            recorder = Recorder(ours)
            recorder.then = lambda: calls.append(1)
            event_loop.watch(ours.fileno(), recorder, INWARDS)
            theirs.send(b"x")
        turn(event_loop)
        assert len(calls) == BATCH
        turn(event_loop)
        assert len(calls) == BATCH + 10
    finally:
        for pair in pairs:
            for each in pair:
                each.close()


# -- what it moves


@pytest.fixture
def mover(pairs, watched):
    """A handler whose bytes go on to the second pair."""
    watched[0].forward = pairs[1][1].send
    return watched[0]


def test_a_small_read_is_moved_without_a_call_and_counted(event_loop, pairs, mover):
    pairs[0][0].send(b"a message")
    turn(event_loop)
    assert pairs[1][0].recv(100) == b"a message"
    assert (mover.calls, mover.count) == ([], 9)


def test_a_large_read_is_moved_and_reported(event_loop, pairs, mover):
    for size, calls in ((LARGE_READ - 1, []), (LARGE_READ, [("slow_path", LARGE_READ, LARGE_READ)])):
        pairs[0][0].send(b"x" * size)
        turn(event_loop)
        assert len(pairs[1][0].recv(SIZE)) == size
        assert mover.calls == calls


def test_a_partial_send_is_reported(event_loop, pairs, mover):
    mover.forward = lambda data: 2
    pairs[0][0].send(b"four")
    turn(event_loop)
    assert mover.calls == [("slow_path", 4, 2)]
    assert mover.count == 4

    def full(data):
        raise BlockingIOError

    mover.forward = full
    pairs[0][0].send(b"more")
    turn(event_loop)
    assert mover.calls[1:] == [("unwritable", BlockingIOError, b"more")]


def test_a_failed_read_is_reported(event_loop, pairs, mover):
    pairs[0][0].send(b"some")

    def gone(size):
        raise ConnectionResetError

    mover.receive = gone
    turn(event_loop)
    assert mover.calls == [("unreadable", ConnectionResetError)]


@pytest.mark.parametrize("unusual", [RDHUP, PRI, ERR])
def test_an_event_beside_readable_bytes_is_reported_before_they_are_moved(
    event_loop, pairs, mover, monkeypatch, unusual
):
    class Poll:
        """Returns one event."""

        def poll(self, _timeout, _batch):
            return [(mover.descriptor, IN | unusual)]

    pairs[0][0].send(b"some")
    monkeypatch.setattr(event_loop, "_epoll", Poll())
    turn(event_loop)
    monkeypatch.undo()
    assert mover.calls == [("ready", IN | unusual)]
    assert mover.count == 0
