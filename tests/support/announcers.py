# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members that announce their VIPs, whose run is interrupted, and which return. Time is virtual.

The protocol of arming, heartbeats and confirmation is that of `undos.World`. `serving` decides what a return gives up.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any, Callable, Dict, List, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._host.states import keeping, serving, undoing
from ansible_collections.onprem.lb.plugins.module_utils._host.states.snapshot import Snapshot
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import order
from ansible_collections.onprem.lb.plugins.module_utils._shared import paths

from . import undos
from .states import CONFIGS, FRR_CONF, GATE_CONF, R1, VIP, announcing, frr, gate

SECOND = undos.SECOND
NOTICED_S = 4.0  # until the gate knows that a balancer does not serve; one that serves again it knows as late
CONNECTS_S = 3.0  # until a session that has ended is there again
LOADS_S = 1.0
PAUSE_S = 0.5
OTHER_CHECK = {"name": "haproxy_down", "type": "file", "file": "/run/other.down"}
NOTHING = announcing()._replace(files=[], units={}, served=[])
CHANGES = {
    "balancer": announcing(served="two"),
    "password": announcing(conf=frr(password="two")),
    "checks": announcing(config=gate(checks=[OTHER_CHECK])),
    "balancer and password": announcing(served="two", conf=frr(password="two")),
    "everything": announcing("two", frr(password="two"), gate(checks=[OTHER_CHECK])),
}


class Clock:
    """Virtual time, as the simulation of the forecast has it."""

    def __init__(self) -> None:
        self.now = 0
        self._queue: List[Tuple[int, int, Callable[[Any], None]]] = []
        self._count = itertools.count()

    def call_at(self, at: int, call: Callable[[Any], None]) -> None:
        heapq.heappush(self._queue, (max(at, self.now), next(self._count), call))

    def run(self, until: int) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.now, _number, call = heapq.heappop(self._queue)
            call(self)
        self.now = until


class Member(undos.Member):
    """A member: what it runs, what it returns to, and what its gate has found."""

    def __init__(self, name: str, role: str, runs: Snapshot) -> None:
        super().__init__(name, role)
        self.runs, self.then = runs, runs
        self.connected_from = -(1 << 60)  # since when its session may be established
        self.is_on_lo = False
        self.stays_because = ""


