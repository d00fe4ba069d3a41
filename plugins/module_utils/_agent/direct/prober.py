# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Proves the paths to the servers, again and again: see ``proofs``."""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from ..net import segments
from ..net.netlink import Link
from ..runtime.loop import MILLION, Loop, Timer
from .proofs import ANSWERED, NO_SOURCE, SILENT, TRAFFIC_CLASS, Key, Path, Target, judge, outcome_of
from .second_chances import SecondChances

INTERVAL = MILLION // 2  # between the probes of a path; a server without the VIP drops what its clients send until then
LATE = INTERVAL // 5  # a process that is later than that stood still, and the answers perhaps, too
NUMBERS = 1 << 32


class Probe(NamedTuple):
    """What a path is asked with. It is the same each time, so a reset that was lost is made good by the next one.

    :ivar expected: what an answer acknowledges; no two paths have the same
    """

    target: Target
    ends: segments.Ends
    syn: bytes
    reset: bytes
    expected: int


class Prober:
    """The paths of one link."""

    def __init__(self, loop: Loop, wire: Any, changed: Callable[[], None]) -> None:
        """
        :param wire: a wire.Wire
        :param changed: called when something else is known of a path, or of several
        """
        self._loop, self._wire, self._changed = loop, wire, changed
        self._probes: Dict[Key, Probe] = {}
        self._keys: Dict[int, Key] = {}  # by what an answer acknowledges
        self._sent: Dict[Key, int] = {}  # when those were sent that have no answer yet
        self._timer: Optional[Timer] = None
        self._due = 0  # when that is to judge
        self._news = False  # that ``changed`` has not been told
        self.paths: Dict[Key, Path] = {}
        self.chances = SecondChances(loop, wire)
        for descriptor in wire.descriptors():
            loop.watch(descriptor, self._receive)

    def want(self, link: Optional[Link], targets: Mapping[Key, Target]) -> None:
        """Prove these paths, new and changed ones at once. Without a link all that is known stays as it is."""
        if not link:
            targets = {}
        else:
            self._wire.use(link)
            self.paths = {key: self.paths.get(key, Path()) for key in targets}
            self.chances.keep(targets)
        for key in [key for key, probe in self._probes.items() if targets.get(key) != probe.target]:
            self._forget(key)
        for key, target in targets.items():
            if not target.alive:
                self.paths[key] = Path(target.mac)
            elif key not in self._probes:
                probe = self._probes[key] = self._probe(key, target)
                self._keys[probe.expected] = key
                self._send(key, self._loop.now())
        if self._probes and not self._timer:
            self._wait()

    def mtu(self) -> int:
        """Return the MTU of the link, 0 if it is not known."""
        return int(self._wire.mtu())

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
        for key in list(self._probes):
            self._forget(key)
        for descriptor in self._wire.descriptors():
            self._loop.forget(descriptor)
        self._wire.close()

    def _probe(self, key: Key, target: Target) -> Probe:
        expected = random.randrange(NUMBERS)
        while expected in self._keys:
            expected = random.randrange(NUMBERS)
        ends = segments.Ends(target.source, self._wire.ports[0], key[0], key[1])
        if not target.source:
            return Probe(target, ends, b"", b"", expected)
        syn = segments.write(ends, segments.SYN, (expected - 1) % NUMBERS, TRAFFIC_CLASS)
        return Probe(target, ends, syn, segments.write(ends, segments.RST, expected, TRAFFIC_CLASS), expected)

    def _send(self, key: Key, now: int) -> None:
        probe = self._probes[key]
        self._sent[key] = now
        if probe.syn:
            self._wire.send(probe.syn, probe.target.mac)

    def _reset(self, probe: Probe, mac: str) -> None:
        """Leave no half of a connection at a server."""
        if probe.reset:
            self._wire.send(probe.reset, mac)

    def _forget(self, key: Key) -> None:
        probe = self._probes.pop(key)
        del self._keys[probe.expected]
        if self._sent.pop(key, None) is not None:
            self._reset(probe, probe.target.mac)

    # -- events

    def _receive(self, _events: int) -> None:
        for segment, mac in self._wire.receive():
            key = self._keys.get(segment.acknowledged)
            if key and key[0] == segment.ends.source:
                self._take(key, outcome_of(segment, mac, self._probes[key].target), mac, segment.mss)
            elif not key:
                self.chances.take(segment, mac)
        self._tell()

    def _take(self, key: Key, outcome: str, mac: str, mss: int) -> None:
        """Take an answer. One that comes too late counts for nothing."""
        if not outcome:
            return
        self._reset(self._probes[key], mac)
        if self._sent.pop(key, None) is not None:
            self._judge(key, outcome, mss)
        if outcome == ANSWERED:  # and the connection is reset, so what follows is of none
            self._news |= self.chances.ask(key, self._probes[key].ends, mac)

    def _tick(self) -> None:
        """Judge the probes that have waited long enough, and send the next ones."""
        now = self._loop.now()
        is_late = now - self._due > LATE
        self._timer = None
        if self._probes:
            self._wait()
        for key, probe in self._probes.items():
            if self._sent.get(key, 0) > now - INTERVAL:
                continue
            if key in self._sent:
                self._reset(probe, probe.target.mac)
                if not is_late:
                    self._judge(key, SILENT if probe.target.source else NO_SOURCE)
            self._send(key, now)
        self._tell()

    def _wait(self) -> None:
        self._due = self._loop.now() + INTERVAL
        self._timer = self._loop.at(self._due, self._tick)

    def _judge(self, key: Key, outcome: str, mss: int = 0) -> None:
        before = self.paths[key]
        after = self.paths[key] = judge(before, self._probes[key].target.mac, outcome, mss)
        self._news |= after._replace(failures=0) != before._replace(failures=0)

    def _tell(self) -> None:
        if self._news:
            self._news = False
            self._changed()
