# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plays every single failure of a cluster, except for what would only repeat an outcome.

Each VIP is elected by itself, because only routers with its VRID on its link listen to each other; VIPs of a sync
group are not. Failures come at the moments of its own timers. VIPs whose routers differ in nothing but names, VRIDs
and addresses have the same outcomes: the first of them is played.

Where its members differ in nothing but address and priority, two things follow:

- A member below the `BEST` never takes part. A better one takes over first, because its Skew_Time is shorter, and its
  Advertisement restarts the timer of all the others (RFC 9568 section 6.4.2). Members that share the highest priority
  become Active together, however many they are, and all but the one with the greatest address give way to its first
  Advertisement (section 6.4.3).
- Two plays are alike if members of the same rank hold the VIP and fail. Only the first of them is played.

A VIP whose members differ in more is played with all of them, and in every failure of each.
"""

from __future__ import annotations

import ipaddress
from typing import Callable, Collection, Dict, FrozenSet, Hashable, Iterator, List, NamedTuple, Optional, Tuple

from ..._agent.vrrp.core import tracking
from .cluster import Cluster
from .scenario import Failure, Outcome, Settled, failure_times, settle, simulate
from .simulator import Instance

BEST = 4  # the holder, the member that fails, the one that takes over, and one that hears it

Holders = FrozenSet[Tuple[str, str]]  # VIPs, each with a member that holds it
Progress = Callable[[int, int], None]


class Played(NamedTuple):
    """The outcome for one VIP, when one member fails in one of the initial states."""

    initial: int
    failure: int
    member: str
    vip: str
    outcome: Outcome


def play_all(cluster: Cluster, failures: List[Failure], progress: Progress) -> Iterator[Played]:
    """Yield the outcomes. The initial state 0 of each VIP is the one in which all members have started together.

    :param progress: called before each step with the number of steps that are done, and that of all
    """
    alike = _alike(cluster, failures)
    elections = _elections(cluster, list(alike))
    for kind, failure in enumerate(failures):
        progress(kind, len(failures))
        for election in elections:
            for number, member, outcomes in election.play(failure):
                for first, outcome in outcomes.items():
                    yield from (Played(number, kind, member, vip, outcome) for vip in alike[first])


def _alike(cluster: Cluster, failures: List[Failure]) -> Dict[str, List[str]]:
    """Return the VIPs that have the same outcomes, by the first of them."""
    if _depend_on_each_other(cluster):
        return {vip: [vip] for vip in cluster.vips}
    found: Dict[Hashable, List[str]] = {}
    for vip, numbers in cluster.vips.items():
        routers = tuple((_nameless(cluster.instances[at]), tuple(cluster.trackers[at])) for at in numbers)
        found.setdefault((routers, tuple(vip in failure.vips for failure in failures)), []).append(vip)
    return {vips[0]: vips for vips in found.values()}


def _nameless(instance: Instance) -> Instance:
    """Return an instance without what has no effect on a VIP that all members have on the same link and VRID."""
    advertisement = instance.advertisement._replace(vrid=0, addresses=())
    return instance._replace(name="", link=0, advertisement=advertisement)


def _elections(cluster: Cluster, vips: List[str]) -> List[Election]:
    """Return an election for each of some VIPs; a single one for all if they depend on each other."""
    if _depend_on_each_other(cluster):
        return [Election(cluster)]
    return [
        ReducedElection(part) if _differ_in_rank_alone(part) else Election(part)
        for part in (cluster.only([vip], cluster.members) for vip in vips)
    ]


def _depend_on_each_other(cluster: Cluster) -> bool:
    """Whether VIPs share a Virtual Router or a sync group, or one has several Virtual Routers."""
    routers = {(at.virtual_router, at.name) for at in cluster.instances}
    shared = len({router for router, _name in routers}) < len(cluster.vips) or len(routers) > len(cluster.vips)
    return shared or bool(cluster.groups)


def _differ_in_rank_alone(cluster: Cluster) -> bool:
    """Whether the instances of a VIP are alike but for address and priority, and send to each other."""
    sources = {instance.router.source for instance in cluster.instances}
    kinds = {
        instance._replace(
            member="",
            router=instance.router._replace(priority=0, source=""),
            advertisement=instance.advertisement._replace(priority=0),
            peers=None if instance.peers is None else frozenset(),
            keeps_addresses_on_stop=False,
            resigns_after=None,
        )
        for instance in cluster.instances
    }
    return (
        len(kinds) == len(set(map(tuple, cluster.trackers))) == 1
        and len(sources) == len(cluster.members) == len(cluster.instances)
        and all(instance.router.priority != tracking.OWNER for instance in cluster.instances)
        and all(at.peers is None or sources <= {*at.peers, at.router.source} for at in cluster.instances)
    )


class Election:
    """The members that elect the holder of a VIP; all of them play, in each failure."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._all = frozenset(cluster.members)
        self._settled: Dict[Hashable, Settled] = {}

    def play(self, failure: Failure) -> Iterator[Tuple[int, str, Dict[str, Outcome]]]:
        """Yield what becomes of each VIP: the number of the initial state, the member that fails, and the outcomes."""
        played = set()
        for number, first in enumerate(self._initial_states()):
            for member in self.cluster.members:
                likeness = self._likeness(first, member)
                if likeness not in played:
                    played.add(likeness)
                    for at in failure_times(self._settle(first), member, failure):
                        yield number, member, self._simulate(self._settle(first, member), member, failure, at)

    def _initial_states(self) -> List[Optional[str]]:
        """Return the members that lead to different states when they start before the rest; None: all start together.

        Without preemption it matters who started first.
        """
        found: Dict[Hashable, Optional[str]] = {}
        for first in [None, *self.cluster.members]:
            found.setdefault(self._likeness(first), first)
        return list(found.values())

    def _settle(self, first: Optional[str], failing: str = "") -> Settled:
        """Return the settled state in which a failure may occur.

        :param first: the member that started before the rest; None if all of them started together
        :param failing: a member that has to be in play
        """
        key = first, self._in_play(self._all.intersection((first, failing)))
        if key not in self._settled:
            self._settled[key] = settle(self.cluster.only(self.cluster.vips, key[1]), first)
        return self._settled[key]

    def _holders(self, first: Optional[str]) -> Holders:
        return self._settle(first).holders

    def _simulate(self, initial: Settled, failing: str, failure: Failure, at: int) -> Dict[str, Outcome]:
        return simulate(initial, failing, failure, at)

    def _in_play(self, _wanted: Collection[str]) -> FrozenSet[str]:
        return self._all

    def _likeness(self, first: Optional[str], failing: str = "") -> Hashable:
        """Return what initial states have in common if each failure has the same outcome, and plays if they do."""
        return self._holders(first), failing


