# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plays the way from the settings that run to those that are planned, in every order that a run may take.

The routers are the agent's own state machine. Each member has several configurations on the way, of which it runs one
at a time. The run is a list of waves; the steps of one wave come in any order and at any distance, so all orders are
played, with a short and with a long time after each step. A long one is also what a run leaves that ends there.

The search is breadth-first, so the counterexample that it returns has the fewest steps and faults. Two moments are
alike if the routers are in the same states at the same distance from their timers; only the first of them is played on.
"""

from __future__ import annotations

import collections
from typing import (
    AbstractSet,
    Deque,
    Dict,
    FrozenSet,
    Hashable,
    Iterator,
    List,
    NamedTuple,
    Sequence,
    Set,
    Tuple,
    cast,
)

from ..._agent.vrrp.core import machine
from . import simulator
from .simulator import Instance, Simulation

STOP, RELOAD, START = "stop", "reload", "start"
MILLISECOND = 1000
# For how long two members may have a VIP in a handover: the agent that resigns serves until its successor is announced.
HANDOVER = machine.LINGER_AFTER_SUCCESSOR + MILLISECOND


class Step(NamedTuple):
    """What a run does with one member's router."""

    verb: str
    member: str
    configuration: int = 0  # which it has from now on; its number on this member

    def __str__(self) -> str:
        return f"the run {self.verb}s {self.member}'s router" + (" with new settings" if self.configuration else "")


class Way(NamedTuple):
    """The way of all members."""

    configurations: Dict[str, List[List[Instance]]]  # of each member, the one that runs first: none if it runs nothing
    waves: List[List[Step]]
    gone: Dict[str, int]  # by VIP: for how many microseconds nobody may hold it
    holder: str = ""  # the member that holds the VIPs, which is started first
    # By member, family and VRID: the routers that do not go on in their state at a reload, although they keep the VRID.
    starts_anew: FrozenSet[Tuple[str, int, int]] = frozenset()


class Numbered(NamedTuple):
    """The configurations as the simulator takes them, all at once: an instance that does not run is silent."""

    instances: List[Instance]
    numbers: Dict[Tuple[str, int], List[int]]  # by member and configuration
    vips: List[str]
    interval: int  # the longest
    settled: int  # after which nothing changes any more; in whole intervals, because then few moments differ

    @property
    def pauses(self) -> Tuple[int, int]:
        """A short time after a step, and a long one."""
        return self.interval // 2, self.settled


class Lossy(simulator.Network):
    """A link that loses the next Advertisement from one member to another."""

    def __init__(self) -> None:
        super().__init__()
        self.losing: FrozenSet[Tuple[str, str]] = frozenset()

    def delays(self, sender: str, receiver: str, now: int) -> Sequence[int]:
        if (sender, receiver) in self.losing:
            self.losing -= {(sender, receiver)}
            return ()
        return super().delays(sender, receiver, now)


class Moment(NamedTuple):
    """A moment on the way."""

    sim: Simulation
    waves: Tuple[FrozenSet[Step], ...]  # what is left to do
    running: Dict[str, int]  # the configuration of each member that runs one
    faults: int  # how many more there may be
    lost: FrozenSet[str] = frozenset()  # members
    messages_lost: int = 0
    is_disturbed: bool = False  # a member was lost, or the run has ended: a VIP may be gone for long
    said: Tuple[Tuple[int, str], ...] = ()  # what has been done, with its times


def counterexample(way: Way, faults: int = 0) -> List[str]:
    """Return the shortest play in which two members hold a VIP, or nobody for longer than said; [] if there is none.

    :param faults: how many there may be on the way: a member is lost, an Advertisement is lost, the run ends
    """
    numbered = _numbered(way)
    first = _first(way, numbered, faults)
    way, numbered = _judged(way, numbered, first)
    seen: Set[Hashable] = set()
    queue: Deque[Moment] = collections.deque([first])
    while queue:
        moment = queue.popleft()
        for after in _next(way, numbered, moment):
            wrong = _wrong(way, numbered, after)
            if wrong:
                return timeline(numbered, after, wrong)
            alike = _likeness(numbered, after)
            if alike not in seen:
                seen.add(alike)
                queue.append(after)
    return []


