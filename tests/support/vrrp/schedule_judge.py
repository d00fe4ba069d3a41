# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays a random schedule and verifies the properties that VRRP promises.

Once the link has healed and `settling_time` has passed:

(a) each Virtual Router has exactly one Active among those that run and are not in FAULT, or none if there are none;
(b) no other member has a higher priority and preempts, and none that was Active when the chaos ended has lost to a
    lower priority; between equal priorities the address decides;
(c) no state changes any more;
(d) when the Active resigns, another member is Active after Skew_Time.

As soon as an Active has advertised on the healed link:

(e) no member takes over that has to accept its Advertisements.

At every moment of the schedule:

(f) no member is Active while one of its readings is FAULT or missing;
(g) only Active members hold addresses;
(h) Advertisements do not trigger each other without end;
(i) the instances of a sync group are Active together, except while they start or stop one after the other.
"""

from __future__ import annotations

import collections
import ipaddress
import random
from typing import Any, Counter, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import simulator

from support.vrrp import schedules
from support.vrrp.schedules import Action, Impairment, Schedule

STORM = 50_000  # events; a schedule has some hundreds


class Violation(AssertionError):
    """A property does not hold."""


class Link(simulator.Network):
    """A link that loses, delays, duplicates and reorders Advertisements until it is healed."""

    def __init__(self, rng: random.Random, transit: Tuple[int, int]) -> None:
        super().__init__()
        self.rng, self.transit = rng, transit
        self.impairment = Impairment(0, 0, 1)
        self.healed = False
        self.arrivals: Dict[Tuple[str, str], int] = {}
        self.latest = 0  # when the last Advertisement of the chaos arrives

    def delays(self, sender: str, receiver: str, now: int) -> Sequence[int]:
        rng, impairment = self.rng, self.impairment
        if self.healed:  # the Advertisements of one sender stay in order
            pair = sender, receiver
            self.arrivals[pair] = max(self.arrivals.get(pair, 0), now + rng.randint(*self.transit))
            return (self.arrivals[pair] - now,)
        if (sender, receiver) in self.blocked or rng.random() < impairment.lost:
            return ()
        delays = [1 + rng.randrange(impairment.delay) for _copy in range(1 + (rng.random() < impairment.duplicated))]
        self.latest = max(self.latest, now + max(delays))
        return delays


class Play(simulator.Simulation):
    """A schedule in the simulator. The properties (f) to (i) are verified at each event."""

    network: Link

    def __init__(self, schedule: Schedule, rng: random.Random) -> None:
        super().__init__(schedule.instances, Link(rng, schedule.transit), schedule.groups, schedule.drift)
        self.schedule, self.rng = schedule, rng
        self.truth = [{tracker.name: tracker.readings[0] for tracker in some} for some in schedule.trackers]
        self.readings: List[Dict[str, tracking.PriorityDelta]] = [{} for _instance in schedule.instances]
        self.absent: Set[str] = {instance.member for instance in schedule.instances}  # those without a process
        self.suspended: Dict[str, int] = {}
        self.stable = schedule.end  # since when nothing has happened
        self.events = 0
        self.log: List[Tuple[int, Action]] = []
        for action in schedule.actions:
            self._later(action)

    def _later(self, action: Action) -> None:
        self.call_at(action.at, lambda play: play.apply(action))

    def apply(self, action: Action) -> None:
        """Carry out an action; for a suspended member, when it resumes."""
        resumes = self.suspended.get(action.member, 0)
        if resumes > self.now:
            self._later(action._replace(at=resumes))
            return
        self.log.append((self.now, action))
        getattr(self, f"_{action.verb}")(action.member, action.what)

    def _impair(self, member: str, impairment: Impairment) -> None:
        self.network.impairment = impairment

    def _partition(self, member: str, pairs: Any) -> None:
        self.network.blocked = pairs

    _one_way_partition = _partition

    def _heal(self, member: str, what: None) -> None:
        self.heal()
        self.network.healed = True

    def _crash(self, member: str, what: None) -> None:
        self.crash(member)
        self.absent.add(member)
        for instance in self.instances_of(member):
            self.readings[instance] = {}

    def _stop(self, member: str, ends: bool) -> None:
        if member in self.running:
            self.stop(member)
            if ends:
                self._crash(member, None)

    def _start(self, member: str, what: None) -> None:
        if member in self.absent:  # a new process has no readings yet
            self.absent.remove(member)
            for instance in self.instances_of(member):
                for name in self.truth[instance]:
                    at = self.now + self.rng.randrange(20 * schedules.MILLISECOND)
                    self.stable = max(self.stable, at)
                    self._later(Action(at, "first_read", member, (instance, name)))
        if member not in self.running:
            self.start(member)

    def _pause(self, member: str, until: int) -> None:
        self.suspended[member] = until
        self.pause(member, until)

    def _read(self, member: str, what: Any) -> None:
        if what:
            instance, name, reading = what
            self.truth[instance][name] = reading
            self._first_read(member, (instance, name))

    def _first_read(self, member: str, what: Tuple[int, str]) -> None:
        instance, name = what
        if member not in self.absent:
            self.readings[instance][name] = self.truth[instance][name]
            self.inject(instance, machine.TrackerUpdate(name, self.truth[instance][name]))

    def inject(self, instance: int, event: machine.Event) -> None:
        super().inject(instance, event)
        self.events += 1
        if self.events > STORM:
            raise Violation("(h) Advertisements trigger each other without end")
        for at in self.together(instance):
            active = self.states[at].name == machine.ACTIVE
            if active != (at in self.holding):
                has = "has" if at in self.holding else "lacks"
                raise Violation(f"(g) {self.label(at)} is {self.states[at].name} and {has} the addresses")
            if active and (self.in_fault(at) or len(self.readings[at]) < len(self.truth[at])):
                raise Violation(f"(f) {self.label(at)} is Active with the readings {self.readings[at]}")
            if active != (instance in self.holding) and not self._alone(instance, event):
                raise Violation(f"(i) {self.label(instance)} and {self.label(at)} are not Active together")

    def _alone(self, instance: int, event: machine.Event) -> bool:
        """Whether an instance of a sync group may be Active without the others, or the others without it.

        The address owner is Active as soon as its own readings are there (RFC 9568 section 6.4.1).
        """
        return isinstance(event, machine.Stop) or self.instances[instance].router.priority == tracking.OWNER

    def together(self, instance: int) -> Tuple[int, ...]:
        """Return the instances whose state changes with this one's: those of its sync group."""
        return self._grouped.get(instance, (instance,))

    def in_fault(self, instance: int) -> bool:
        """Whether an instance, or another one of its sync group, has a reading that is FAULT."""
        return any(tracking.FAULT in self.readings[at].values() for at in self.together(instance))

    def priority(self, instance: int) -> int:
        """Return the effective priority, computed without the state machine's code."""
        base = self.instances[instance].router.priority
        if base == tracking.OWNER:
            return base
        return sorted((1, base + sum(delta or 0 for delta in self.readings[instance].values()), 254))[1]

    def label(self, instance: int) -> str:
        return f"{self.instances[instance].name} on {self.instances[instance].member}"


