# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waits until the workers have executed what they were sent."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Set

from ...runtime.loop import MILLION, Loop

TIMEOUT = MILLION


class Confirmation:
    """Calls once with how many workers have not confirmed in time, mostly 0."""

    def __init__(self, loop: Loop, workers: Sequence[Any], done: Callable[[int], None]) -> None:
        self.over = False
        self._missing: Set[Any] = set(workers)
        self._done = done
        self._timer = loop.after(TIMEOUT, self._finish)
        self._finish_if_complete()

    def discard(self, worker: Any) -> None:
        """A worker has confirmed, or it has ended."""
        self._missing.discard(worker)
        self._finish_if_complete()

    def _finish_if_complete(self) -> None:
        if not self._missing and not self.over:
            self._finish()

    def _finish(self) -> None:
        self.over = True
        self._timer.cancel()
        self._done(len(self._missing))
