# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One clock, its timers and real descriptors."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import loop as loops
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import MILLION, Earliest, Loop
from support.agent.loops import LIMIT, Looks


@pytest.fixture
def clock():
    return Looks()


@pytest.fixture
def loop(clock):
    found = Loop(clock)
    yield found
    found.close()


@pytest.fixture
def pair():
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


@contextlib.contextmanager
def real_time():
    found = Loop()
    found.after(LIMIT, found.stop)
    yield found
    found.close()


def end_after(loop, delay):
    """End a loop with the very timer that the test is about."""
    return loop.after(delay, loop.stop)


def test_nothing_is_called_at_once_while_the_loop_is_busy_or_does_not_run(loop):
    called = []
    assert not loop.run_if_idle(lambda: called.append("not running"))
    loop.after(0, lambda: called.append(loop.run_if_idle(lambda: called.append("busy"))))
    loop.after(0, loop.stop)
    loop.run()
    assert called == [False]


def test_a_waiting_loop_is_called_at_once_and_no_second_time_meanwhile(pair):
    """A signal's handler is what can call while it waits."""
    called = []

    def second():
        called.append("second")

    def first():
        called.append(loop.run_if_idle(second))
        pair[1].send(b"x")

    def handler(*_ignored):
        if not loop.run_if_idle(first):  # it does not wait yet
            signal.setitimer(signal.ITIMER_REAL, 0.01)

    with real_time() as loop:
        loop.watch(pair[0].fileno(), lambda _events: loop.stop())
        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        loop.run()
        signal.signal(signal.SIGALRM, before)
    assert called == [False]


def test_what_is_due_is_called_once_in_the_order_of_its_moments(loop, clock):
    called = []
    for moment, name in ((30, "c"), (10, "a"), (20, "b"), (20, "b again"), (40, "d")):
        loop.at(moment, lambda name=name: called.append(name))
    loop.at(30, loop.stop)
    clock.now = 30
    loop.run()
    assert called == ["a", "b", "b again", "c"]


def test_after_the_process_stood_still_what_has_arrived_comes_before_what_is_overdue(loop, clock, pair):
    called = []
    loop.watch(pair[0].fileno(), lambda _events: called.append(pair[0].recv(1)))
    loop.at(0, lambda: called.append("overdue"))
    loop.at(0, loop.stop)
    pair[1].send(b"x")
    clock.now = MILLION
    loop.run()
    assert called == [b"x", "overdue"]


def test_after_counts_from_now(loop, clock):
    clock.now = 1000
    assert end_after(loop, 7).at == 1007


def test_what_is_cancelled_is_not_called_also_when_it_was_due_in_the_same_turn(loop):
    called = []
    later = loop.at(0, lambda: called.append("later"))
    sooner = loop.at(0, lambda: called.append("sooner"))
    loop.at(-1, later.cancel)
    loop.at(-2, sooner.cancel)
    loop.at(0, loop.stop)
    loop.run()
    assert called == []


def test_nothing_is_called_after_stop(loop):
    called = []
    loop.at(0, loop.stop)
    loop.at(0, lambda: called.append("too late"))
    loop.run()
    assert called == []
    loop.at(1, loop.stop)
    loop.now.now = 1
    loop.run()
    assert called == ["too late"]


def test_a_timer_is_late_by_less_than_epolls_millisecond():
    late = []
    with real_time() as loop:

        def again():
            late.append(loop.now() - due[0])
            due[0] = loop.now() + 1500
            (loop.stop if late[-1] < 500 and late[1:] else lambda: loop.at(due[0], again))()

        due = [loop.now()]
        again()
        loop.run()
    assert late[-1] < 500  # epoll would round 1.5 ms up to 2, each time; a busy machine is late now and then


def test_an_overdue_timer_that_is_cancelled_delays_nothing():
    with real_time() as loop:
        for _count in range(1000):
            end_after(loop, 1000).cancel()
        end_after(loop, 2000)
        began = loop.now()
        loop.run()
        assert loop.now() - began < LIMIT


def test_a_callback_gets_the_events_of_its_descriptor(pair):
    with real_time() as loop:
        events = []

        def ready(what):
            events.append(what)
            loop.stop()

        loop.watch(pair[0].fileno(), ready)
        loop.after(1000, lambda: pair[1].send(b"x"))
        loop.run()
        loop.watch(pair[0].fileno(), ready, loops.READ | loops.WRITE)
        loop.run()
    assert events == [select.EPOLLIN, select.EPOLLIN | select.EPOLLOUT]