class Figures(NamedTuple):
    """Counts over many schedules."""

    schedules: int
    changes: int
    latest: Tuple[float, int]  # the last change after the chaos, as a fraction of settling_time, and its seed
    seen: Counter[str]  # situation: in how many schedules

    def plus(self, other: Figures) -> Figures:
        return Figures(
            self.schedules + other.schedules,
            self.changes + other.changes,
            max(self.latest, other.latest),
            self.seen + other.seen,
        )


NOTHING = Figures(0, 0, (0.0, 0), collections.Counter())


def play(seeds: Iterable[int]) -> Figures:
    """Play the schedule of each seed; a Violation names its seed."""
    found = NOTHING
    for seed in seeds:
        played = prepare(seed)
        try:
            latest = judge(played)
        except Violation as error:
            raise Violation(f"seed {seed}: {error}") from error
        seen = collections.Counter(_situations(played))
        found = found.plus(Figures(1, len(played.changes), (latest, seed), seen))
    return found


def prepare(seed: int) -> Play:
    rng = random.Random(seed)
    return Play(schedules.make(rng), rng)


def judge(play: Play) -> float:
    """Run a schedule; return when the last change came, as a fraction of settling_time.

    :raises Violation: a property does not hold
    """
    play.run(play.schedule.end)
    stable = max(play.stable, play.network.latest)
    names = list(dict.fromkeys(instance.name for instance in play.instances))
    routers = {name: [at for at, instance in enumerate(play.instances) if instance.name == name] for name in names}
    bounds = {name: _bound(play, instances) for name, instances in routers.items()}
    slowest = max(instance.router.interval for instance in play.instances)
    # Every Advertisement of the chaos has arrived.
    play.run(stable + play.schedule.transit[1])
    active = play.active()
    # A timer that was set wrongly fires within one Active_Down_Interval.
    play.run(stable + max(bounds.values()) + (machine.MISSED + 2) * slowest)
    latest = 0.0
    for name, instances in routers.items():
        _judge_holder(play, name, instances, [at for at in instances if at in active])
        _judge_acceptance(play, instances, [at for at in instances if at in active], stable + play.schedule.transit[1])
        last = max((at for at, instance, _change in play.changes if instance in instances), default=0) - stable
        if last > bounds[name]:
            raise Violation(f"(c) {name} still changes {last} us after the chaos; the limit is {bounds[name]} us")
        latest = max(latest, last / bounds[name])
    if play.holding:
        _judge_handover(play, play.rng.choice(play.active()))
    return latest


