# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A plan's members in the simulator, and one failure of one member played there: who serves, and for how long nobody.

Times are integers in microseconds. What the protocol does not decide (systemd's reaction, the kernel adding an
address) takes no time here.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, packet, tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import simulator
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

SECOND = machine.SECOND
JUST = 10  # microseconds: just after something, when its effect has arrived everywhere
SERVICE, STOP, CRASH, CUT = "service", "stop", "crash", "cut"  # how a member fails
# For so long at most a killed router's addresses stay on its interface: systemd starts it again after 250 ms, and it
# comes up.
RESTART = SECOND // 2

Watched = Dict[str, Dict[str, Any]]


class Failure(NamedTuple):
    """One way to fail: the service of some VIPs, or the whole member."""

    kind: str
    vips: FrozenSet[str] = frozenset()  # of which the service fails
    blind_trackers: FrozenSet[str] = frozenset()  # trackers that do not notice


class Tracker(NamedTuple):
    """A tracked thing of one seat that follows the service's life."""

    name: str
    alive: tracking.PriorityDelta
    dead: tracking.PriorityDelta
    notices_death: int  # after how long at worst
    notices_life: int


class Cast(NamedTuple):
    """Everybody who takes part."""

    seats: List[simulator.Seat]
    trackers: List[List[Tracker]]  # of each seat
    vips: Dict[str, List[int]]  # name: the seats that may hold it
    addresses: Dict[str, str]  # name: what to call it

    @property
    def members(self) -> List[str]:
        return list(dict.fromkeys(seat.member for seat in self.seats))

    @property
    def patience(self) -> int:
        """After this long whatever a failure, or its end, sets off is over."""
        slowest = max((max(t.notices_death, t.notices_life) for some in self.trackers for t in some), default=0)
        return slowest + simulator.settling_time(self.seats)


class Outcome(NamedTuple):
    """What became of one VIP: while the failure lasts, and after it."""

    before: Tuple[str, ...]
    after: Tuple[str, ...]  # who holds it, as the clients see it
    outage: int
    back: Tuple[str, ...]
    back_outage: int
    shared: int  # for how long a client could meet two holders
    served: bool  # somebody alive holds it during the failure, and after it
    priorities: Dict[str, int]  # effective, at the end of the failure


def cast(plan: Dict[str, Any]) -> Cast:
    """Return the seats of a plan.

    :param plan: ``{members: {NAME: {instances, engine}}, track: {scripts}}``, the instances as `read_instances` returns
        them; who has no engine runs keepalived
    """
    scripts = {script["name"]: script for script in plan.get("track", {}).get("scripts", [])}
    found = Cast([], [], {}, {})
    labels = {vip["name"]: vip["address"] for vip in plan.get("vips", [])}
    for member, planned in plan["members"].items():
        for instance in planned["instances"]:
            trackers = _trackers(instance, scripts)
            found.vips.setdefault(instance["name"], []).append(len(found.seats))
            first = instance["addresses"][0].partition("/")[0]
            found.addresses.setdefault(instance["name"], labels.get(instance["name"], first))
            lingers = planned.get("engine") == engines.AGENT
            found.seats.append(_seat(member, instance, trackers)._replace(lingers=lingers))
            found.trackers.append(trackers)
    return found


def _trackers(instance: Dict[str, Any], scripts: Dict[str, Dict[str, Any]]) -> List[Tracker]:
    found = []
    for item in instance["track_scripts"]:
        script, weight = scripts.get(item["name"], {}), item["weight"]
        period = script.get("interval", 0)
        death, life = (_micro(period * script.get(count, 1)) for count in ("fall", "rise"))
        found.append(Tracker(item["name"], tracking.check(weight, True), tracking.check(weight, False), death, life))
    for item in instance["track_files"]:  # the kernel tells at once
        weight = item["weight"]
        found.append(Tracker(item["name"], tracking.file(weight, 0), tracking.file(weight, 1), 0, 0))
    return found


