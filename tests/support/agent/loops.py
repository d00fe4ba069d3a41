# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers for tests with an event loop: waiting in a loop, and a loop with a fake clock."""

from __future__ import annotations

import heapq

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import READ, Loop, Timer

from support.waiting import LIMIT_S

SECOND = 1_000_000
LIMIT = LIMIT_S * SECOND


def run_until(loop: Loop, condition, limit: int = LIMIT) -> None:
    """Run a loop until a condition is true; fail after the limit."""
    deadline = loop.now() + limit

    def check():
        if condition() or loop.now() > deadline:
            loop.stop()
        else:
            loop.after(1000, check)

    loop.after(0, check)
    loop.run()
    assert condition(), "it did not happen in time"


class Runs:
    """The outcomes of a probe."""

    def __init__(self, loop: Loop, probe) -> None:
        self.loop, self.probe, self.outcomes = loop, probe, []

    def start(self) -> None:
        self.probe.start(self.outcomes.append)

    def one(self):
        """Run the probe once; return the outcome."""
        before = len(self.outcomes)
        self.start()
        run_until(self.loop, lambda: len(self.outcomes) > before)
        return self.outcomes[-1]


class Looks:
    """A clock that moves with each look at it, by so many microseconds, and not while the machine stands still."""

    def __init__(self, tick: int = 0) -> None:
        self.now, self.tick = 0, tick

    def __call__(self) -> int:
        self.now += self.tick
        return self.now


class Time:
    """A loop whose clock moves only in ``advance``, and whose descriptors are ready only in ``is_ready``."""

    def __init__(self) -> None:
        self._now, self._serial, self._timers = 0, 0, []
        self.watched = {}

    def watch(self, descriptor, callback, events=READ) -> None:
        self.watched[descriptor] = callback

    def forget(self, descriptor) -> None:
        self.watched.pop(descriptor, None)

    def is_ready(self, descriptor, events=READ) -> None:
        self.watched[descriptor](events)

    def now(self) -> int:
        return self._now

    def at(self, moment, callback) -> Timer:
        timer = Timer(moment, callback)
        self._serial += 1
        heapq.heappush(self._timers, (moment, self._serial, timer))
        return timer

    def after(self, delay, callback) -> Timer:
        return self.at(self._now + delay, callback)

    def stand_still(self, duration: int) -> None:
        """Let time pass in which nothing runs: what was due meanwhile is late."""
        self._now += duration

    def advance(self, duration: int) -> None:
        end = self._now + duration
        while self._timers and self._timers[0][0] <= end:
            timer = heapq.heappop(self._timers)[2]
            self._now = max(self._now, timer.at)
            if timer.callback:
                timer.callback()
        self._now = end
