# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Simulates one failure of one member of a plan: which member serves each VIP, and for how long none does.

Times are integers in microseconds. What the protocol does not decide (systemd's reaction, the kernel adding an
address) takes no time here.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from ..._agent.vrrp.core import machine, offers, tracking
from ..._shared import events
from . import simulator
from .cluster import SECOND, Cluster, Tracker

PROPAGATION = 10  # until the effect of an event has arrived everywhere
# How a member fails. A mute one hears the others, and its own Advertisements are lost. One whose port is down, or whose
# link flaps, notices it; one that is cut off does not.
SERVICE, STOP, CRASH, CUT, MUTE, PORT, FLAP = "service", "stop", "crash", "cut", "mute", "port", "flap"
UNREACHABLE = (CUT, PORT, FLAP)
FLAPS = 5  # down, up and so on, and down at the end
LINK = "link"  # the tracker of an instance's own interface
# How long the addresses of a killed router stay on its interface at most: systemd starts it again after 250 ms, and it
# has to come up.
RESTART = SECOND // 2
NEIGHBOUR_LOOKUP = 3 * SECOND  # for so long Linux looks for the MAC of a neighbour that does not answer

HOOK = 3 * SECOND // 10  # until keepalived's hook has told the winner: keepalived starts it, Python starts, two answers

Watched = Dict[str, Dict[str, Any]]


class Failure(NamedTuple):
    """How a member fails: the service of some VIPs, or all of it."""

    kind: str
    vips: FrozenSet[str] = frozenset()  # of which the service fails
    blind_trackers: FrozenSet[str] = frozenset()  # trackers that do not notice it
    hangs: bool = False  # whether the service lets a script wait until its timeout
    serves: bool = False  # whether something else on the member serves meanwhile


class Settled(NamedTuple):
    """Members that have settled who holds each VIP."""

    cluster: Cluster
    sim: simulator.Simulation

    @property
    def holders(self) -> FrozenSet[Tuple[str, str]]:
        """The VIPs, each with a member that holds it."""
        found = (self.cluster.instances[at] for at in self.sim.holding)
        return frozenset((instance.name, instance.member) for instance in found)

    def held_by(self, member: str) -> List[int]:
        """Return the numbers of the instances with which a member holds VIPs."""
        return [instance for instance in self.sim.instances_of(member) if instance in self.sim.holding]


class Run(NamedTuple):
    """One simulated failure of one member: all members before it, at its end, and after the return."""

    member: str
    failure: Failure
    before: simulator.Simulation
    during: simulator.Simulation
    after: simulator.Simulation


class Outcome(NamedTuple):
    """What happens to one VIP during a failure and after it. The holders are those that clients can reach."""

    before: Tuple[str, ...]
    after: Tuple[str, ...]  # while the failure lasts
    outage: int
    back: Tuple[str, ...]  # after the member's return
    back_outage: int
    shared: int  # for how long a client could reach two holders
    served: bool  # a member that works holds it during the failure, and one holds it afterwards
    priorities: Dict[str, int]  # effective, at the end of the failure


def settle(cluster: Cluster, first: Optional[str]) -> Settled:
    """Start one member before the rest, which matters without preemption; or all of them together, if it is None."""
    sim = simulator.Simulation(cluster.instances, groups=cluster.groups)
    for member in [first] if first else cluster.members:
        _start(cluster, sim, member)
    sim.run(cluster.settling_time)
    if first:
        for member in cluster.members:
            if member != first:
                _start(cluster, sim, member)
        sim.run(2 * cluster.settling_time)
    return Settled(cluster, sim)


def _start(cluster: Cluster, sim: simulator.Simulation, member: str) -> None:
    sim.start(member)
    for instance in sim.instances_of(member):
        for tracker in cluster.trackers[instance]:
            sim.inject(instance, machine.TrackerUpdate(tracker.name, tracker.alive))