def _bound(play: Play, instances: List[int]) -> int:
    together = play.instances if play.schedule.groups else [play.instances[at] for at in instances]
    return _slowest(simulator.settling_time(together, play.schedule.transit[1]))


def _able(play: Play, instances: List[int]) -> List[int]:
    return [at for at in instances if play.instances[at].member in play.running and not play.in_fault(at)]


def _judge_holder(play: Play, name: str, instances: List[int], before: List[int]) -> None:
    """:param before: the instances that were Active when the chaos ended"""
    able = _able(play, instances)
    active = [at for at in instances if play.states[at].name == machine.ACTIVE]
    if len(active) != min(1, len(able)) or not set(active) <= set(able):
        raise Violation(f"(a) {name}: {_list(play, able)} could be Active, {_list(play, active)} is")
    for at in able:
        if _preempts(play, at, active[0]):
            raise Violation(f"(b) {play.label(at)} outranks {play.label(active[0])} and does not preempt it")
    for at in before:
        if _rank(play, at) > _rank(play, active[0]):
            raise Violation(f"(b) {play.label(at)} was Active, and has lost to {play.label(active[0])}")


def _preempts(play: Play, instance: int, holder: int) -> bool:
    router = play.instances[instance].router
    return (router.preempt or router.priority == tracking.OWNER) and play.priority(instance) > play.priority(holder)


def _judge_acceptance(play: Play, instances: List[int], before: List[int], healed: int) -> None:
    """:param healed: the earliest time at which every Advertisement in transit was sent on the healed link"""
    moved = [
        (at, instance, change.after) for at, instance, change in play.changes if instance in instances and at > healed
    ]
    for holder in before:
        heard = healed + _slowest(play.instances[holder].router.interval) + play.schedule.transit[1]
        left = min((at for at, instance, _after in moved if instance == holder), default=play.now)
        for at, instance, after in moved:
            if after == machine.ACTIVE and heard < at < left and not _preempts(play, instance, holder):
                raise Violation(
                    f"(e) {play.label(instance)} took over from {play.label(holder)}, which it had to accept"
                )


