# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays a random schedule, and says what must hold in it.

Once the link is whole and `settling_time` is over:

(a) exactly one Active for each Virtual Router among those that run and are not in FAULT, none if there are none;
(b) none of the others is better and preempts, or was Active when the chaos was over and has lost to a worse one,
    where the address decides between equals;
(c) nothing changes any more;
(d) when the Active one then gives up, another one is Active after Skew_Time.

Already as soon as an Active one has advertised on the whole link:

(e) no member takes over that has to accept its Advertisements.

At every moment of the schedule:

(f) no member is Active while one of its readings is FAULT or missing;
(g) only Active members hold addresses;
(h) Advertisements do not answer each other without end;
(i) the seats of a sync group are Active together, but while they start or stop one after the other.
"""

from __future__ import annotations

import collections
import ipaddress
import random
from typing import Any, Counter, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import simulator

from support.vrrp import schedules
from support.vrrp.schedules import Action, Schedule, Weather

STORM = 50_000  # events; a schedule has some hundreds


class Violation(AssertionError):
    """A property does not hold."""


class Link(simulator.Network):
    """A link that loses, delays, doubles and reorders, until it is healed."""

    def __init__(self, rng: random.Random, transit: Tuple[int, int]) -> None:
        super().__init__()
        self.rng, self.transit = rng, transit
        self.weather = Weather(0, 0, 1)
        self.whole = False
        self.arrivals: Dict[Tuple[str, str], int] = {}
        self.latest = 0  # when the last Advertisement of the chaos arrives

    def delays(self, sender: str, receiver: str, now: int) -> Sequence[int]:
        rng, weather = self.rng, self.weather
        if self.whole:  # nothing overtakes what the same sender has sent before
            pair = sender, receiver
            self.arrivals[pair] = max(self.arrivals.get(pair, 0), now + rng.randint(*self.transit))
            return (self.arrivals[pair] - now,)
        if (sender, receiver) in self.blocked or rng.random() < weather.lost:
            return ()
        delays = [1 + rng.randrange(weather.delay) for _copy in range(1 + (rng.random() < weather.doubled))]
        self.latest = max(self.latest, now + max(delays))
        return delays


class Play(simulator.Simulation):
    """A schedule, played and watched."""

    network: Link

    def __init__(self, schedule: Schedule, rng: random.Random) -> None:
        super().__init__(schedule.seats, Link(rng, schedule.transit), schedule.groups, schedule.drift)
        self.schedule, self.rng = schedule, rng
        self.truth = [{thing.name: thing.readings[0] for thing in some} for some in schedule.things]
        self.readings: List[Dict[str, tracking.PriorityDelta]] = [{} for _seat in schedule.seats]
        self.absent: Set[str] = {seat.member for seat in schedule.seats}  # those without a process
        self.hangs: Dict[str, int] = {}
        self.stable = schedule.end  # since when nothing has happened
        self.events = 0
        self.log: List[Tuple[int, Action]] = []
        for action in schedule.actions:
            self._later(action)

    def _later(self, action: Action) -> None:
        self.call_at(action.at, lambda play: play.apply(action))

    def apply(self, action: Action) -> None:
        """Let an action happen; to a member that hangs once it goes on."""
        resumes = self.hangs.get(action.member, 0)
        if resumes > self.now:
            self._later(action._replace(at=resumes))
            return
        self.log.append((self.now, action))
        getattr(self, f"_{action.verb}")(action.member, action.what)

    def _weather(self, member: str, weather: Weather) -> None:
        self.network.weather = weather

    def _split(self, member: str, pairs: Any) -> None:
        self.network.blocked = pairs

    _deafen = _split

    def _heal(self, member: str, what: None) -> None:
        self.heal()
        self.network.whole = True

    def _crash(self, member: str, what: None) -> None:
        self.crash(member)
        self.absent.add(member)
        for seat in self.seats_of(member):
            self.readings[seat] = {}

    def _stop(self, member: str, ends: bool) -> None:
        if member in self.running:
            self.stop(member)
            if ends:
                self._crash(member, None)

    def _start(self, member: str, what: None) -> None:
        if member in self.absent:  # a new process knows nothing yet
            self.absent.remove(member)
            for seat in self.seats_of(member):
                for name in self.truth[seat]:
                    at = self.now + self.rng.randrange(20 * schedules.MILLISECOND)
                    self.stable = max(self.stable, at)
                    self._later(Action(at, "look", member, (seat, name)))
        if member not in self.running:
            self.start(member)

    def _pause(self, member: str, until: int) -> None:
        self.hangs[member] = until
        self.pause(member, until)

    def _read(self, member: str, what: Any) -> None:
        if what:
            seat, name, reading = what
            self.truth[seat][name] = reading
            self._look(member, (seat, name))

    def _look(self, member: str, what: Tuple[int, str]) -> None:
        seat, name = what
        if member not in self.absent:
            self.readings[seat][name] = self.truth[seat][name]
            self.inject(seat, machine.TrackerUpdate(name, self.truth[seat][name]))

    def inject(self, seat: int, event: machine.Event) -> None:
        super().inject(seat, event)
        self.events += 1
        if self.events > STORM:
            raise Violation("(h) Advertisements answer each other without end")
        for at in self.together(seat):
            active = self.states[at].name == machine.ACTIVE
            if active != (at in self.holding):
                has = "has" if at in self.holding else "lacks"
                raise Violation(f"(g) {self.call(at)} is {self.states[at].name} and {has} the addresses")
            if active and (self.in_fault(at) or len(self.readings[at]) < len(self.truth[at])):
                raise Violation(f"(f) {self.call(at)} is Active with the readings {self.readings[at]}")
            if active != (seat in self.holding) and not self._alone(seat, event):
                raise Violation(f"(i) {self.call(seat)} and {self.call(at)} are not Active together")

    def _alone(self, seat: int, event: machine.Event) -> bool:
        """Whether a seat of a sync group may be Active without the others, or the others without it.

        The address owner is Active as soon as its own readings are there (RFC 9568 section 6.4.1).
        """
        return isinstance(event, machine.Stop) or self.seats[seat].router.priority == tracking.OWNER

    def together(self, seat: int) -> Tuple[int, ...]:
        """Return the seats that a seat's change changes."""
        return self._grouped.get(seat, (seat,))

    def in_fault(self, seat: int) -> bool:
        """Whether a seat, or one of its sync group, has a reading that is FAULT."""
        return any(tracking.FAULT in self.readings[at].values() for at in self.together(seat))

    def priority(self, seat: int) -> int:
        """The effective priority, reckoned apart from the machine."""
        base = self.seats[seat].router.priority
        return base if base == 255 else sorted((1, base + sum(x or 0 for x in self.readings[seat].values()), 254))[1]

    def call(self, seat: int) -> str:
        return f"{self.seats[seat].name} on {self.seats[seat].member}"


