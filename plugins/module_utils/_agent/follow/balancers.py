# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps what follows the cluster at the servers that there should be: at once, again after a fault, and each minute.

Each output is one by itself: what is wrong with one keeps no other from its servers.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..runtime.loop import MILLION, Loop, Timer
from . import haproxy, proxy
from .changes import Applied, Refused
from .settings import Server, Settings

RECHECK = 60 * MILLION  # somebody may have restarted a balancer, or written its file
DRAINING = MILLION  # while sessions with a server last
FIRST_DELAY, LAST_DELAY = 2 * MILLION, 60 * MILLION  # after a fault


class Words(NamedTuple):
    """What the log says of an output."""

    wrong: str
    cured: str


class Output:
    """One of what follows. Mutable: what is wrong with it."""

    def __init__(self, name: str, loop: Loop, log: Any, words: Words, write: Callable[[], Applied]) -> None:
        """:param write: makes it agree, or raises Refused"""
        self.name = name
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
            self._log.fault(self.name, f"{self._words.wrong}: {refused}")
            self._again(min(LAST_DELAY, FIRST_DELAY << min(self._failures - 1, 16)))
            return
        self.fault, self._failures = None, 0
        self._log.cured(self.name, self._words.cured)
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


class Balancers:
    """Applies a list of servers to each balancer that is configured."""

    def __init__(self, loop: Loop, log: Any, settings: Settings) -> None:
        self._outputs: List[Output] = []
        self.wanted: Tuple[Server, ...] = ()

        def output(name: str, words: Words, apply: Callable[[Sequence[Server]], Applied]) -> None:
            self._outputs.append(Output(name, loop, log, words, lambda: apply(self.wanted)))

        if settings.haproxy:
            file = haproxy.File(settings.haproxy)
            process = haproxy.Process(settings.haproxy, settings.drain_for, loop.now, file)
            path = settings.haproxy.config
            output("haproxy_file", _servers(path), file.apply)
            output("haproxy", _servers("haproxy"), process.apply)
        if settings.proxy:
            output("proxy", _servers("proxy"), proxy.Balancer(settings.proxy).apply)

    @property
    def changes(self) -> int:
        """How many were made so far."""
        return sum(output.changes for output in self._outputs)

    def want(self, servers: Sequence[Server]) -> None:
        """Make these the servers of all balancers, unless they are, or there are none."""
        if not servers or tuple(servers) == self.wanted:
            return
        self.wanted = tuple(servers)
        for output in self._outputs:
            output.apply()

    def report(self) -> List[Dict[str, Any]]:
        return [output.report() for output in self._outputs]

    def stop(self) -> None:
        for output in self._outputs:
            output.stop()


def _servers(of: str) -> Words:
    return Words(f"{of} does not have the servers of the cluster", f"{of} has the servers of the cluster again.")
