# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What may happen at each moment of a run that takes its members from the old settings to the new ones.

The routers are the agent's own state machine. Each member has several configurations on the way, of which it runs one
at a time. The run is a list of waves; the steps of one wave come in any order.

A move is a step of the run, or the loss of a member. After each move a short or a long time passes, in which
Advertisements may be lost: the first that one member sends to another. Any later one is the first after another move.
A long time is also what a run leaves that ends there.
"""

from __future__ import annotations

import functools
from typing import Callable, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple, cast

from ..._agent.vrrp.core import machine
from ..forecast import simulator
from ..forecast.simulator import Instance, Simulation
from ..model.links import VirtualRouter

STOP, RELOAD, START = "stop", "reload", "start"
Link = Tuple[str, str]  # the member that sends, and the one that receives
Links = FrozenSet[Link]


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
    holders: Mapping[str, str] = {}  # by VIP: the member that holds it before the run
    # By member: the routers that do not go on in their state at a reload, although they keep link and VRID.
    starts_anew: FrozenSet[Tuple[str, VirtualRouter]] = frozenset()


class Numbered(NamedTuple):
    """The configurations as the simulator takes them, all at once: an instance that does not run is silent."""

    instances: List[Instance]
    numbers: Dict[Tuple[str, int], List[int]]  # by member and configuration
    vips: List[str]
    interval: int  # the longest
    settled: int  # after which nothing changes any more; in whole intervals, because then few moments differ

    @property
    def short(self) -> int:
        return self.interval // 2

    @property
    def long(self) -> int:
        return self.settled + self.interval


class Lossy(simulator.Network):
    """A link that loses the first Advertisement from one member to another."""

    def __init__(self) -> None:
        super().__init__()
        self.losing: FrozenSet[Link] = frozenset()
        self.used: Tuple[Link, ...] = ()  # since the last move

    def delays(self, sender: str, receiver: str, now: int) -> Sequence[int]:
        link = sender, receiver
        if link not in self.used:
            self.used += (link,)
            if link in self.losing:
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
    said: Tuple[Tuple[int, str], ...] = ()  # what has been done, with its times

    @property
    def link(self) -> Lossy:
        return cast(Lossy, self.sim.network)

    def begin(self, what: str, losing: Links) -> Moment:
        """Return a copy in which a move begins, with what is lost from here on."""
        sim, count = self.sim.fork(), len(losing)
        links = " and ".join(f"from {sender} to {receiver}" for sender, receiver in sorted(losing))
        said = [what] if what else []
        said += [f"the next Advertisement {links} is lost"] if losing else []
        after = self._replace(
            sim=sim,
            running=dict(self.running),
            faults=self.faults - count,
            messages_lost=self.messages_lost + count,
            said=(*self.said, *((sim.now, line) for line in said)),
        )
        after.link.losing, after.link.used = losing, ()
        return after


Move = Callable[[Links], Moment]  # does it, and loses the first Advertisement on each of these links


def numbered(way: Way) -> Numbered:
    instances: List[Instance] = []
    numbers: Dict[Tuple[str, int], List[int]] = {}
    for member, configurations in way.configurations.items():
        known: Dict[Instance, int] = {}  # what is the same in two configurations has one number
        for number, some in enumerate(configurations):
            for instance in (each for each in some if each not in known):
                known[instance] = len(instances)
                instances.append(instance)
            numbers[member, number] = [known[instance] for instance in some]
    vips = sorted({vip for instance in instances for vip in instance.advertisement.addresses})
    interval = max(instance.router.interval for instance in instances)
    settled = -(-simulator.settling_time(instances) // interval) * interval
    return Numbered(instances, numbers, vips, interval, settled)


def first(way: Way, every: Numbered, faults: int) -> Moment:
    """Return the members as they run before the run: of each Virtual Router the holder has begun."""
    sim = Simulation(every.instances, Lossy())
    running = {member: 0 for member, configurations in way.configurations.items() if configurations[0]}
    sim.running.update(running)
    routers = [(member, number) for member in running for number in every.numbers[member, 0]]
    for _member, number in sorted(routers, key=lambda router: not _holds(way, every, *router)):
        sim.inject(number, machine.Start())
        sim.run(sim.now + every.settled)
    waves = tuple(frozenset(wave) for wave in way.waves if wave)
    sim.changes.clear()
    sim.history[:] = [simulator.Moment(sim.now, frozenset(sim.holding))]
    return Moment(sim, waves, running, faults)


def _holds(way: Way, every: Numbered, member: str, number: int) -> bool:
    return any(way.holders.get(vip) == member for vip in every.instances[number].advertisement.addresses)


def moves(way: Way, every: Numbered, moment: Moment) -> Iterator[Move]:
    """Yield each move that is possible now: a step of the first wave, or the loss of a member."""
    for step in sorted(moment.waves[0]) if moment.waves else []:
        yield functools.partial(_step, way, every, moment, step)
    if moment.faults and moment.waves:
        for member in sorted(way.configurations.keys() - moment.lost):
            yield functools.partial(_lose, moment, member)


def passing(move: Move, pause: int) -> Iterator[Moment]:
    """Yield what a move and a pause lead to: all Advertisements arrive, or some are lost."""
    tried: Set[Links] = {frozenset()}
    todo = [*tried]
    while todo:
        losing = todo.pop(0)
        after = move(losing)
        after.sim.run(after.sim.now + pause)
        yield after
        if after.faults:
            more = [losing | {used} for used in _heard(after) if losing | {used} not in tried]
            tried.update(more)
            todo += more


def _heard(moment: Moment) -> List[Link]:
    """Return the links by which an Advertisement has come since the move, or would have."""
    return [used for used in moment.link.used if used[1] in moment.sim.running]


def _step(way: Way, every: Numbered, moment: Moment, step: Step, losing: Links) -> Moment:
    """Do what a run does."""
    after = moment.begin(str(step), losing)._replace(waves=_without(moment.waves, lambda each: each == step))
    if step.verb == STOP:
        after.running.pop(step.member, None)
        after.sim.stop(step.member)
        return after
    if step.verb == START or step.member not in after.running:
        _start(after.sim, every, step.member, step.configuration)
    else:
        _reload(way, every, after.sim, after.running[step.member], step)
    after.running[step.member] = step.configuration
    return after


def _without(waves: Tuple[FrozenSet[Step], ...], is_over: Callable[[Step], bool]) -> Tuple[FrozenSet[Step], ...]:
    left = (frozenset(step for step in wave if not is_over(step)) for wave in waves)
    return tuple(wave for wave in left if wave)


def _lose(moment: Moment, member: str, losing: Links) -> Moment:
    """Crash a member; the run passes it by from now on."""
    after = moment.begin(f"{member} is lost", losing)
    after.sim.crash(member)
    after.running.pop(member, None)
    waves = _without(moment.waves, lambda step: step.member == member)
    return after._replace(waves=waves, lost=moment.lost | {member}, faults=after.faults - 1)


def _start(sim: Simulation, every: Numbered, member: str, configuration: int) -> None:
    sim.running.add(member)
    for number in every.numbers[member, configuration]:
        sim.inject(number, machine.Start())


def _reload(way: Way, every: Numbered, sim: Simulation, before: int, step: Step) -> None:
    """Let each Virtual Router go on that both configurations have; stop and start the others."""
    old = {every.instances[at].virtual_router: at for at in every.numbers[step.member, before]}
    new = {every.instances[at].virtual_router: at for at in every.numbers[step.member, step.configuration]}
    goes_on = {router for router in old.keys() & new.keys() if (step.member, router) not in way.starts_anew}
    for router, number in old.items():
        if router in goes_on:
            sim.reconfigure(number, new[router])
        else:  # silently, which is the slower way for the others
            sim.remove(number)
    for router, number in new.items():
        if router not in goes_on:
            sim.inject(number, machine.Start())
