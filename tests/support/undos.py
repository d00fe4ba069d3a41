# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members whose run is interrupted, and which return to their old settings: the routers are the forecast's.

Each member has two routers, one with the old settings and one with the new, of which it runs one at most. Each has an
instance for each VIP. `undoing` decides when it does what.
"""

from __future__ import annotations

import itertools
from typing import Callable, Dict, List, Optional, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, packet, tracking
from ansible_collections.onprem.lb.plugins.module_utils._host.states import undoing
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.simulator import Instance, Simulation
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

SECOND = 1_000_000
VIPS = ("192.0.2.10", "192.0.2.20")  # of one Virtual Router each; another member is the first of each
OLD = {"vrids": (51, 52), "version": 2, "interval": 1, "password": "old"}
SETTLE = 5.0
LOOKS_S = 1.5
AFTER_S = 40.0  # for which the times of a fast host are
STARTS_S = 1.0  # what the program of the undo needs until it acts
BOOT_S = 20.0
PERIOD = 2 * SECOND  # of which each interval of an Advertisement is a part


class Member:
    """A member: what its files say, what it runs, and its undo."""

    def __init__(self, name: str, role: str) -> None:
        self.name, self.role = name, role
        self.files, self.running = "old", "old"
        self.due: Optional[float] = None  # when it returns
        self.announced: Optional[float] = None  # when a heartbeat was
        self.begun = self.recorded = self.done = self.confirmed = self.up = self.blocked = self.is_late = self.stays = (
            False
        )
        self.generation = 0  # of its return: an earlier one is over when this has changed


class World:
    """The members of a pair, or of more, in virtual time; ``new`` are the settings that the run brings.

    :cvar settle: the ``settle`` of the run
    :param engine: native or agent
    :param after: the ``undo_after`` of the run
    :param is_slow: whether the hosts are as slow as they may be with it
    """

    settle = SETTLE

    def __init__(
        self,
        new: Dict[str, object],
        names: Tuple[str, ...] = ("lb1", "lb2", "lb3"),
        engine: str = engines.NATIVE,
        after: float = AFTER_S,
        is_slow: bool = False,
    ) -> None:
        self.after, self.pace = after, after / AFTER_S if is_slow else 1.0
        # The agent goes on with the state that it has, unless the Virtual Router becomes another one.
        self.keeps_state = engine == engines.AGENT and not {"vrids", "version"} & {*new}
        self.members = {name: Member(name, undoing.OTHER if at else undoing.FIRST) for at, name in enumerate(names)}
        self.settings = {"old": OLD, "new": {**OLD, **new}}
        self.first_source = "192.0.2.11"  # of the first name
        self.are_failing = False  # the checks that the new settings bring
        routers = itertools.product(names, self.settings, range(len(VIPS)))
        self.sim = Simulation([self._instance(name, which, number, names) for name, which, number in routers])
        for name in names:
            self.sim.start(f"{name} old")
            self.members[name].up = True
        self.passes(10)
        self.began = self.sim.now

    def _instance(self, name: str, which: str, number: int, names: Tuple[str, ...]) -> Instance:
        settings, host = self.settings[which], names.index(name)
        rank = (host - number) % len(names)
        interval = int(settings["interval"] * SECOND)
        router = machine.VirtualRouter(
            version=settings["version"], priority=254 - rank, interval=interval, source=f"192.0.2.{11 + host}"
        )
        advertisement = packet.Advertisement(
            settings["version"],
            settings["vrids"][number],
            254 - rank,
            interval,
            (VIPS[number],),
            auth_pass=settings["password"].encode() if settings["version"] == 2 else b"",
        )
        return Instance(f"{name} {which}", VIPS[number], router, advertisement)

    # -- the run

    def passes(self, seconds: float) -> None:
        self.sim.run(self.sim.now + round(seconds * SECOND))

    def ends(self, seconds: float) -> None:
        """Let the last seconds pass. Once nobody is to act, and the link repeats itself, what is left is the same."""
        end, before = self.sim.now + round(seconds * SECOND), None
        while self.sim.now < end:
            self.sim.run(min(end, self.sim.now + PERIOD))
            found, acts = self._pattern()
            if found == before and not acts:
                self.sim.now = end
            before = found

    def _pattern(self) -> Tuple[object, bool]:
        """Return what the routers do from now on, and whether somebody else is to act."""
        now, on_link = self.sim.now, self.sim.in_flight()
        routers = [(each._replace(deadline=None), each.deadline and each.deadline - now) for each in self.sim.states]
        return (routers, on_link), any(instance < 0 for _after, instance, _what in on_link)

    def arm(self, name: str) -> None:
        member = self.members[name]
        member.due = due = self.sim.now + undoing.delay(member.role, self.after, self.settle) * SECOND
        self.sim.call_at(int(due), lambda _sim: self._elapse(member, due))

    def announce(self, name: str) -> None:
        self.members[name].announced = float(self.sim.now)

    def postpone(self, name: str) -> bool:
        """Let a member wait anew, unless the heartbeat took too long; return whether it has not begun to return."""
        member = self.members[name]
        if member.begun or member.done:
            self.begin_again(name)
            return False
        since = None if member.announced is None else (self.sim.now - member.announced) / SECOND
        member.is_late = not undoing.is_in_time(member.role, self.after, self.settle, since)
        if not member.is_late:
            self.arm(name)
        return True

    def late(self) -> bool:
        """Whether a member has not accepted the last heartbeat."""
        return any(member.is_late for member in self.members.values())

    def begin_again(self, name: str) -> None:
        member = self.members[name]
        member.done, member.due = False, float(self.sim.now)
        member.generation += 1
        self._begin(member)

    def confirm(self, name: str) -> bool:
        member = self.members[name]
        if member.begun or member.done:
            self.begin_again(name)
            return False
        member.confirmed, member.due = True, None
        member.generation += 1
        return True

    def abandon(self) -> None:
        for name, member in self.members.items():
            if member.done:
                self.begin_again(name)

    def write(self, name: str) -> bool:
        """Return whether the member lets the run write: not once it has begun to return."""
        member = self.members[name]
        if member.recorded or member.done:
            return False
        member.files = "new"
        return True

    def stop(self, name: str) -> None:
        member = self.members[name]
        if member.running and member.up:
            self.sim.stop(f"{name} {member.running}")
        member.running = ""

    def load(self, name: str) -> bool:
        """Reload or start the router; False if it may not. keepalived gives the VIP up, as it does for a new VRID."""
        member = self.members[name]
        if member.blocked:
            return False
        if member.up and member.running != member.files:
            if member.running and self.keeps_state:
                self._reconfigure(f"{name} {member.running}", f"{name} {member.files}")
            else:
                self.stop(name)
                self.sim.start(f"{name} {member.files}")
            member.running = member.files
            self._check(member)
        return True

    def _check(self, member: Member) -> None:
        """Let the router find what its checks say: those of the old settings succeed."""
        reading = tracking.FAULT if self.are_failing and member.running == "new" else 0
        if member.running and member.up:
            self.sim.inject_all(f"{member.name} {member.running}", machine.TrackerUpdate("check", reading))

    def _reconfigure(self, before: str, after: str) -> None:
        self.sim.running.discard(before)
        self.sim.running.add(after)
        for old, new in zip(self.sim.instances_of(before), self.sim.instances_of(after)):
            self.sim.reconfigure(old, new)

    # -- failures

    def checks_fail(self, seconds: float) -> None:
        """Let what the checks of the new settings ask for fail from now on, and succeed again later."""
        self._turn(True)
        self.sim.call_at(self.sim.now + round(seconds * SECOND), lambda _sim: self._turn(False))

    def _turn(self, are_failing: bool) -> None:
        self.are_failing = are_failing
        for member in self.members.values():
            self._check(member)

    def crash(self, name: str, boots: bool = True) -> None:
        """Lose a host, with its timers. It boots later."""
        member = self.members[name]
        self.sim.crash(f"{name} {member.running}") if member.running else None
        member.up, member.running, member.blocked, member.begun, member.recorded = False, "", False, False, False
        member.generation += 1
        if boots:
            self.sim.call_at(self.sim.now + round(BOOT_S * self.pace * SECOND), lambda _sim: self._boot(member))

    def _boot(self, member: Member) -> None:
        member.up = True
        if member.due is not None and not member.done:
            self._begin(member, booted=True)
        else:
            self.load(member.name)

    # -- the undo

    def _elapse(self, member: Member, due: float) -> None:
        """The time of a member has come, unless its timer was restarted, or stopped. A new one ends no return."""
        if due == member.due and member.up and not member.begun:
            self._begin(member)

    def _begin(self, member: Member, booted: bool = False) -> None:
        """Begin to return, as systemd says at once. The program acts later, and records then that it has begun."""
        member.begun, generation = True, member.generation
        later = self.sim.now + round(STARTS_S * self.pace * SECOND)
        self.sim.call_at(later, lambda _sim: self._return(member, generation, booted))

    def _return(self, member: Member, generation: int, booted: bool) -> None:
        if generation != member.generation or not member.up:
            return
        member.recorded = True
        if undoing.waits(member.role, booted) and not member.running:
            self._wait(member, generation)
            return
        self._look_first(member, generation, booted, self.sim.now)

    def _look_first(self, member: Member, generation: int, booted: bool, began: float) -> None:
        """Look at the link while the router still runs."""
        later = self.sim.now + round(LOOKS_S * SECOND)
        self.sim.call_at(later, lambda _sim: self._looked(member, generation, booted, began))

    def _looked(self, member: Member, generation: int, booted: bool, began: float) -> None:
        if generation != member.generation or not member.up:
            return
        seen, old = self._seen_by(member), self._instances_of("old")
        if undoing.waits(member.role, booted):
            waited, first = (self.sim.now - began) / SECOND, [self.first_source]
            reason = undoing.reason_not_to_stop(first, self._instances_of(member.running), seen, waited)
            if reason is None:
                self._look_first(member, generation, booted, began)
            elif reason:
                self._stay(member)
            else:
                self._wait(member, generation, undoing.hears_first(first, old, seen))
        elif undoing.disagreeing(old, seen):
            self._stay(member)
        else:
            member.files = "old"
            self.load(member.name)
            self._end(member)

    def _wait(self, member: Member, generation: int, served: bool = True) -> None:
        """Stop the router, if it runs, and look at the link from then on.

        :param served: False if it stops because it serves nobody
        """
        member.blocked, now, ran = True, self.sim.now / SECOND, bool(member.running)
        self.stop(member.name)
        patience = undoing.Patience(
            self._instances_of("old"),
            self.settle,
            self._instances_of(member.files),
            now if ran else None,
            now + undoing.first_is_over(self.after, self.settle),
            now + undoing.first_stays(self.after, self.settle),
            served,
        )
        self._look(member, generation, patience)

    def _look(self, member: Member, generation: int, patience: undoing.Patience) -> None:
        if generation != member.generation or not member.up:
            return
        seen, now = self._seen_by(member), self.sim.now / SECOND
        if not patience.hindrance(seen, now):
            member.files, member.blocked = "old", False
            self.load(member.name)
            self._end(member)
        elif patience.reason_to_stay(seen, now):
            member.blocked = False
            self.load(member.name)
            self._stay(member)
        else:
            later = self.sim.now + round(LOOKS_S * SECOND)
            self.sim.call_at(later, lambda _sim: self._look(member, generation, patience))

    def _stay(self, member: Member) -> None:
        member.stays = True
        self._end(member)

    def _end(self, member: Member) -> None:
        member.begun, member.recorded, member.done, member.due = False, False, True, None

    def _instances_of(self, which: str) -> List[Dict[str, object]]:
        settings = self.settings[which]
        return [
            {
                "vrid": vrid,
                "version": settings["version"],
                "advert_interval": float(settings["interval"]),
                "auth_pass": settings["password"],
                "addresses": [f"{vip}/24"],
                "interface": "eth0",
                "peers": [],
            }
            for vrid, vip in zip(settings["vrids"], VIPS)
        ]

    def _seen_by(self, member: Member) -> undoing.Seen:
        others = [
            self.sim.instances[at] for at in self.sim.active() if not self._is_of(self.sim.instances[at], member.name)
        ]
        heard = [
            {
                "vrid": each.advertisement.vrid,
                "version": each.advertisement.version,
                "addresses": list(each.advertisement.addresses),
                "interval": each.router.interval / SECOND,
                "auth_pass": each.advertisement.auth_pass.decode(),
                "source": each.router.source,
            }
            for each in others
        ]
        answering = {vip: sorted(found - {member.name}) for vip, found in self.holders().items()}
        return undoing.Seen(heard, answering, len(others) < len(self.sim.active()))

    @staticmethod
    def _is_of(instance: Instance, name: str) -> bool:
        return instance.member.partition(" ")[0] == name

    # -- what came of it

    def holders(self, holding: Optional[Set[int]] = None) -> Dict[str, Set[str]]:
        """Return who holds each VIP."""
        found: Dict[str, Set[str]] = {vip: set() for vip in VIPS}
        for at in self.sim.holding if holding is None else holding:
            instance = self.sim.instances[at]
            found[instance.name].add(instance.member.partition(" ")[0])
        return found

    def spans(self, count: Callable[[int], bool], since: Optional[float] = None) -> List[float]:
        """Return for how many seconds the number of a VIP's holders was so, each time since the run began."""
        began = self.began if since is None else since
        moments = list(self.sim.history)
        ends = [moment.at for moment in moments[1:]] + [self.sim.now]
        found: List[float] = []
        for moment, end in zip(moments, ends):
            held = self.holders(set(moment.holding)).values()
            if end > began and any(count(len(members)) for members in held):
                found.append((end - max(moment.at, began)) / SECOND)
        return found

    def two_held(self) -> float:
        return max(self.spans(lambda count: count > 1), default=0.0)

    def runs(self) -> Dict[str, str]:
        return {name: member.running for name, member in self.members.items()}
