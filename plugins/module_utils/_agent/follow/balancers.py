# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps what follows the nodes at the servers that it should have: at once, again after a fault, and each minute.

Each output is one by itself: what is wrong with one keeps no other from what it should have.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..runtime.loop import MILLION, Loop, Timer
from . import groups, haproxy, proxy
from .changes import Applied, Refused
from .groups import Servers
from .settings import Settings

RECHECK = 60 * MILLION  # somebody may have restarted a balancer, or written its file
DRAINING = MILLION  # while sessions with a server last
FIRST_DELAY, LAST_DELAY = 2 * MILLION, 60 * MILLION  # after a fault


class Words(NamedTuple):
    """What the log says of an output."""

    wrong: str
    cured: str


class Output:
    """One of what follows. Mutable: what is wrong with it."""

    def __init__(
        self, name: str, loop: Loop, log: Any, words: Words, write: Callable[[], Applied], label: str = ""
    ) -> None:
        """
        :param write: makes it agree, or raises Refused
        :param label: of the nodes that it has, where it has only those
        """
        self.name, self._key = name, f"{name} {label}"
        self.fault: Optional[str] = None
        self.changes = 0  # that were made so far
        self._loop, self._log, self._words, self._write = loop, log, words, write
        self._failures = 0
        self._timer: Optional[Timer] = None

    def apply(self) -> None:
        """Make it agree, now and from now on."""
        try:
            done = self._write()
        except Refused as refused:
            self.fault, self._failures = str(refused), self._failures + 1
            self._log.fault(self._key, f"{self._words.wrong}: {refused}")
            self._again(min(LAST_DELAY, FIRST_DELAY << min(self._failures - 1, 16)))
            return
        self.fault, self._failures = None, 0
        self._log.cured(self._key, self._words.cured)
        for line in done.lines:
            self._log.info(line)
        self.changes += len(done.lines)
        self._again(DRAINING if done.again else RECHECK)

    def report(self) -> Dict[str, Any]:
        return {"name": self.name, "fault": self.fault}

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _again(self, delay: int) -> None:
        self.stop()
        self._timer = self._loop.after(delay, self.apply)


class OfLabel:
    """The backends and services that have the nodes of one label. Mutable: the servers that they should have."""

    def __init__(self, loop: Loop, log: Any, settings: Settings, label: str) -> None:
        """:param settings: as `groups.of_label` returns them"""
        self.outputs: List[Output] = []
        self.balancers: List[Any] = []  # what says which of their servers answer
        self.files: List[Any] = []  # what says which servers they have
        self.wanted: Servers = ()

        def output(name: str, of: str, apply: Callable[[Sequence[Any]], Applied]) -> None:
            words = Words(
                f"{of} does not have the servers of the cluster", f"{of} has the servers of the cluster again."
            )
            self.outputs.append(Output(name, loop, log, words, lambda: apply(self.wanted), label))

        if settings.haproxy:
            file = haproxy.File(settings.haproxy)
            process = haproxy.Process(settings.haproxy, settings.drain_for, loop.now, file)
            output("haproxy_file", settings.haproxy.config, file.apply)
            output("haproxy", "haproxy", process.apply)
            self.files.append(file)
            self.balancers.append(process)
        if settings.proxy:
            balancer = proxy.Balancer(settings.proxy)
            output("proxy", "proxy", balancer.apply)
            self.files.append(balancer)
            self.balancers.append(balancer)

    def want(self, servers: Servers) -> None:
        if servers and servers != self.wanted:
            self.wanted = servers
            for output in self.outputs:
                output.apply()


class Balancers:
    """Applies the servers of each label to each balancer that is configured."""

    def __init__(self, loop: Loop, log: Any, settings: Settings) -> None:
        self._of = {
            label: OfLabel(loop, log, groups.of_label(settings, label), label) for label in groups.labels(settings)
        }

    @property
    def _outputs(self) -> List[Output]:
        return [output for each in self._of.values() for output in each.outputs]

    @property
    def wanted(self) -> Dict[str, Servers]:
        """The servers that there should be, by label."""
        return {label: each.wanted for label, each in self._of.items() if each.wanted}

    @property
    def changes(self) -> int:
        """How many were made so far."""
        return sum(output.changes for output in self._outputs)

    def want(self, servers: Mapping[str, Servers]) -> None:
        """Make these the servers of all balancers, by label, unless they are, or there are none."""
        for label, wanted in servers.items():
            self._of[label].want(wanted)

    def present(self, label: str) -> Servers:
        """Return the servers that the balancers' files have for the nodes of a label; nothing if they have no use."""
        for file in self._of[label].files if label in self._of else ():
            with contextlib.suppress(Refused):
                return tuple(file.written())
        return ()

    def answering(self, label: str) -> Optional[Dict[str, bool]]:
        """Return whether the balancers' checks find a server, by its address; None if no balancer can be asked."""
        found: Dict[str, bool] = {}
        try:
            for balancer in self._of[label].balancers:
                for address, answers in balancer.answering():
                    found[address] = answers or found.get(address, False)
        except Refused:
            return None
        return found

    def report(self) -> List[Dict[str, Any]]:
        faults: Dict[str, Optional[str]] = {}
        for output in self._outputs:
            faults[output.name] = faults.get(output.name) or output.fault
        return [{"name": name, "fault": fault} for name, fault in faults.items()]

    def stop(self) -> None:
        for output in self._outputs:
            output.stop()