class World(undos.World):
    """The members; ``change`` is what the run brings.

    :param broken: what does not serve: ``(name, part, text)`` of the balancer or of the gate's checks
    :param accepted: the passwords that routers accept
    :param joins: who announces nothing before the run
    :param unknown: what nobody can read: established, on_lo, or both
    """

    settle = order.settle(NOTICED_S + 1)

    def __init__(
        self,
        change: str = "balancer",
        names: Tuple[str, ...] = ("lb1", "lb2", "lb3"),
        broken: Tuple[Tuple[str, str], ...] = (),
        accepted: Tuple[str, ...] = ("one", "two"),
        joins: str = "",
        unknown: Tuple[str, ...] = (),
        after: float = undos.AFTER_S,
    ) -> None:
        self.sim: Any = Clock()
        self.after, self.pace = after, 1.0
        self.new, self.broken, self.accepted, self.unknown = CHANGES[change], {*broken}, {*accepted}, {*unknown}
        self.members: Dict[str, Any] = {}
        for name in names:
            role = undoing.FIRST if name == names[-1] else undoing.OTHER
            self.members[name] = Member(name, role, NOTHING if name == joins else announcing())
            self.members[name].up = True
        self.history: List[Tuple[float, Set[str], str]] = []  # when who serves, and who has acted
        for member in self.members.values():
            self._judge(member)
        self._note("the beginning")
        self.passes(10)

    # -- what serves

    def serving(self) -> Set[str]:
        return {name for name, member in self.members.items() if member.up and self._serves(member)}

    def _serves(self, member: Any) -> bool:
        return bool(member.is_on_lo and self._is_connected(member))

    def _is_connected(self, member: Any) -> bool:
        text = _text(member.runs, FRR_CONF)
        accepted = any(f"password {each}\n" in text for each in self.accepted)
        return bool(member.runs.files and accepted and self.sim.now >= member.connected_from)

    def _is_well(self, member: Any) -> bool:
        """Whether all that the gate asks for is as it should be."""
        parts = [_text(member.runs, path) for path in (CONFIGS["haproxy"], GATE_CONF)]
        wrong = [part for name, part in self.broken if name in (member.name, "*")]
        return all(parts) and not any(part in text for part in wrong for text in parts)

    def _judge(self, member: Any) -> None:
        member.is_on_lo = self._is_well(member)

    def breaks(self, name: str, part: str) -> None:
        """Let something of a member serve no longer."""
        self.broken.add((name, part))
        for member in self.members.values():
            self._noticed_later(member, "a failure")

    def _noticed_later(self, member: Any, who: str) -> None:
        def notice(_sim: Any) -> None:
            self._judge(member)
            self._note(who)

        self.sim.call_at(self.sim.now + round(NOTICED_S * SECOND), notice)

    def _run(self, member: Any, runs: Snapshot, who: str) -> None:
        """Have a member run something else: a reload ends no session but those that cannot go on."""
        before, member.runs = _text(member.runs, FRR_CONF), runs
        if before != _text(runs, FRR_CONF):
            member.connected_from = self.sim.now + round(CONNECTS_S * SECOND)
            self.sim.call_at(member.connected_from, lambda _sim: self._note(who))
        member.is_on_lo = member.is_on_lo and bool(_text(runs, GATE_CONF))
        self._note(who)
        self._noticed_later(member, who)

    def _note(self, who: str) -> None:
        self.history.append((self.sim.now / SECOND, self.serving(), who))

    # -- the run

    def save(self, name: str) -> None:
        """Save the state of a member, before the run arms its undo."""
        member = self.members[name]
        member.then = member.runs._replace(served=serving.certain(member.runs, self.sees(member)))
        self.arm(name)

    def change(self, name: str) -> bool:
        member = self.members[name]
        if member.recorded or member.done:
            return False
        self._run(member, self.new, "the run")
        return True

    def proved(self, name: str) -> bool:
        self.passes(NOTICED_S + 1)
        return self._serves(self.members[name])

    def crash(self, name: str, boots: bool = True) -> None:
        member = self.members[name]
        member.up = member.is_on_lo = member.begun = member.recorded = False
        member.generation += 1
        self._note("a crash")
        if boots:
            self.sim.call_at(self.sim.now + round(undos.BOOT_S * SECOND), lambda _sim: self._boot(member))

    def _boot(self, member: Any) -> None:
        """What an undo restores at boot it restores before anything starts."""
        member.up = True
        if member.due is not None and not member.done:
            member.runs = member.then
            self._end(member)
        member.connected_from = self.sim.now + round(CONNECTS_S * SECOND)
        self._noticed_later(member, "a boot")

    # -- the undo

    def sees(self, member: Any) -> serving.Seen:
        peers = [R1] if self._is_connected(member) else []
        return serving.Seen(
            None if "on_lo" in self.unknown else ["127.0.0.1", *([VIP] if member.is_on_lo else [])],
            None if "established" in self.unknown else peers,
            "" if "established" in self.unknown else _text(member.runs, FRR_CONF),
        )

    def _return(self, member: Any, generation: int, booted: bool) -> None:
        if generation != member.generation or not member.up:
            return
        member.recorded = True
        now, then, seen = member.runs, member.then, self.sees(member)
        member.stays_because = serving.reason_to_stay(now, then, seen)
        if member.stays_because:
            self._end(member)
            return
        member.stays_because = serving.reason_of_frr(now, then, seen)
        if member.stays_because:
            then = keeping.with_files(now, then, paths.FRR_FILES)
        vips = serving.of_both(serving.served(now, seen), then)
        self._run(member, then, f"the return of {member.name}")
        until = self.sim.now + round((LOADS_S + serving.proof_s(self.settle)) * SECOND)
        self.sim.call_at(until, lambda _sim: self._prove(member, generation, now, vips))

    def _prove(self, member: Any, generation: int, before: Snapshot, vips: List[str]) -> None:
        if generation != member.generation or not member.up:
            return
        if serving.lost(vips, self.sees(member)):
            member.stays_because = "it did not serve"
            self._run(member, before, f"{member.name} goes forth")
        self._end(member)


def _text(snapshot: Snapshot, path: str) -> str:
    return next((file.content.decode() for file in snapshot.files if file.path == path), "")