def test_a_descriptor_is_asked_again_as_long_as_something_is_left(pair):
    with real_time() as loop:
        pair[1].send(b"xyz")
        read = []

        def one(_events):
            read.append(pair[0].recv(1))
            if len(read) == 3:
                loop.stop()

        loop.watch(pair[0].fileno(), one)
        loop.run()
    assert read == [b"x", b"y", b"z"]


def test_a_forgotten_descriptor_is_not_called_even_if_it_was_ready_in_the_same_round(pair):
    """Both ends are ready; the first callback forgets the other one."""
    called = []
    with real_time() as loop:
        for end in pair:
            end.send(b"x")

        def forget(mine, other):
            called.append(mine)
            loop.forget(other.fileno())
            loop.after(0, loop.stop)

        for mine, other in (pair, reversed(pair)):
            loop.watch(mine.fileno(), lambda _events, mine=mine, other=other: forget(mine, other))
        loop.run()
    assert len(called) == 1


def test_a_descriptor_opened_in_the_same_round_gets_no_events_of_its_number_before(pair):
    """A callback closes the other descriptor and opens one that gets the same number."""
    strange, opened = [], []
    with real_time() as loop:
        for end in pair:
            end.send(b"x")

        def replace(other):
            number = other.fileno()
            loop.forget(number)
            other.close()
            reading, writing = os.pipe()
            os.dup2(reading, number)
            opened.extend({reading, writing, number})
            loop.watch(number, strange.append)
            loop.after(0, loop.stop)

        for mine, other in (pair, reversed(pair)):
            loop.watch(mine.fileno(), lambda _events, mine=mine, other=other: (mine.recv(9), replace(other)))
        loop.run()
    for descriptor in set(opened):
        os.close(descriptor)
    assert strange == []


def test_to_forget_who_was_never_watched_is_no_fault(loop):
    loop.forget(0)


def test_timers_that_are_always_due_keep_no_descriptor_waiting(pair):
    """Otherwise an agent with too much to do could not even be stopped."""
    clock = Looks(tick=100)
    loop = Loop(clock)

    def busy():
        assert clock.now < MILLION, "the descriptor was never read"
        loop.after(0, busy)

    busy()
    pair[1].send(b"x")
    loop.watch(pair[0].fileno(), lambda _events: loop.stop())
    loop.run()
    loop.close()


def test_descriptors_that_are_always_ready_keep_no_timer_waiting(pair):
    with real_time() as loop:
        pair[1].send(b"x")
        turns = []

        def never_read(_events):
            turns.append(1)
            assert len(turns) < 10_000_000, "the timer was never called"

        loop.watch(pair[0].fileno(), never_read)
        began = loop.now()
        end_after(loop, 3000)
        loop.run()
        assert loop.now() - began < LIMIT


def test_a_signal_that_is_handled_shortens_no_wait():
    import signal

    before = signal.signal(signal.SIGALRM, lambda *_ignored: None)
    try:
        with real_time() as loop:
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            began = loop.now()
            end_after(loop, 10_000)
            loop.run()
            assert 10_000 <= loop.now() - began < LIMIT
    finally:
        signal.signal(signal.SIGALRM, before)


def test_it_works_with_more_descriptors_than_select_knows(pair):
    """The descriptor of epoll alone is given to select, which knows 1024."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("there may not be so many descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (3000, hard))
    opened = []
    try:
        with real_time() as loop:
            opened = [os.dup(pair[0].fileno()) for _count in range(1100)]
            assert max(opened) > 1024
            pair[1].send(b"x")
            loop.watch(max(opened), lambda _events: loop.stop())
            began = time.monotonic()
            loop.run()
            assert time.monotonic() - began < LIMIT / MILLION
            loop.forget(max(opened))
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def run_until(loop, clock, moment):
    clock.now = moment
    loop.after(0, loop.stop)
    loop.run()


def test_the_earliest_moment_counts_whatever_the_order_of_the_requests(loop, clock):
    called = []
    earliest = Earliest(loop, lambda: called.append(clock.now))
    earliest.after(500)
    earliest.at(200)
    earliest.after(300)
    run_until(loop, clock, 200)
    run_until(loop, clock, 1000)
    assert called == [200]


def test_it_can_be_asked_for_again_also_by_the_callback(loop, clock):
    called = []

    def again():
        called.append(clock.now)
        earliest.after(100)

    earliest = Earliest(loop, again)
    earliest.after(100)
    run_until(loop, clock, 100)
    run_until(loop, clock, 200)
    earliest.cancel()
    run_until(loop, clock, 1000)
    assert called == [100, 200]