def _seat(member: str, instance: Dict[str, Any], trackers: List[Tracker]) -> simulator.Seat:
    interval = _micro(instance["advert_interval"])
    router = machine.VirtualRouter(
        version=instance["version"],
        priority=instance["priority"],
        interval=interval,
        source=instance["source"],
        preempt=instance["preempt"],
        # Longer than what else is waited for, it changes nothing but how long this takes.
        preempt_delay=min(_micro(instance["preempt_delay"]), machine.MISSED * interval),
        tracked=frozenset(tracker.name for tracker in trackers),
    )
    addresses = tuple(address.partition("/")[0] for address in instance["addresses"])
    return simulator.Seat(
        member=member,
        name=instance["name"],
        router=router,
        advertisement=packet.Advertisement(
            instance["version"],
            instance["vrid"],
            instance["priority"],
            interval,
            addresses,
            auth_pass=(instance.get("auth_pass") or "").encode(),
        ),
        family=ipaddress.ip_address(addresses[0]).version,
        peers=None if instance["multicast"] else frozenset(instance["peers"]),
    )


def _micro(seconds: float) -> int:
    return round(seconds * SECOND)


def openings(who: Cast) -> List[simulator.Simulation]:
    """Return the clusters at rest from which a failure may start, each with other holders.

    The first has all members started together. In the others one member was there before everybody else, which
    matters where nobody preempts.
    """
    found: Dict[FrozenSet[int], simulator.Simulation] = {}
    for first in [None, *who.members]:
        world = simulator.Simulation(who.seats)
        for member in [first] if first else who.members:
            _wake(who, world, member)
        world.run(who.patience)
        if first:
            for member in who.members:
                if member != first:
                    _wake(who, world, member)
            world.run(2 * who.patience)
        found.setdefault(frozenset(world.holding), world)
    return list(found.values())


def _wake(who: Cast, world: simulator.Simulation, member: str) -> None:
    world.start(member)
    for seat in world.of(member):
        for tracker in who.trackers[seat]:
            world.inject(seat, machine.TrackerUpdate(tracker.name, tracker.alive))


