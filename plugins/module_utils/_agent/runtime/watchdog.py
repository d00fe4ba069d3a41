# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Notices that something has not happened for too long, such as the reports of a child process that hangs.

Time is counted in ticks of this process's loop. When this process stands still, with the whole machine for instance,
there are no ticks, and so a healthy child is not blamed for a pause that it shared.
"""

from __future__ import annotations

from .loop import MILLION, Callback, Loop, Timer

TICK = MILLION // 2
REPORT_INTERVAL = MILLION  # between two reports of a healthy child
MAX_SILENCE = 3 * MILLION


class Watchdog:
    """Calls once, unless it is fed or stopped, when ``limit`` microseconds of ticks have passed."""

    def __init__(self, loop: Loop, expired: Callback, limit: int) -> None:
        self._loop, self._expired, self._limit = loop, expired, limit
        self._waited = 0
        self._timer: Timer = loop.after(TICK, self._tick)

    def feed(self, limit: int) -> None:
        """Start from zero, with this limit."""
        self._waited, self._limit = 0, limit

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        self._waited += TICK  # a late tick counts no more than a punctual one
        if self._waited >= self._limit:
            self._expired()
        else:
            self._timer = self._loop.after(TICK, self._tick)
