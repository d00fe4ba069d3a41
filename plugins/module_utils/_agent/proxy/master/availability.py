# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether any worker serves, and when there is no hope of it: then the proxy ends, and the VIP can move."""

from __future__ import annotations

from typing import Callable, Optional

from ...runtime.loop import MILLION, Loop
from ...runtime.watchdog import Watchdog

MAX_OUTAGE = 2 * MILLION  # in which several replacements of a worker are tried


class Availability:
    """Created before the first worker."""

    def __init__(self, loop: Loop, began: Callable[[], None], failed: Callable[[str], None]) -> None:
        """
        :param began: called when a worker serves and none did before
        :param failed: called with the reason when the start has failed, or an outage lasts
        """
        self._loop, self._began, self._failed = loop, began, failed
        self.serves = False
        self._outage: Optional[Watchdog] = None  # while no worker serves any more
        self._fault = ""  # of the latest worker

    def update(self, serves: bool) -> None:
        """Note whether any worker serves now."""
        if serves == self.serves:
            return
        self.serves = serves
        if serves:
            self.stop()
            self._began()
        else:
            self._outage = Watchdog(self._loop, self._give_up, MAX_OUTAGE)

    def worker_failed(self, fault: str) -> None:
        """Note why a worker cannot serve. Before any has served, this means that the start has failed."""
        self._fault = fault
        if not self.serves and not self._outage:
            self._failed(f"no worker can serve: {fault}.")

    def stop(self) -> None:
        """Tolerate any outage from now on."""
        if self._outage:
            self._outage.stop()
            self._outage = None

    def _give_up(self) -> None:
        self._failed(f"no worker has served for {MAX_OUTAGE / MILLION:g} s: {self._fault}.")