class Figures(NamedTuple):
    """What many schedules had in them."""

    schedules: int
    changes: int
    latest: Tuple[float, int]  # the last change after the chaos, as a part of settling_time, and its seed
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
    """Let a schedule happen, and return when the last change came, as a part of settling_time; or raise Violation."""
    play.run(play.schedule.end)
    stable = max(play.stable, play.network.latest)
    names = list(dict.fromkeys(seat.name for seat in play.seats))
    routers = {name: [at for at, seat in enumerate(play.seats) if seat.name == name] for name in names}
    bounds = {name: _bound(play, seats) for name, seats in routers.items()}
    slowest = max(seat.router.interval for seat in play.seats)
    # What was under way has arrived.
    play.run(stable + play.schedule.transit[1])
    active = play.active()
    # A timer that was set wrongly is noticed after one Active_Down_Interval.
    play.run(stable + max(bounds.values()) + (machine.MISSED + 2) * slowest)
    latest = 0.0
    for name, seats in routers.items():
        _judge_holder(play, name, seats, [at for at in seats if at in active])
        _judge_loyalty(play, seats, [at for at in seats if at in active], stable + play.schedule.transit[1])
        last = max((at for at, seat, _change in play.changes if seat in seats), default=0) - stable
        if last > bounds[name]:
            raise Violation(f"(c) {name} still changes {last} us after the chaos, {bounds[name]} us are enough")
        latest = max(latest, last / bounds[name])
    if play.holding:
        _judge_handover(play, play.rng.choice(play.active()))
    return latest


def _bound(play: Play, seats: List[int]) -> int:
    together = play.seats if play.schedule.groups else [play.seats[at] for at in seats]
    return _slowest(simulator.settling_time(together, play.schedule.transit[1]))


def _able(play: Play, seats: List[int]) -> List[int]:
    return [at for at in seats if play.seats[at].member in play.running and not play.in_fault(at)]


def _judge_holder(play: Play, name: str, seats: List[int], before: List[int]) -> None:
    """:param before: who was Active when the chaos was over"""
    able = _able(play, seats)
    active = [at for at in seats if play.states[at].name == machine.ACTIVE]
    if len(active) != min(1, len(able)) or not set(active) <= set(able):
        raise Violation(f"(a) {name}: {_list(play, able)} could be Active, {_list(play, active)} is")
    for at in able:
        if _preempts(play, at, active[0]):
            raise Violation(f"(b) {play.call(at)} is better than {play.call(active[0])} and does not preempt it")
    for at in before:
        if _rank(play, at) > _rank(play, active[0]):
            raise Violation(f"(b) {play.call(at)} was Active, and has lost to {play.call(active[0])}")