class ReducedElection(Election):
    """Members that differ in rank alone: the best of them play, and of plays that are alike the first."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._priorities = {instance.member: cluster.priority(at) for at, instance in enumerate(cluster.instances)}
        self._ranked = sorted(cluster.instances, key=self._rank, reverse=True)
        self._places = {instance.member: place for place, instance in enumerate(self._ranked)}
        self._best = frozenset(instance.member for instance in self._ranked[:BEST])
        self._first_below: Dict[bool, str] = {}

    def _rank(self, instance: Instance) -> Tuple[int, int]:
        return self._priorities[instance.member], int(ipaddress.ip_address(instance.router.source))

    def _in_play(self, wanted: Collection[str]) -> FrozenSet[str]:
        return self._best.union(wanted)

    def _holders(self, first: Optional[str]) -> Holders:
        """Return the holders; of members below the best all keep the VIP that started first, or none does."""
        if first is None or first in self._best or first not in self._all:
            return super()._holders(first)
        shares_highest = self._priorities[first] == max(self._priorities.values())
        example = self._first_below.setdefault(shares_highest, first)
        return frozenset((vip, first if name == example else name) for vip, name in super()._holders(example))

    def _simulate(self, initial: Settled, failing: str, failure: Failure, at: int) -> Dict[str, Outcome]:
        """Return the outcomes with the priorities of those that are not in play, too."""
        outcomes = super()._simulate(initial, failing, failure, at)
        return {
            vip: outcome._replace(priorities={**self._priorities, **outcome.priorities})
            for vip, outcome in outcomes.items()
        }

    def _likeness(self, first: Optional[str], failing: str = "") -> Hashable:
        """Return the order of the members in play, without their names: who holds, who fails, and who are equal.

        It says of each how it ends, and how it yields.
        """
        holders = {name for _vip, name in self._holders(first)}
        names = self._best | holders | {failing} & self._all
        seen = [self._ranked[place] for place in sorted(map(self._places.__getitem__, names))]
        ranks = [self._priorities[at.member] for at in seen]
        return tuple(
            (at.member in holders, at.member == failing, _engine(at), ranks.index(rank))
            for at, rank in zip(seen, ranks)
        )


def _engine(instance: Instance) -> Hashable:
    """Return what an instance's engine decides: what becomes of its addresses, and who hears that it has yielded."""
    return instance.keeps_addresses_on_stop, instance.resigns_after
