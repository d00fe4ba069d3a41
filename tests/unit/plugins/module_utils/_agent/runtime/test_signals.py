# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals as events of a loop."""

from __future__ import annotations

import os
import select
import signal
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.signals import Signals
from support.agent.loops import LIMIT, SECOND, run_until
from support.waiting import until

USR1, USR2 = signal.SIGUSR1, signal.SIGUSR2


@pytest.fixture
def hear(loop):
    """Listen to some signals; what is called is remembered."""
    heard, made = [], []

    def listen(*numbers):
        made.append(Signals(loop, {number: lambda number=number: heard.append(number) for number in numbers}))
        return heard

    yield listen
    for each in made:
        each.close()
    assert signal.getsignal(USR1) == signal.getsignal(USR2) == signal.SIG_DFL


def test_each_signal_calls_its_own_in_the_order_of_importance(loop, hear):
    heard = hear(USR2, USR1)
    os.kill(os.getpid(), USR1)
    os.kill(os.getpid(), USR2)
    run_until(loop, lambda: len(heard) == 2)
    assert heard == [USR2, USR1]
    os.kill(os.getpid(), USR1)
    run_until(loop, lambda: heard[2:] == [USR1])


def test_nothing_is_called_before_the_loop_runs(hear):
    heard = hear(USR1)
    os.kill(os.getpid(), USR1)
    assert heard == []


def test_what_came_while_it_was_blocked_is_heard(loop, hear):
    signal.pthread_sigmask(signal.SIG_BLOCK, [USR1])
    signal.pthread_kill(threading.get_ident(), USR1)  # a thread of the test runner's would not have blocked it
    heard = hear(USR1)
    run_until(loop, lambda: heard == [USR1])


def test_a_loop_that_waits_heeds_a_signal_before_anything_else_that_wakes_it():
    """In a process of its own, stopped while it waits: when it runs again both are there, and the data came first."""
    answer, answers = os.pipe()
    data, sender = os.pipe()
    child = os.fork()
    if not child:
        _report_the_order(data, answers)
    try:
        until(lambda: _state(child) == "S")
        os.kill(child, signal.SIGSTOP)
        until(lambda: _state(child) == "T")
        os.write(sender, b"!")
        os.kill(child, USR1)
        os.kill(child, signal.SIGCONT)
        assert select.select([answer], [], [], LIMIT / SECOND)[0], "it hangs"
        assert os.read(answer, 100) == b"signal data"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for descriptor in (answer, answers, data, sender):
            os.close(descriptor)


def _report_the_order(data, answers):
    """Wait for a signal and for data, in a child process; write which was handled first."""
    try:
        own, order = Loop(), []

        def note(what):
            order.append(what)
            if len(order) == 2:
                own.stop()

        Signals(own, {USR1: lambda: note("signal")})
        own.watch(data, lambda _events: [os.read(data, 1), note("data")])
        own.run()
        os.write(answers, " ".join(order).encode())
    finally:
        os._exit(1)


def _state(pid):
    """Return a process's state, as in proc(5): S while it waits, T while it is stopped."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rpartition(") ")[2][0]


def test_a_signal_that_comes_while_another_is_heeded_waits_for_its_turn(loop):
    heard = []

    def first():
        heard.append("begin")
        os.kill(os.getpid(), USR2)
        heard.append("end")

    signals = Signals(loop, {USR1: first, USR2: lambda: heard.append("second")})
    loop.after(0, lambda: os.kill(os.getpid(), USR1))
    run_until(loop, lambda: len(heard) == 3)
    signals.close()
    assert heard == ["begin", "end", "second"]


def test_a_handler_that_stops_the_loop_is_the_last_to_be_called(loop):
    heard = []
    signals = Signals(loop, {USR2: loop.stop, USR1: lambda: heard.append(USR1)})
    try:
        loop.after(0, lambda: [os.kill(os.getpid(), number) for number in (USR1, USR2)])
        loop.after(10_000_000, lambda: pytest.fail("it goes on"))
        loop.run()
    finally:
        signals.close()
    assert heard == []
