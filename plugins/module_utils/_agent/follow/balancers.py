# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the balancers of a host at the servers that they should have: at once, again after a fault, and each minute."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..runtime.loop import MILLION, Loop, Timer
from . import haproxy, proxy
from .changes import Refused
from .settings import Server, Settings

RECHECK = 60 * MILLION  # somebody may have restarted a balancer, or written its file
DRAINING = MILLION  # while sessions with a server last
FIRST_DELAY, LAST_DELAY = 2 * MILLION, 60 * MILLION  # after a fault


class Kept:
    """One balancer. Mutable: what is wrong with it."""

    def __init__(self, name: str, balancer: Any) -> None:
        self.name, self.balancer = name, balancer
        self.fault: Optional[str] = None
        self.failures = 0


class Balancers:
    """Applies a list of servers to each balancer that is configured."""

    def __init__(self, loop: Loop, log: Any, settings: Settings) -> None:
        self._loop, self._log = loop, log
        self._kept: List[Kept] = []
        if settings.haproxy:
            self._kept.append(Kept("haproxy", haproxy.Balancer(settings.haproxy, settings.drain_for, loop.now)))
        if settings.proxy:
            self._kept.append(Kept("proxy", proxy.Balancer(settings.proxy)))
        self._timers: Dict[str, Timer] = {}
        self.wanted: Tuple[Server, ...] = ()
        self.changes = 0  # that were made so far

    def want(self, servers: Sequence[Server]) -> None:
        """Make these the servers of all balancers, unless they are, or there are none."""
        if not servers or tuple(servers) == self.wanted:
            return
        self.wanted = tuple(servers)
        for kept in self._kept:
            self._apply(kept)

    def report(self) -> List[Dict[str, Any]]:
        return [{"name": kept.name, "fault": kept.fault} for kept in self._kept]

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _apply(self, kept: Kept) -> None:
        try:
            done = kept.balancer.apply(self.wanted)
        except Refused as refused:
            kept.fault, kept.failures = str(refused), kept.failures + 1
            self._log.fault(kept.name, f"{kept.name} does not have the servers of the cluster: {refused}")
            self._again(kept, min(LAST_DELAY, FIRST_DELAY << min(kept.failures - 1, 16)))
            return
        kept.fault, kept.failures = None, 0
        self._log.cured(kept.name, f"{kept.name} has the servers of the cluster again.")
        for line in done.lines:
            self._log.info(line)
        self.changes += len(done.lines)
        self._again(kept, DRAINING if done.again else RECHECK)

    def _again(self, kept: Kept, delay: int) -> None:
        if kept.name in self._timers:
            self._timers[kept.name].cancel()
        self._timers[kept.name] = self._loop.after(delay, lambda: self._apply(kept))
