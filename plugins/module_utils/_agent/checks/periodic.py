# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs a probe again and again: each run an interval after the start of the one before, and never two at once."""

from __future__ import annotations

from typing import Optional

from ..runtime.loop import Loop, Timer
from .outcome import Done, Outcome, Probe


class PeriodicProbe:
    """``interval`` (microseconds) may be changed at any time, and counts from the next run."""

    def __init__(self, loop: Loop, interval: int, probe: Probe, on_outcome: Done) -> None:
        self.interval = interval
        self._loop, self._probe, self._on_outcome = loop, probe, on_outcome
        self._next: Optional[Timer] = None
        self._began = 0
        self._running = self._again = False

    def start(self) -> None:
        """Start the first run at once."""
        self._schedule(self._loop.now())

    def run_now(self) -> None:
        """Run now. If a run is under way, another one follows it."""
        if self._running:
            self._again = True
        else:
            self._schedule(self._loop.now())

    def set_interval(self, interval: int) -> None:
        """Change the interval; a run that was requested by ``run_now`` is not delayed."""
        regular = self._began + self.interval
        self.interval = interval
        if self._next and not self._running and self._next.at == regular:
            self._schedule(max(self._loop.now(), self._began + interval))

    def stop(self) -> None:
        if self._next:
            self._next.cancel()
        self._probe.stop()

    def _schedule(self, moment: int) -> None:
        if self._next:
            self._next.cancel()
        self._next = self._loop.at(moment, self._run)

    def _run(self) -> None:
        self._began, self._running, self._again = self._loop.now(), True, False
        self._probe.start(self._done)

    def _done(self, outcome: Outcome) -> None:
        self._running = False
        now = self._loop.now()
        self._schedule(now if self._again else max(now, self._began + self.interval))
        self._on_outcome(outcome)  # last, because it may call stop or run_now