def _numbered(way: Way) -> Numbered:
    instances: List[Instance] = []
    numbers: Dict[Tuple[str, int], List[int]] = {}
    for member, configurations in way.configurations.items():
        for number, some in enumerate(configurations):
            numbers[member, number] = list(range(len(instances), len(instances) + len(some)))
            instances += some
    vips = sorted({vip for instance in instances for vip in instance.advertisement.addresses})
    interval = max(instance.router.interval for instance in instances)
    settled = -(-simulator.settling_time(instances) // interval) * interval
    return Numbered(instances, numbers, vips, interval, settled)


def _first(way: Way, numbered: Numbered, faults: int) -> Moment:
    """Return the members as they run before the run; the holder has begun."""
    sim = Simulation(numbered.instances, Lossy())
    running = {member: 0 for member, configurations in way.configurations.items() if configurations[0]}
    begun = sorted(running, key=lambda member: member != way.holder)
    for member in begun:
        _start(sim, numbered, member, 0)
        sim.run(sim.now + numbered.settled)
    waves = tuple(frozenset(wave) for wave in way.waves if wave)
    sim.changes.clear()
    held = simulator.Moment(sim.now, frozenset(sim.holding))
    sim.history[:] = [held]
    return Moment(sim, waves, running, faults)


def _judged(way: Way, numbered: Numbered, first: Moment) -> Tuple[Way, Numbered]:
    """Leave out what is wrong before the run: a VIP that two members hold, or that nobody holds."""
    holders = {vip: len(_holders(numbered, first.sim.holding, vip)) for vip in numbered.vips}
    gone = {vip: allowed for vip, allowed in way.gone.items() if holders.get(vip) == 1}
    return way._replace(gone=gone), numbered._replace(vips=[vip for vip in numbered.vips if holders[vip] < 2])


def _next(way: Way, numbered: Numbered, moment: Moment) -> Iterator[Moment]:
    """Yield what may come next: a step of the wave, or a fault, and then a short or a long time."""
    steps = sorted(moment.waves[0]) if moment.waves else []
    for step in steps:
        rest = moment.waves[0] - {step}
        waves = ((rest,) if rest else ()) + moment.waves[1:]
        for pause in numbered.pauses[0 if waves else 1 :]:
            yield _after(numbered, _step(way, numbered, moment._replace(waves=waves), step), pause)
    if moment.faults and steps:
        for fault in _faults(numbered, moment._replace(faults=moment.faults - 1)):
            yield _after(numbered, fault, numbered.pauses[0])


def _after(numbered: Numbered, moment: Moment, pause: int) -> Moment:
    """Let time pass: at the end of the run until all has settled."""
    moment.sim.run(moment.sim.now + (pause if moment.waves else numbered.settled + numbered.interval))
    return moment


def _forked(moment: Moment, what: str) -> Moment:
    sim = moment.sim.fork()
    return moment._replace(sim=sim, running=dict(moment.running), said=(*moment.said, (sim.now, what)))


def _step(way: Way, numbered: Numbered, moment: Moment, step: Step) -> Moment:
    """Do what a run does; it passes a member by that is lost."""
    if step.member in moment.lost:
        return _forked(moment, f"the run cannot reach {step.member}")
    after = _forked(moment, str(step))
    if step.verb == STOP:
        after.running.pop(step.member, None)
        after.sim.stop(step.member)
    elif step.verb == START or step.member not in after.running:
        _start(after.sim, numbered, step.member, step.configuration)
        after.running[step.member] = step.configuration
    else:
        _reload(way, numbered, after.sim, after.running[step.member], step)
        after.running[step.member] = step.configuration
    return after


def _start(sim: Simulation, numbered: Numbered, member: str, configuration: int) -> None:
    sim.running.add(member)
    for number in numbered.numbers[member, configuration]:
        sim.inject(number, machine.Start())


def _reload(way: Way, numbered: Numbered, sim: Simulation, before: int, step: Step) -> None:
    """Let each Virtual Router go on that both configurations have; stop and start the others."""
    old = {_router(numbered.instances[at]): at for at in numbered.numbers[step.member, before]}
    new = {_router(numbered.instances[at]): at for at in numbered.numbers[step.member, step.configuration]}
    goes_on = {name for name in old.keys() & new.keys() if (step.member, *name) not in way.starts_anew}
    for name, number in old.items():
        if name in goes_on:
            sim.reconfigure(number, new[name])
        else:  # silently, which is the slower way for the others
            sim.remove(number)
    for name, number in new.items():
        if name not in goes_on:
            sim.inject(number, machine.Start())


def _router(instance: Instance) -> Tuple[int, int]:
    return instance.family, instance.advertisement.vrid


def _faults(numbered: Numbered, moment: Moment) -> Iterator[Moment]:
    ended = _forked(moment, "the run ends")
    yield ended._replace(waves=(), is_disturbed=True)
    alive = sorted(moment.sim.running)
    for member in alive:
        lost = _forked(moment, f"{member} is lost")
        lost.sim.crash(member)
        lost.running.pop(member, None)
        yield lost._replace(lost=moment.lost | {member}, is_disturbed=True)
    for pair in ((sender, receiver) for sender in alive for receiver in alive if sender != receiver):
        missed = _forked(moment, f"the next Advertisement from {pair[0]} to {pair[1]} is lost")
        _link(missed).losing |= {pair}
        yield missed._replace(messages_lost=moment.messages_lost + 1)


def _link(moment: Moment) -> Lossy:
    return cast(Lossy, moment.sim.network)


def _wrong(way: Way, numbered: Numbered, moment: Moment) -> str:
    """Return what is wrong at this moment, or has been since the way began; '' if nothing is."""
    for vip in numbered.vips:
        holders = _split(numbered, moment, vip)
        if not holders and vip in way.gone:
            holders = _gone(numbered, moment, vip, way.gone[vip])
        if holders:
            return f"{vip} is held by {holders}"
    return ""


def _split(numbered: Numbered, moment: Moment, vip: str) -> str:
    """A lost Advertisement may be the one to which another member would have given way: then the next one counts."""
    if _longest(numbered, moment, vip, two=True) <= HANDOVER + moment.messages_lost * numbered.interval:
        return ""
    last = next(state for state in reversed(moment.sim.history) if len(_holders(numbered, state.holding, vip)) > 1)
    return " and ".join(_holders(numbered, last.holding, vip))


def _gone(numbered: Numbered, moment: Moment, vip: str, allowed: int) -> str:
    """After a fault the VIP may be gone for longer than said, but not at the end, unless no router runs."""
    able = _able(numbered, moment, vip)
    if able and not moment.waves and not _holders(numbered, moment.sim.holding, vip):
        return f"nobody, although {' and '.join(able)} could"
    allowed += moment.messages_lost * numbered.settled
    longest = _longest(numbered, moment, vip, two=False)
    if moment.is_disturbed or longest <= allowed + MILLISECOND:
        return ""
    return f"nobody for {longest / machine.SECOND:g} s, although at most {allowed / machine.SECOND:g} s are said"


def _able(numbered: Numbered, moment: Moment, vip: str) -> List[str]:
    """Return the members that run a router with the VIP."""
    return [
        member
        for member, configuration in moment.running.items()
        if any(vip in numbered.instances[at].advertisement.addresses for at in numbered.numbers[member, configuration])
    ]


def _holders(numbered: Numbered, holding: AbstractSet[int], vip: str) -> List[str]:
    held = (numbered.instances[at] for at in holding)
    return sorted({instance.member for instance in held if vip in instance.advertisement.addresses})


def _longest(numbered: Numbered, moment: Moment, vip: str, two: bool) -> int:
    """Return the longest time in which two members hold a VIP, or nobody does."""
    longest, since = 0, None
    for state in [*moment.sim.history, simulator.Moment(moment.sim.now, frozenset())]:
        if since is not None:
            longest = max(longest, state.at - since)
        holders = _holders(numbered, state.holding, vip)
        is_so = len(holders) > 1 if two else not holders
        since = (state.at if since is None else since) if is_so else None
    return longest


def _likeness(numbered: Numbered, moment: Moment) -> Hashable:
    """Return what moments have in common that go on in the same way."""
    now = moment.sim.now
    states = tuple(
        (state.name, None if state.deadline is None else state.deadline - now, state.active_interval)
        for state in moment.sim.states
    )
    unusual = tuple(now - _since(numbered, moment, vip) for vip in numbered.vips)
    known = (moment.waves, moment.faults, moment.messages_lost, moment.is_disturbed, _link(moment).losing)
    return states, frozenset(moment.running.items()), unusual, known, moment.lost


def _since(numbered: Numbered, moment: Moment, vip: str) -> int:
    """Return since when a VIP has had no holder, or several; now if it has one."""
    since = moment.sim.now
    for state in reversed(moment.sim.history):
        if len(_holders(numbered, state.holding, vip)) == 1:
            break
        since = state.at
    return since


def timeline(numbered: Numbered, moment: Moment, wrong: str) -> List[str]:
    """Return a play in lines: what is done, which router changes its state, and what is wrong at the end."""
    begin = moment.sim.history[0].at
    done = [(at, 0, f"{what}.") for at, what in moment.said]
    seen = [
        (at, 1, f"  {numbered.instances[number].member}: {change.before} -> {change.after} ({change.reason}).")
        for at, number, change in moment.sim.changes
    ]
    first = [
        (
            begin,
            -1,
            f"{vip} is held by {' and '.join(_holders(numbered, moment.sim.history[0].holding, vip)) or 'nobody'}.",
        )
        for vip in numbered.vips
    ]
    lines = [(at, text) for at, _order, text in sorted(first + done + seen)]
    lines.append((moment.sim.now, f"{wrong}."))
    return [f"{(at - begin) / machine.SECOND:7.3f} s  {text}" for at, text in lines]
