# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop: who is told of what, in which order, and what it moves without asking anybody."""

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


class Someone(Handler):
    """Notes what happens to it; moves bytes like an end when it has a ``forward``."""

    def __init__(self, connection, forward=None) -> None:
        self.socket, self.descriptor = connection, connection.fileno()
        self.receive, self.forward = connection.recv, forward
        self.count, self.pipe = 0, None
        self.told = []
        self.then = None  # called when it is told

    def _note(self, *what) -> None:
        self.told.append(what)
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
def relay():
    relay = EventLoop()
    yield relay
    relay.close()


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
def watched(relay, pairs):
    """Somebody at one end of each pair."""
    found = [Someone(ours) for _theirs, ours in pairs]
    for each in found:
        relay.watch(each.descriptor, each, INWARDS)
    return found


def turn(relay, rounds=1) -> None:
    left = iter(range(rounds - 1, -1, -1))

    def keep_house() -> float:
        if not next(left):
            relay.stop()
        return 0.0

    relay.run(keep_house)


# -- who is told


def test_whoever_is_watched_is_told_once_of_each_change(relay, pairs, watched):
    pairs[0][0].send(b"some")
    turn(relay, 3)
    assert [each.told for each in watched] == [[("ready", IN)], [], []]
    pairs[0][0].send(b"more")
    turn(relay, 3)
    assert watched[0].told == [("ready", IN)] * 2


def test_who_is_ignored_is_told_nothing(relay, pairs, watched):
    relay.ignore(watched[0].descriptor)
    pairs[0][0].send(b"some")
    turn(relay)
    assert watched[0].told == []


def test_what_was_buried_in_a_round_hears_no_more_of_that_round(relay, pairs, watched):
    watched[0].then = lambda: relay.close_later(watched[1])
    watched[1].then = lambda: relay.close_later(watched[0])
    for theirs, _ours in pairs[:2]:
        theirs.send(b"some")
    turn(relay)
    assert sorted(map(len, (watched[0].told, watched[1].told))) == [0, 1]


def test_what_was_buried_is_closed_after_the_round_and_not_before(relay, pairs, watched):
    """Its number could be somebody else's at once, who would be told what was meant for it."""
    still_there = []

    def close_later() -> None:
        relay.close_later(watched[0])
        still_there.append(watched[0].socket.fileno() >= 0)

    watched[0].then = close_later
    pairs[0][0].send(b"some")
    turn(relay)
    assert still_there == [True]
    assert watched[0].socket.fileno() == -1


def test_a_buried_ones_pipe_is_used_again(relay, pairs, watched):
    watched[0].pipe = relay.pipes.take()
    relay.close_later(watched[0])
    turn(relay)
    another = relay.pipes.take()
    relay.pipes.give(another)
    assert another is watched[0].pipe


def test_what_is_to_be_done_later_is_done_after_the_next_round_without_waiting_for_anything(relay, pairs, watched):
    order = []
    watched[0].then = lambda: order.append("told")
    relay.deferred.append(lambda: (order.append("done"), relay.deferred.append(lambda: order.append("done again"))))
    pairs[0][0].send(b"some")

    def keep_house() -> float:
        order.append("house")
        if len(order) > 4:
            relay.stop()
        return 60.0  # and it would wait so long

    relay.run(keep_house)
    assert order == ["told", "done", "house", "done again", "house"]


def test_a_round_has_an_end_however_many_there_are(relay):
    pairs = [socket.socketpair() for _each in range(BATCH + 10)]
    try:
        told = []
        for theirs, ours in pairs:
            someone = Someone(ours)
            someone.then = lambda: told.append(1)
            relay.watch(ours.fileno(), someone, INWARDS)
            theirs.send(b"x")
        turn(relay)
        assert len(told) == BATCH
        turn(relay)
        assert len(told) == BATCH + 10
    finally:
        for pair in pairs:
            for each in pair:
                each.close()


# -- what it moves


@pytest.fixture
def mover(pairs, watched):
    """Somebody whose bytes go on to the second pair."""
    watched[0].forward = pairs[1][1].send
    return watched[0]


def test_little_is_moved_without_a_word_and_counted(relay, pairs, mover):
    pairs[0][0].send(b"a message")
    turn(relay)
    assert pairs[1][0].recv(100) == b"a message"
    assert (mover.told, mover.count) == ([], 9)


def test_much_is_moved_and_told_of(relay, pairs, mover):
    for size, told in ((LARGE_READ - 1, []), (LARGE_READ, [("slow_path", LARGE_READ, LARGE_READ)])):
        pairs[0][0].send(b"x" * size)
        turn(relay)
        assert len(pairs[1][0].recv(SIZE)) == size
        assert mover.told == told


def test_what_was_not_taken_is_told_of(relay, pairs, mover):
    mover.forward = lambda data: 2
    pairs[0][0].send(b"four")
    turn(relay)
    assert mover.told == [("slow_path", 4, 2)]
    assert mover.count == 4

    def full(data):
        raise BlockingIOError

    mover.forward = full
    pairs[0][0].send(b"more")
    turn(relay)
    assert mover.told[1:] == [("unwritable", BlockingIOError, b"more")]


def test_what_cannot_be_read_is_told_of(relay, pairs, mover):
    pairs[0][0].send(b"some")

    def gone(size):
        raise ConnectionResetError

    mover.receive = gone
    turn(relay)
    assert mover.told == [("unreadable", ConnectionResetError)]


@pytest.mark.parametrize("unusual", [RDHUP, PRI, ERR])
def test_what_is_more_than_bytes_is_told_before_they_are_moved(relay, pairs, mover, monkeypatch, unusual):
    class Poll:
        """Tells of this once."""

        def poll(self, _patience, _batch):
            return [(mover.descriptor, IN | unusual)]

    pairs[0][0].send(b"some")
    monkeypatch.setattr(relay, "_epoll", Poll())
    turn(relay)
    monkeypatch.undo()
    assert mover.told == [("ready", IN | unusual)]
    assert mover.count == 0