def moments(who: Cast, opening: simulator.Simulation, member: str, failure: Failure) -> List[int]:
    """Return when a failure hurts most or least: just after and just before an Advertisement of the member.

    What a poll notices is noticed at its own time, so that this time is put there as well.
    """
    held = [seat for seat in opening.of(member) if seat in opening.holding]
    noticed = {0}
    if failure.kind == SERVICE:
        noticed |= {
            t.notices_death for seat in held if who.seats[seat].name in failure.vips for t in who.trackers[seat]
        }
    found: Set[int] = set()
    for seat in held:
        deadline, interval = opening.states[seat].deadline or 0, who.seats[seat].router.interval
        found |= {deadline + JUST, deadline + interval // 2, deadline + interval - JUST}
        found |= {deadline + interval + JUST - late % interval for late in noticed}
    return sorted(found) or [opening.now + JUST]


def play(who: Cast, opening: simulator.Simulation, member: str, failure: Failure, at: int) -> Dict[str, Outcome]:
    """Return what becomes of each VIP when a member fails at a time, and comes back long after."""
    begin = opening.fork()
    begin.run(at)
    middle = begin.fork()
    _fail(who, middle, member, failure)
    middle.run(at + who.patience)
    if failure.kind == CUT:
        _fall_into_step(middle)
    end = middle.fork()
    _recover(who, end, member, failure)
    end.run(middle.now + who.patience)
    return {vip: _outcome(who, vip, member, failure, (begin, middle, end)) for vip in who.vips}


def _outcome(
    who: Cast,
    vip: str,
    member: str,
    failure: Failure,
    worlds: Tuple[simulator.Simulation, simulator.Simulation, simulator.Simulation],
) -> Outcome:
    """Compare the worlds at the failure's beginning, at its end, and after the return."""
    begin, middle, end = worlds
    alone = frozenset([member])
    nobody: FrozenSet[str] = frozenset()
    cut_off = alone if failure.kind == CUT else nobody
    dead = alone if failure.kind == SERVICE and vip in failure.vips else cut_off
    back = _holders(who, end, vip, nobody)
    return Outcome(
        before=_holders(who, begin, vip, nobody),
        after=_holders(who, middle, vip, cut_off),
        outage=_longest_gap(who, middle, vip, dead, begin.now),
        back=back,
        back_outage=_longest_gap(who, end, vip, nobody, middle.now),
        shared=_shared(who, vip, member, failure, worlds),
        served=bool(_holders(who, middle, vip, dead)) and bool(back),
        priorities={
            who.seats[seat].member: machine.priority_of(who.seats[seat].router, middle.states[seat])
            for seat in who.vips[vip]
        },
    )


def _fall_into_step(world: simulator.Simulation) -> None:
    """Let all holders advertise now: their clocks drift, so that they may have done so just before a cut ends.

    The next Advertisement is then as far away as it can be. Who hears a farewell advertises at once (RFC 9568 6.4.3).
    """
    for seat in world.holding:
        farewell = world.seats[seat].advertisement._replace(priority=0)
        world.inject(seat, machine.Received(farewell, world.seats[seat].router.source))
    world.run(world.now + JUST)


def _shared(
    who: Cast,
    vip: str,
    member: str,
    failure: Failure,
    worlds: Tuple[simulator.Simulation, simulator.Simulation, simulator.Simulation],
) -> int:
    """Return for how long a client could meet two holders.

    Whoever is cut off holds its addresses too, but no client meets it before it is back.
    """
    begin, middle, end = worlds
    seats = frozenset(who.vips[vip])
    since = middle.now if failure.kind == CUT else begin.now
    shared = _time(end, lambda holding: len(holding & seats) > 1, since, end.now)
    left = [_left_for(who.seats[seat]) for seat in begin.of(member) if seat in begin.holding & seats]
    if failure.kind == CRASH and left:
        shared += _time(end, lambda holding: bool(holding & seats), since, since + max(left))
    return shared


def _left_for(seat: simulator.Seat) -> int:
    """Return for how long the addresses of a killed router stay where they are.

    keepalived removes them when it is back, the agent as soon as it has heard then that somebody else has them.
    """
    return RESTART + seat.router.interval if seat.lingers else RESTART


def _time(world: simulator.Simulation, when: Callable[[FrozenSet[int]], bool], begin: int, until: int) -> int:
    """Return for how long between two moments those who held were such."""
    ends = [moment.at for moment in world.history[1:]] + [world.now]
    return sum(
        max(0, min(end, until) - max(moment.at, begin))
        for moment, end in zip(world.history, ends)
        if when(moment.holding)
    )


def _fail(who: Cast, world: simulator.Simulation, member: str, failure: Failure) -> None:
    if failure.kind == STOP:
        world.stop(member)
    elif failure.kind == CRASH:
        world.crash(member)
    elif failure.kind == CUT:
        world.cut(member)
    else:
        _tell_later(who, world, member, failure, alive=False)


def _recover(who: Cast, world: simulator.Simulation, member: str, failure: Failure) -> None:
    if failure.kind == CUT:
        world.heal()
    elif failure.kind == SERVICE:
        _tell_later(who, world, member, failure, alive=True)
    else:
        _wake(who, world, member)


def _noticing(who: Cast, seat: int, failure: Failure) -> List[Tracker]:
    if who.seats[seat].name not in failure.vips:
        return []
    return [tracker for tracker in who.trackers[seat] if tracker.name not in failure.blind_trackers]


def _tell_later(who: Cast, world: simulator.Simulation, member: str, failure: Failure, alive: bool) -> None:
    for seat in world.of(member):
        for tracker in _noticing(who, seat, failure):
            reading = tracker.alive if alive else tracker.dead
            late = tracker.notices_life if alive else tracker.notices_death
            event = machine.TrackerUpdate(tracker.name, reading)
            world.post(world.now + late, lambda later, seat=seat, event=event: later.inject(seat, event))


def _holders(who: Cast, world: simulator.Simulation, vip: str, out: FrozenSet[str]) -> Tuple[str, ...]:
    members = [who.seats[seat].member for seat in who.vips[vip] if seat in world.holding]
    return tuple(member for member in members if member not in out)


def _longest_gap(who: Cast, world: simulator.Simulation, vip: str, out: FrozenSet[str], begin: int) -> int:
    """Return the longest time since the beginning in which nobody served the VIP."""
    seats = {seat for seat in who.vips[vip] if who.seats[seat].member not in out}
    longest = 0
    gone_since: Optional[int] = None
    for moment in [*world.history, simulator.Moment(world.now, frozenset(seats))]:
        if gone_since is not None:
            longest = max(longest, moment.at - max(gone_since, begin))
        if seats & moment.holding:
            gone_since = None
        elif gone_since is None:
            gone_since = moment.at
    return longest