def _judge_handover(play: Play, holder: int) -> None:
    """Stop an Active member, or have a check of it fail; another member must take over in time."""
    instances, member, begin = play.instances, play.instances[holder].member, play.now
    failing = [tracker.name for tracker in play.schedule.trackers[holder] if tracking.FAULT in tracker.readings]
    if failing and play.rng.random() < 0.5:
        play.apply(Action(begin, "read", member, (holder, failing[0], tracking.FAULT)))
    else:
        play.apply(Action(begin, "stop", member, False))
    wait, successors = 0, []
    for resigned in play.together(holder):  # a sync group waits for its slowest
        router = instances[resigned].router
        unit = router.interval if router.version == 3 else machine.SECOND
        successors = _able(
            play, [at for at, instance in enumerate(instances) if instance.name == instances[resigned].name]
        )
        wait = max([wait, *((256 - play.priority(at)) * unit // 256 for at in successors)])
    play.run(begin + _slowest(wait) + play.schedule.transit[1])
    if successors and not {instances[at].name for at in play.together(holder)} <= {
        instances[at].name for at in play.active()
    }:
        raise Violation(f"(d) {play.label(holder)} resigned, and {wait} us later no other member is Active")


def _slowest(ideal: int) -> int:
    """Return how long an ideal duration takes on the slowest clock, which may round up."""
    return -(-ideal * machine.SECOND // (machine.SECOND - schedules.MAX_DRIFT)) + 1


def _rank(play: Play, instance: int) -> Tuple[int, bytes]:
    return play.priority(instance), ipaddress.ip_address(play.instances[instance].router.source).packed


def _list(play: Play, instances: List[int]) -> str:
    return " and ".join(f"{play.label(at)} ({play.priority(at)})" for at in instances) or "none"


def _situations(play: Play) -> Iterator[str]:
    """Yield the names of the situations that a schedule contained."""
    instances, routers = play.instances, [instance.router for instance in play.instances]
    yield from {f"version {router.version}" for router in routers}
    yield from {f"IPv{instance.family}" for instance in instances}
    yield from {"multicast" if instance.peers is None else "unicast" for instance in instances}
    yield from {action.verb for _at, action in play.log}
    if play.schedule.groups:
        yield "sync group"
    if any(router.priority == tracking.OWNER for router in routers):
        yield "address owner"
    if any(router.preempt_delay for router in routers):
        yield "preempt_delay"
    if len({(instance.name, instance.router.interval) for instance in instances}) > len(
        {instance.name for instance in instances}
    ):
        yield "unequal intervals"
    if not play.holding:
        yield "none left"
    yield from {change.after for _at, _instance, change in play.changes}


def history(play: Play) -> List[str]:
    """Return the members and the events of a schedule as lines of text."""
    lines = []
    for at, instance in enumerate(play.instances):
        router, trackers = (
            instance.router,
            ", ".join(_words(tracker.readings) for tracker in play.schedule.trackers[at]),
        )
        lines.append(
            f"{play.label(at):<12}{router.source:<14}v{router.version} priority {router.priority} every "
            f"{router.interval} us{'' if router.preempt else ', does not preempt'}"
            f"{f', preempts after {router.preempt_delay} us' if router.preempt_delay else ''}"
            f"{', unicast' if instance.peers else ''}; tracks {trackers or 'nothing'}"
        )
    if play.schedule.groups:
        lines.append("each member's Virtual Routers form a sync group")
    lines += [f"{name}'s clock gains {gained} us a second" for name, gained in play.schedule.drift.items()]
    events = [(at, f"{action.member or 'the link'}: {action.verb} {_words(action.what)}") for at, action in play.log]
    events += [
        (at, f"    {play.label(instance)}: {change.before} -> {change.after}: {change.reason}")
        for at, instance, change in play.changes
    ]
    return lines + [f"{at / 1000:>12.3f} ms  {text}".rstrip() for at, text in sorted(events, key=lambda item: item[0])]


def _words(what: Any) -> str:
    if isinstance(what, frozenset):
        return "from " + (", ".join(f"{one} to {two}" for one, two in sorted(what)) or "none")
    return "" if what is None else str(what).replace("None", "FAULT")
