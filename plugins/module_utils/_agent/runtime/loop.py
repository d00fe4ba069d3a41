# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An event loop: timers and descriptors on one clock, never late by more than a callback.

epoll rounds its timeout to milliseconds, which is too coarse for advertisements every 10 ms. So select, which is exact
to the microsecond, waits for the epoll descriptor alone.
"""

from __future__ import annotations

import heapq
import select
import time
from typing import Callable, Dict, List, Optional, Tuple

MILLION = 1_000_000
MAX_WAIT = 60 * MILLION  # if no timer is due earlier; a precaution
LATE = MILLION // 100  # no callback takes so long: the process stood still

READ, WRITE = select.EPOLLIN, select.EPOLLOUT
Callback = Callable[[], None]


def microseconds() -> int:
    """Return the monotonic clock, which never jumps."""
    return time.monotonic_ns() // 1000


class Timer:
    """A callback that is due at a moment, unless it is cancelled."""

    __slots__ = ("at", "callback")

    def __init__(self, at: int, callback: Optional[Callback]) -> None:
        self.at, self.callback = at, callback

    def cancel(self) -> None:
        self.callback = None


class Loop:
    """Runs callbacks when they are due or their descriptor is ready, one after the other."""

    def __init__(self, clock: Callable[[], int] = microseconds) -> None:
        self.now = clock
        self._epoll = select.epoll()
        self._callbacks: Dict[int, Callable[[int], None]] = {}
        self._timers: List[Tuple[int, int, Timer]] = []
        self._serial = 0
        self.running = False
        self._waiting = False

    def at(self, moment: int, callback: Callback) -> Timer:
        """Call once when the clock has reached a moment."""
        timer = Timer(moment, callback)
        self._serial += 1
        heapq.heappush(self._timers, (moment, self._serial, timer))
        return timer

    def after(self, delay: int, callback: Callback) -> Timer:
        return self.at(self.now() + delay, callback)

    def watch(self, descriptor: int, callback: Callable[[int], None], events: int = READ) -> None:
        """Call with the events whenever a descriptor is ready. A second call replaces the first."""
        known = descriptor in self._callbacks
        self._callbacks[descriptor] = callback
        (self._epoll.modify if known else self._epoll.register)(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Call before the descriptor is closed."""
        if self._callbacks.pop(descriptor, None):
            self._epoll.unregister(descriptor)

    def run_if_idle(self, callback: Callback) -> bool:
        """Run a callback from a signal handler if the loop is waiting; return whether it ran.

        This does not end the wait: a descriptor must become readable as well.
        """
        waited, self._waiting = self._waiting, False
        if waited:
            callback()
        return waited

    def run(self) -> None:
        """Run until ``stop``."""
        self.running = True
        while self.running:
            self._wait(self._fire())

    def stop(self) -> None:
        self.running = False

    def close(self) -> None:
        self._epoll.close()

    def _fire(self) -> int:
        """Run the timers that are due; return how long to wait for the next one.

        Timers that become due meanwhile run after the descriptors, so that neither can starve the other. After the
        process stood still the descriptors come first: what a timer takes to be missing may have arrived long ago.
        """
        timers, now = self._timers, self.now()
        if timers and now - timers[0][0] > LATE:
            self._wait(0)
        while timers and self.running:
            if timers[0][0] > now and timers[0][2].callback:
                return max(0, min(timers[0][0] - self.now(), MAX_WAIT))
            callback = heapq.heappop(timers)[2].callback
            if callback:
                callback()
        return MAX_WAIT if self.running else 0

    def _wait(self, wait: int) -> None:
        self._waiting = True
        found = select.select([self._epoll], [], [], wait / MILLION)[0]
        self._waiting = False
        if not found:
            return
        ready = [(descriptor, events, self._callbacks.get(descriptor)) for descriptor, events in self._epoll.poll(0)]
        for descriptor, events, callback in ready:
            # Another callback may have closed it and opened another descriptor with the same number.
            if callback and callback is self._callbacks.get(descriptor) and self.running:
                callback(events)


class Earliest:
    """A callback that is due at the earliest moment that was asked for: a storm of requests does not defer it."""

    def __init__(self, loop: Loop, callback: Callback) -> None:
        self._loop, self._callback = loop, callback
        self._timer: Optional[Timer] = None

    def at(self, moment: int) -> None:
        if self._timer and self._timer.at <= moment:
            return
        self.cancel()
        self._timer = self._loop.at(moment, self._run)

    def after(self, delay: int) -> None:
        self.at(self._loop.now() + delay)

    def cancel(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _run(self) -> None:
        self._timer = None
        self._callback()
