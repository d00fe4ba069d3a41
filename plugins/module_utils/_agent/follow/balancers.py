# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the balancers of a host at the servers that they should have: at once, again after a fault, and each minute."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..runtime.loop import MILLION, Loop, Timer
from . import groups, haproxy, proxy
from .changes import Refused
from .groups import Servers
from .settings import Settings, Target

RECHECK = 60 * MILLION  # somebody may have restarted a balancer, or written its file
DRAINING = MILLION  # while sessions with a server last
FIRST_DELAY, LAST_DELAY = 2 * MILLION, 60 * MILLION  # after a fault


class Kept:
    """The backends or services of one balancer that have the nodes of one label. Mutable: what is wrong with it."""

    def __init__(self, name: str, label: str, balancer: Any) -> None:
        self.name, self.label, self.balancer = name, label, balancer
        self.key = f"{name} {label}"  # of its fault in the log, and of its timer
        self.fault: Optional[str] = None
        self.failures = 0


class Balancers:
    """Applies a list of servers to each balancer that is configured."""

    def __init__(self, loop: Loop, log: Any, settings: Settings) -> None:
        self._loop, self._log = loop, log
        self._kept: List[Kept] = []
        for label in groups.labels(settings):
            self._keep(settings, label)
        self._timers: Dict[str, Timer] = {}
        self.wanted: Dict[str, Servers] = {}  # by label
        self.changes = 0  # that were made so far

    def _keep(self, settings: Settings, label: str) -> None:
        def of_label(targets: Tuple[Target, ...]) -> Tuple[Target, ...]:
            return tuple(target for target in targets if (target.label or settings.nodes.label) == label)

        backends = of_label(settings.haproxy.backends) if settings.haproxy else ()
        services = of_label(settings.proxy.services) if settings.proxy else ()
        if settings.haproxy and backends:
            about = settings.haproxy._replace(backends=backends)
            self._kept.append(Kept("haproxy", label, haproxy.Balancer(about, settings.drain_for, self._loop.now)))
        if settings.proxy and services:
            self._kept.append(Kept("proxy", label, proxy.Balancer(settings.proxy._replace(services=services))))

    def want(self, servers: Mapping[str, Servers]) -> None:
        """Make these the servers of all balancers, by label, unless they are, or there are none."""
        for label, wanted in servers.items():
            if wanted and wanted != self.wanted.get(label):
                self.wanted[label] = wanted
                for kept in self._kept:
                    if kept.label == label:
                        self._apply(kept)

    def present(self, label: str) -> Servers:
        """Return the servers that the balancers' files have for the nodes of a label; nothing if they have no use."""
        for kept in self._kept:
            with contextlib.suppress(Refused):
                if kept.label == label:
                    return tuple(kept.balancer.written())
        return ()

    def answering(self, label: str) -> Optional[Dict[str, bool]]:
        """Return whether the balancers' checks find a server, by its address; None if no balancer can be asked."""
        found: Dict[str, bool] = {}
        try:
            for each in (kept for kept in self._kept if kept.label == label):
                for address, answers in each.balancer.answering():
                    found[address] = answers or found.get(address, False)
        except Refused:
            return None
        return found

    def report(self) -> List[Dict[str, Any]]:
        faults: Dict[str, Optional[str]] = {}
        for kept in self._kept:
            faults[kept.name] = faults.get(kept.name) or kept.fault
        return [{"name": name, "fault": fault} for name, fault in faults.items()]

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _apply(self, kept: Kept) -> None:
        try:
            done = kept.balancer.apply(self.wanted[kept.label])
        except Refused as refused:
            kept.fault, kept.failures = str(refused), kept.failures + 1
            self._log.fault(kept.key, f"{kept.name} does not have the servers of the cluster: {refused}")
            self._again(kept, min(LAST_DELAY, FIRST_DELAY << min(kept.failures - 1, 16)))
            return
        kept.fault, kept.failures = None, 0
        self._log.cured(kept.key, f"{kept.name} has the servers of the cluster again.")
        for line in done.lines:
            self._log.info(line)
        self.changes += len(done.lines)
        self._again(kept, DRAINING if done.again else RECHECK)

    def _again(self, kept: Kept, delay: int) -> None:
        if kept.key in self._timers:
            self._timers[kept.key].cancel()
        self._timers[kept.key] = self._loop.after(delay, lambda: self._apply(kept))