def _preempts(play: Play, seat: int, holder: int) -> bool:
    router = play.seats[seat].router
    return (router.preempt or router.priority == tracking.OWNER) and play.priority(seat) > play.priority(holder)


def _judge_loyalty(play: Play, seats: List[int], before: List[int], whole: int) -> None:
    """:param whole: when all that is under way was sent on the whole link"""
    moved = [(at, seat, change.after) for at, seat, change in play.changes if seat in seats and at > whole]
    for holder in before:
        heard = whole + _slowest(play.seats[holder].router.interval) + play.schedule.transit[1]
        left = min((at for at, seat, _after in moved if seat == holder), default=play.now)
        for at, seat, after in moved:
            if after == machine.ACTIVE and heard < at < left and not _preempts(play, seat, holder):
                raise Violation(f"(e) {play.call(seat)} took over from {play.call(holder)}, which it had to accept")


def _judge_handover(play: Play, holder: int) -> None:
    """Let an Active one stop, or fail, and see who comes."""
    seats, member, begin = play.seats, play.seats[holder].member, play.now
    failing = [thing.name for thing in play.schedule.things[holder] if tracking.FAULT in thing.readings]
    if failing and play.rng.random() < 0.5:
        play.apply(Action(begin, "read", member, (holder, failing[0], tracking.FAULT)))
    else:
        play.apply(Action(begin, "stop", member, False))
    wait, successors = 0, []
    for given_up in play.together(holder):  # a sync group waits for its slowest
        router = seats[given_up].router
        unit = router.interval if router.version == 3 else machine.SECOND
        successors = _able(play, [at for at, seat in enumerate(seats) if seat.name == seats[given_up].name])
        wait = max([wait, *((256 - play.priority(at)) * unit // 256 for at in successors)])
    play.run(begin + _slowest(wait) + play.schedule.transit[1])
    if successors and not {seats[at].name for at in play.together(holder)} <= {seats[at].name for at in play.active()}:
        raise Violation(f"(d) {play.call(holder)} gave up, and {wait} us later none of the others is Active")


def _slowest(ideal: int) -> int:
    """How long something takes on the slowest clock, which may round up."""
    return -(-ideal * machine.SECOND // (machine.SECOND - schedules.DRIFT)) + 1


def _rank(play: Play, seat: int) -> Tuple[int, bytes]:
    return play.priority(seat), ipaddress.ip_address(play.seats[seat].router.source).packed


def _list(play: Play, seats: List[int]) -> str:
    return " and ".join(f"{play.call(at)} ({play.priority(at)})" for at in seats) or "nobody"


def _situations(play: Play) -> Iterator[str]:
    """Name what is worth counting."""
    seats, routers = play.seats, [seat.router for seat in play.seats]
    yield from {f"version {router.version}" for router in routers}
    yield from {f"IPv{seat.family}" for seat in seats}
    yield from {"multicast" if seat.peers is None else "unicast" for seat in seats}
    yield from {action.verb for _at, action in play.log}
    if play.schedule.groups:
        yield "sync group"
    if any(router.priority == tracking.OWNER for router in routers):
        yield "address owner"
    if any(router.preempt_delay for router in routers):
        yield "preempt_delay"
    if len({(seat.name, seat.router.interval) for seat in seats}) > len({seat.name for seat in seats}):
        yield "unequal intervals"
    if not play.holding:
        yield "nobody left"
    yield from {change.after for _at, _seat, change in play.changes}


def story(play: Play) -> List[str]:
    """Tell who took part, and what happened, line by line."""
    lines = []
    for at, seat in enumerate(play.seats):
        router, things = seat.router, ", ".join(_words(thing.readings) for thing in play.schedule.things[at])
        lines.append(
            f"{play.call(at):<12}{router.source:<14}v{router.version} priority {router.priority} every "
            f"{router.interval} us{'' if router.preempt else ', does not preempt'}"
            f"{f', preempts after {router.preempt_delay} us' if router.preempt_delay else ''}"
            f"{', unicast' if seat.peers else ''}; tracks {things or 'nothing'}"
        )
    if play.schedule.groups:
        lines.append("each member's Virtual Routers form a sync group")
    lines += [f"{name}'s clock gains {gained} us a second" for name, gained in play.schedule.drift.items()]
    events = [(at, f"{action.member or 'the link'}: {action.verb} {_words(action.what)}") for at, action in play.log]
    events += [
        (at, f"    {play.call(seat)}: {change.before} -> {change.after}: {change.reason}")
        for at, seat, change in play.changes
    ]
    return lines + [f"{at / 1000:>12.3f} ms  {text}".rstrip() for at, text in sorted(events, key=lambda item: item[0])]


def _words(what: Any) -> str:
    if isinstance(what, frozenset):
        return "from " + (", ".join(f"{one} to {two}" for one, two in sorted(what)) or "nobody")
    return "" if what is None else str(what).replace("None", "FAULT")
