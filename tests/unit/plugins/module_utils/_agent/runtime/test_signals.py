# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals as a loop hears them."""

from __future__ import annotations

import os
import select
import signal
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.signals import Signals
from support.agent.loops import run_until

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


def test_a_loop_that_waits_heeds_a_signal_before_anything_else_that_wakes_it(loop, hear):
    heard = hear(USR1)
    first, second = os.pipe()
    loop.watch(first, lambda _events: heard.append(os.read(first, 1)))
    child = os.fork()
    if not child:  # it acts while we wait
        select.select([], [], [], 0.05)
        os.kill(os.getppid(), USR1)
        os.write(second, b"!")
        os._exit(0)
    run_until(loop, lambda: len(heard) == 2)
    os.waitpid(child, 0)
    loop.forget(first)
    os.close(first)
    os.close(second)
    assert heard == [USR1, b"!"]


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


def test_whoever_ends_the_loop_is_the_last_to_be_called(loop):
    heard = []
    signals = Signals(loop, {USR2: loop.stop, USR1: lambda: heard.append(USR1)})
    try:
        loop.after(0, lambda: [os.kill(os.getpid(), number) for number in (USR1, USR2)])
        loop.after(10_000_000, lambda: pytest.fail("it goes on"))
        loop.run()
    finally:
        signals.close()
    assert heard == []