def failure_times(state: Settled, member: str, failure: Failure) -> List[int]:
    """Return when a failure costs most or least: just after and just before an Advertisement of the member.

    A polling tracker notices the failure later, so the failure is also timed for its notice to fall just after one.
    """
    cluster, held = state.cluster, state.held_by(member)
    noticed = {0}
    if failure.kind == SERVICE:
        noticed |= {
            tracker.detection(failure.hangs)
            for instance in held
            if cluster.instances[instance].name in failure.vips
            for tracker in cluster.trackers[instance]
        }
    found: Set[int] = set()
    for instance in held:
        deadline, interval = state.sim.states[instance].deadline or 0, cluster.instances[instance].router.interval
        found |= {deadline + interval // 2, deadline + interval - PROPAGATION}
        found |= {deadline + PROPAGATION + -late % interval for late in noticed}
    return sorted(found) or [state.sim.now + PROPAGATION]


def simulate(initial: Settled, member: str, failure: Failure, at: int) -> Dict[str, Outcome]:
    """Return what happens to each VIP when a member fails at a given time and returns long after."""
    cluster = initial.cluster
    before = initial.sim.fork()
    before.run(at)
    during = before.fork()
    _fail(cluster, during, member, failure)
    during.run(at + cluster.settling_time)
    if failure.kind in (*UNREACHABLE, MUTE):
        _advertise_now(during)
    after = during.fork()
    _recover(cluster, after, member, failure)
    after.run(during.now + cluster.settling_time)
    run = Run(member, failure, before, during, after)
    return {vip: _outcome(cluster, vip, run) for vip in cluster.vips}


def _outcome(cluster: Cluster, vip: str, run: Run) -> Outcome:
    alone = frozenset([run.member])
    no_members: FrozenSet[str] = frozenset()
    cut_off = alone if run.failure.kind in UNREACHABLE else no_members
    fails = run.failure.kind == SERVICE and vip in run.failure.vips and not run.failure.serves
    dead = alone if fails else cut_off
    back = _holders(cluster, run.after, vip, no_members)
    return Outcome(
        before=_holders(cluster, run.before, vip, no_members),
        after=_holders(cluster, run.during, vip, cut_off),
        outage=_longest_gap(cluster, run.during, vip, dead, run.before.now),
        back=back,
        back_outage=max(
            _longest_gap(cluster, run.after, vip, no_members, run.during.now), _unannounced(cluster, vip, run)
        ),
        shared=_shared(cluster, vip, run),
        served=bool(_holders(cluster, run.during, vip, dead)) and bool(back),
        priorities={
            cluster.instances[instance].member: machine.priority_of(
                cluster.instances[instance].router, run.during.states[instance]
            )
            for instance in cluster.vips[vip]
        },
    )


def _advertise_now(sim: simulator.Simulation) -> None:
    """Let all holders advertise now, as they may just before a cut ends: their clocks drift.

    The next Advertisement is then as far away as possible. A router that receives priority 0 advertises at once
    (RFC 9568 6.4.3).
    """
    for instance in sim.holding:
        resignation = sim.instances[instance].advertisement._replace(priority=0)
        sim.inject(instance, machine.Received(resignation, sim.instances[instance].router.source))
    sim.run(sim.now + PROPAGATION)


def _shared(cluster: Cluster, vip: str, run: Run) -> int:
    """Return for how long a client could reach two holders.

    A member that is cut off keeps its addresses, but no client can reach it until it returns.
    """
    instances = frozenset(cluster.vips[vip])
    since = run.during.now if run.failure.kind in (CUT, PORT) else run.before.now
    shared = _duration(run.after, lambda holding: len(holding & instances) > 1, since, run.after.now)
    held = run.before.holding & instances & frozenset(run.before.instances_of(run.member))
    if run.failure.kind == CRASH and held:
        resigns_after = [cluster.instances[each].resigns_after for each in held]
        without_hook = [cluster.instances[each] for each, after in zip(held, resigns_after) if after is None]
        kept = max(map(_kept_after_crash, without_hook), default=0)
        shared += _duration(run.after, lambda holding: bool(holding & instances), since, since + kept)
        shared = max(shared, _shared_before_resignation(cluster, vip, run, resigns_after))
    return max(shared, _unheard(cluster, vip, run)) if run.failure.kind == PORT else shared


def _unheard(cluster: Cluster, vip: str, run: Run) -> int:
    """Return for how long a member whose link is back may hold a VIP again before the others hear it.

    keepalived resigns into a link that is gone. Linux then looks for the peer's MAC, three times, one a second (arp(7):
    mcast_solicit, retrans_time_ms), and what is sent to the peer meanwhile waits for the next time. The agent sends
    nothing without a link.
    """
    if run.member not in _holders(cluster, run.after, vip, frozenset()):
        return 0
    own = [cluster.instances[at] for at in cluster.vips[vip] if cluster.instances[at].member == run.member]
    own = [each for each in own if not each.is_apart]
    looks = [each for each in own if each.peers is not None and not each.keeps_addresses_on_stop]
    return SECOND if any(machine.MISSED * each.router.interval < NEIGHBOUR_LOOKUP for each in looks) else 0


def _unannounced(cluster: Cluster, vip: str, run: Run) -> int:
    """Return for how long clients may go on sending to a keepalived that has yielded to a member that was cut off.

    That member never lost the VIP, so it announces it when it hears the other one's last Advertisement. As in
    `_unheard`, that may wait for its MAC, or be lost: then keepalived's hook sends another one.
    """
    own = frozenset(cluster.vips[vip])
    kept = run.during.holding & run.after.holding & own & frozenset(run.after.instances_of(run.member))
    if run.failure.kind not in UNREACHABLE or not kept:
        return 0
    yielded = [cluster.instances[at] for at in (run.during.holding - run.after.holding) & own]
    has_hook = any(each.resigns_after is not None and each.peers is not None for each in yielded)
    return HOOK if has_hook else 0


def _shared_before_resignation(cluster: Cluster, vip: str, run: Run, resigns_after: List[Optional[int]]) -> int:
    """Return for how long a successor may hold a VIP before the hook removes it from the member that was killed.

    keepalived's VRRP process may resign as its parent dies, and be killed before it removes the addresses.
    """
    has_successor = bool(_holders(cluster, run.during, vip, frozenset((run.member,))))
    return max((after or 0 for after in resigns_after), default=0) if has_successor else 0


def _kept_after_crash(instance: simulator.Instance) -> int:
    """Return how long the addresses of a killed router stay on its interface.

    keepalived removes them when it starts again, the agent once it has then received the new Active's Advertisement.
    """
    return RESTART + instance.router.interval if instance.keeps_addresses_on_stop else RESTART


def _duration(sim: simulator.Simulation, when: Callable[[FrozenSet[int]], bool], begin: int, until: int) -> int:
    """Return for how long, between two times, the set of holders satisfied a condition."""
    ends = [moment.at for moment in sim.history[1:]] + [sim.now]
    return sum(
        max(0, min(end, until) - max(moment.at, begin))
        for moment, end in zip(sim.history, ends)
        if when(moment.holding)
    )


def _fail(cluster: Cluster, sim: simulator.Simulation, member: str, failure: Failure) -> None:
    if failure.kind == STOP:
        sim.stop(member)
    elif failure.kind == CRASH:
        sim.crash(member)
    elif failure.kind == CUT:
        sim.cut(member)
    elif failure.kind == MUTE:
        sim.mute(member)
    elif failure.kind == PORT:
        _set_link(sim, member, up=False)
    elif failure.kind == FLAP:
        _flap(sim, member)
    else:
        _update_trackers(cluster, sim, member, failure, alive=False)


def _recover(cluster: Cluster, sim: simulator.Simulation, member: str, failure: Failure) -> None:
    if failure.kind in (*UNREACHABLE, MUTE):
        _set_link(sim, member, up=True)
    elif failure.kind == SERVICE:
        _update_trackers(cluster, sim, member, failure, alive=True)
    else:
        _start(cluster, sim, member)


def _set_link(sim: simulator.Simulation, member: str, up: bool) -> None:
    """Take the link of a member's VIPs away, or give it back. A router that loses it is in FAULT.

    Nobody hears it resign, unless VRRP has a link of its own.
    """
    if up:
        sim.heal()
    elif not all(sim.instances[at].is_apart for at in sim.instances_of(member)):
        sim.cut(member)
    for instance in sim.instances_of(member):
        if sim.instances[instance].tracks_link:
            sim.inject(instance, machine.TrackerUpdate(LINK, tracking.check(0, up)))


def _flap(sim: simulator.Simulation, member: str) -> None:
    """Take a member's link away and give it back in turn; each further turn would be like the last."""
    interval = min((sim.instances[at].router.interval for at in sim.instances_of(member)), default=SECOND)
    pace = round(events.flap_seconds(interval / SECOND) * SECOND)
    for turn in range(FLAPS):
        sim.call_at(sim.now + turn * pace, functools.partial(_set_link, member=member, up=turn % 2 == 1))


def _noticing_trackers(cluster: Cluster, instance: int, failure: Failure) -> List[Tracker]:
    if cluster.instances[instance].name not in failure.vips:
        return []
    return [tracker for tracker in cluster.trackers[instance] if tracker.name not in failure.blind_trackers]


def _update_trackers(cluster: Cluster, sim: simulator.Simulation, member: str, failure: Failure, alive: bool) -> None:
    for instance in sim.instances_of(member):
        interval = cluster.instances[instance].router.interval
        for tracker in _noticing_trackers(cluster, instance, failure):
            delta = tracker.alive if alive else tracker.dead
            late = tracker.up_detection if alive else tracker.detection(failure.hangs)
            event = machine.TrackerUpdate(tracker.name, delta)
            sim.call_at(sim.now + late, functools.partial(_inject, instance=instance, event=event))
            for moment in offers.moments(interval) if tracker.offers and not alive else ():
                sim.call_at(sim.now + late + moment, functools.partial(simulator.Simulation.offer, instance=instance))


def _inject(sim: simulator.Simulation, instance: int, event: machine.Event) -> None:
    sim.inject(instance, event)


def _holders(cluster: Cluster, sim: simulator.Simulation, vip: str, out: FrozenSet[str]) -> Tuple[str, ...]:
    members = [cluster.instances[instance].member for instance in cluster.vips[vip] if instance in sim.holding]
    return tuple(member for member in members if member not in out)


def _longest_gap(cluster: Cluster, sim: simulator.Simulation, vip: str, out: FrozenSet[str], begin: int) -> int:
    """Return the longest time, from ``begin`` on, in which no member served the VIP."""
    instances = {instance for instance in cluster.vips[vip] if cluster.instances[instance].member not in out}
    longest = 0
    gone_since: Optional[int] = None
    for moment in [*sim.history, simulator.Moment(sim.now, frozenset(instances))]:
        if gone_since is not None:
            longest = max(longest, moment.at - max(gone_since, begin))
        if instances & moment.holding:
            gone_since = None
        elif gone_since is None:
            gone_since = moment.at
    return longest
