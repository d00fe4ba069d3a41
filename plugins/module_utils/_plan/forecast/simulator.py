# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Simulates Virtual Routers on their links, with the agent's own state machine and a virtual clock.

It is deterministic: the same calls give the same history, so a forecast can be verified and a schedule repeated. Times
are integers in microseconds since the start.
"""

from __future__ import annotations

import copy
import heapq
from functools import partial
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..._agent.vrrp.core import effects, machine, offers, packet, sync_group, tracking
from ..model.links import VirtualRouter

MILLION = 1_000_000
DELAY = 1  # microseconds on a link without faults: enough to keep cause before effect


class Instance(NamedTuple):
    """One Virtual Router on one member."""

    member: str
    name: str  # the same on every member that shares the addresses
    router: machine.VirtualRouter
    advertisement: packet.Advertisement  # what it sends, but for the priority
    family: int = 4
    peers: Optional[FrozenSet[str]] = None  # the addresses that it sends to; None is multicast
    # When stopped it keeps its addresses until another member has taken them, as the agent does (keepalived does not).
    keeps_addresses_on_stop: bool = False
    resigns_after: Optional[int] = None  # so long after it was killed its host resigns for it; None is never
    tracks_link: bool = True  # whether it is in FAULT while the interface of its addresses is down
    is_apart: bool = False  # whether another interface than that of VRRP carries its addresses
    compares_addresses: bool = False  # keepalived before 2.3.3 discards an Advertisement with other addresses
    link: int = 0  # the number of the link on which it is

    @property
    def virtual_router(self) -> VirtualRouter:
        return VirtualRouter(self.link, self.advertisement.vrid, self.family)

    def accepts(self, other: Instance) -> bool:
        """Whether it would accept an Advertisement of another instance as one of its own Virtual Router."""
        if self.virtual_router != other.virtual_router:
            return False
        if (self.peers is None) != (other.peers is None):  # keepalived drops multicast when it expects unicast
            return False
        if other.peers is not None and self.router.source not in other.peers:
            return False
        if self.compares_addresses and set(other.advertisement.addresses) != set(self.advertisement.addresses):
            return False
        return packet.mismatch(other.advertisement, self.advertisement) is None


class Network:
    """A link without faults, except for pairs of members of which one cannot reach the other."""

    def __init__(self) -> None:
        self.blocked: FrozenSet[Tuple[str, str]] = frozenset()

    def delays(self, sender: str, receiver: str, now: int) -> Sequence[int]:
        """Return the delay of each copy of a packet that arrives; an empty sequence when it is lost."""
        return () if (sender, receiver) in self.blocked else (DELAY,)


Entry = Tuple[int, int, int, Any]  # when, a serial number, the instance (-1 is none), and what: a timer's is an int
# What a copy of a simulation has of its own.
FORKED = ("states", "holding", "history", "changes", "running", "network", "_paused", "_agenda", "_timers", "_queued")


class Moment(NamedTuple):
    """A change that is visible on the link."""

    at: int
    holding: FrozenSet[int]  # the instances that have their addresses


class Simulation:
    """Members that start, stop, fail and come back, and the instances on them, each called by its number."""

    def __init__(
        self,
        instances: Sequence[Instance],
        network: Optional[Network] = None,
        groups: Iterable[Tuple[int, ...]] = (),
        drift: Optional[Dict[str, int]] = None,
    ) -> None:
        """
        :param groups: the numbers of instances of one member that form a sync group
        :param drift: how many microseconds a member's clock gains in each second
        """
        self.instances = list(instances)
        self.network = network or Network()
        self.drift = drift or {}
        self.now = 0
        self.states = [machine.State() for _instance in instances]
        self.holding: Set[int] = set()
        self.history = [Moment(0, frozenset())]
        self.changes: List[Tuple[int, int, effects.StateChanged]] = []
        self.running: Set[str] = set()
        self._paused: Dict[str, int] = {}
        self._agenda: List[Entry] = []
        self._serial = 0
        self._timers: Dict[int, Entry] = {}  # of each instance, the one that was set last
        self._queued: Dict[int, int] = {}  # when the agenda looks at an instance's timer next: not after it runs out
        self._packets: Dict[Tuple[int, int], machine.Received] = {}
        self._grouped = {instance: members for members in groups for instance in members}
        self._receivers = [
            [at for at, other in enumerate(instances) if other.member != instance.member and other.accepts(instance)]
            for instance in instances
        ]

    def fork(self) -> Simulation:
        """Return an independent copy."""
        other = copy.copy(self)
        for name in FORKED:
            setattr(other, name, copy.copy(getattr(self, name)))
        return other

    def in_flight(self) -> Tuple[Tuple[int, int, machine.Event], ...]:
        """Return what is on the link: for each packet after how long it arrives where."""
        packets = [entry for entry in self._agenda if not isinstance(entry[3], int)]
        return tuple((at - self.now, instance, packet) for at, _serial, instance, packet in sorted(packets))

    def instances_of(self, member: str) -> List[int]:
        """Return the numbers of a member's instances."""
        return [at for at, instance in enumerate(self.instances) if instance.member == member]

    def active(self) -> List[int]:
        return [at for at, state in enumerate(self.states) if state.name == machine.ACTIVE]

    def start(self, member: str) -> None:
        self.running.add(member)
        self.inject_all(member, machine.Start())

    def stop(self, member: str) -> None:
        """Shut a member down."""
        for instance in self.instances_of(member):
            self.inject(instance, machine.Stop(self.instances[instance].keeps_addresses_on_stop))
        if not self.holding.intersection(self.instances_of(member)):  # one that keeps them still receives
            self.running.discard(member)

    def crash(self, member: str) -> None:
        """Kill a member. Its addresses count as gone, because nothing serves them any more.

        Those of a router whose host resigns for it stay until that removes them.
        """
        self.running.discard(member)
        for instance in self.instances_of(member):
            after = self.instances[instance].resigns_after
            if after is None or instance not in self.holding:
                self.remove(instance)
            else:
                self.states[instance] = machine.State()
                self.call_at(self.now + after, partial(Simulation._run_hook, instance=instance))

    def reconfigure(self, before: int, after: int) -> None:
        """Let a router go on with the settings of another instance of its member, as it does at a reload."""
        state, self.states[before] = self.states[before], machine.State()
        self.states[after] = machine.reconfigured(self.instances[after].router, state, self._local(after))
        if before in self.holding:
            self.holding.remove(before)
            self._hold(after, True)
        self._arm(after, None)

    def remove(self, instance: int) -> None:
        """End an instance at once. Its member does not resign."""
        self.states[instance] = machine.State()
        self._hold(instance, False)

    def _run_hook(self, instance: int) -> None:
        self._hold(instance, False)
        self._send(instance, 0)

    def offer(self, instance: int) -> None:
        """Offer what an instance holds to the others."""
        router = self.instances[instance].router
        if self.states[instance].name == machine.ACTIVE:
            self._send(instance, 0)
            unit = router.interval if router.version == 3 else machine.SECOND
            self.call_at(
                self.now + offers.patience(router.priority, unit), partial(Simulation._keep, instance=instance)
            )

    def _keep(self, instance: int) -> None:
        if self.states[instance].name == machine.ACTIVE:
            self._send(instance, machine.priority_of(self.instances[instance].router, self.states[instance]))

    def pause(self, member: str, until: int) -> None:
        """Suspend a member until then; what arrives meanwhile waits."""
        self._paused[member] = until

    def cut(self, member: str) -> None:
        """Cut a member off, in both directions."""
        others = {instance.member for instance in self.instances if instance.member != member}
        self.network.blocked |= {pair for other in others for pair in ((member, other), (other, member))}

    def mute(self, member: str) -> None:
        """Lose what a member sends."""
        others = {instance.member for instance in self.instances if instance.member != member}
        self.network.blocked |= {(member, other) for other in others}

    def heal(self) -> None:
        self.network.blocked = frozenset()

    def inject_all(self, member: str, event: machine.Event) -> None:
        """Inject an event into all of a member's instances."""
        for instance in self.instances_of(member):
            self.inject(instance, event)

    def call_at(self, at: int, action: Callable[[Simulation], None]) -> None:
        """Call an action at a later time."""
        self._put(at, -1, action)

    def run(self, until: int) -> None:
        """Advance the clock."""
        agenda = self._agenda
        while agenda and agenda[0][0] <= until:
            entry = heapq.heappop(agenda)
            self.now, _serial, instance, what = entry
            if instance < 0:
                what(self)
            elif isinstance(what, int) and not self._is_due(entry):
                continue
            elif self._paused and self._paused.get(self.instances[instance].member, 0) > self.now:
                self._queue((self._paused[self.instances[instance].member], *entry[1:]))
            elif isinstance(what, int):
                if what == self.states[instance].deadline:  # else the timer was stopped since
                    self.inject(instance, machine.Timeout())
            elif self.instances[instance].member in self.running:
                self.inject(instance, what)
        self.now = until

    def _is_due(self, entry: Entry) -> bool:
        """Whether an instance's timer runs out. One that was set again since is looked at when that one does."""
        at, serial, instance, _deadline = entry
        if self._queued.get(instance) != at:
            return False
        del self._queued[instance]
        last = self._timers[instance]
        if last[1] != serial:
            self._queue(last)
        return last[1] == serial

    def _queue(self, entry: Entry) -> None:
        """Note an entry. Of an instance's timers only the one that is looked at first counts."""
        at, _serial, instance, what = entry
        if isinstance(what, int):
            if self._queued.get(instance, at + 1) <= at:
                return
            self._queued[instance] = at
        heapq.heappush(self._agenda, entry)

    def inject(self, instance: int, event: machine.Event) -> None:
        """Inject an event into one instance, now."""
        now = self._local(instance)
        if instance not in self._grouped:
            before = self.states[instance].deadline
            self.states[instance], wanted = machine.step(
                self.instances[instance].router, self.states[instance], event, now
            )
            self._arm(instance, before)
            for effect in wanted:
                self._do(instance, effect)
            return
        members = self._grouped[instance]
        before_all = [self.states[member].deadline for member in members]
        routers = [self.instances[member].router for member in members]
        states, done = sync_group.step(routers, [self.states[m] for m in members], members.index(instance), event, now)
        for member, state, earlier in zip(members, states, before_all):
            self.states[member] = state
            self._arm(member, earlier)
        for at, effect in done:
            self._do(members[at], effect)

    def _do(self, instance: int, effect: effects.Effect) -> None:
        if isinstance(effect, effects.Send):
            self._send(instance, effect.priority)
        elif isinstance(effect, effects.AddAddresses):
            self._hold(instance, True)
        elif isinstance(effect, effects.RemoveAddresses):
            self._hold(instance, False)
        elif isinstance(effect, effects.StateChanged):
            self.changes.append((self.now, instance, effect))

    def _send(self, instance: int, priority: int) -> None:
        sender = self.instances[instance]
        event = self._packets.get((instance, priority))
        if event is None:
            event = machine.Received(sender.advertisement._replace(priority=priority), sender.router.source)
            self._packets[instance, priority] = event
        for receiver in self._receivers[instance]:
            for delay in self.network.delays(sender.member, self.instances[receiver].member, self.now):
                self._put(self.now + delay, receiver, event)

    def _hold(self, instance: int, holds: bool) -> None:
        if holds != (instance in self.holding):
            (self.holding.add if holds else self.holding.remove)(instance)
            self.history.append(Moment(self.now, frozenset(self.holding)))

    def _arm(self, instance: int, before: Optional[int]) -> None:
        deadline = self.states[instance].deadline
        if deadline is not None and deadline != before:
            self._serial += 1
            self._timers[instance] = (self._global(instance, deadline), self._serial, instance, deadline)
            self._queue(self._timers[instance])

    def _put(self, at: int, instance: int, what: Any) -> None:
        self._serial += 1
        heapq.heappush(self._agenda, (at, self._serial, instance, what))

    def _local(self, instance: int) -> int:
        if not self.drift:
            return self.now
        gained = self.drift.get(self.instances[instance].member, 0)
        return self.now + self.now * gained // MILLION

    def _global(self, instance: int, local: int) -> int:
        """Return when the member's clock will show a time; rounded up, so that its timer is never early."""
        if not self.drift:
            return local
        gained = self.drift.get(self.instances[instance].member, 0)
        return -(-local * MILLION // (MILLION + gained)) if gained else local


def settling_time(instances: Sequence[Instance], transit: int = DELAY) -> int:
    """Return how long after the last disturbance a Virtual Router takes at most to have one Active, the right one.

    The sum follows from the timers of RFC 9568 section 6.1, on clocks without drift:

    - a packet that was sent before travels for one more transit, and may set a Backup's timer for the last time;
    - that Backup waits for its Active_Down_Interval, with the longest interval that it can have learned, and at the
      lowest priority that it can have had when the timer was set (RFC 9568 section 6.4.2 leaves a running timer alone);
    - it advertises as soon as it is Active. The loser receives that after one transit. A Backup whose timer fires at
      that very moment is answered at once, and receives the answer two transits later;
    - a router with a preempt_delay starts counting at the first Advertisement of the new Active. Each further one
      restarts its timer until the delay is over, and then comes one more Active_Down_Interval.

    A surviving Active takes less, one interval. Pass the instances of a sync group in one call; instances of other
    Virtual Routers only make the bound larger.

    :param transit: how long an Advertisement takes at most
    """
    slowest = max((instance.router.interval for instance in instances), default=0)
    wait = max((_longest_wait(instance.router, slowest) for instance in instances), default=0)
    delay = max((instance.router.preempt_delay for instance in instances), default=0)
    settled = transit + wait + 3 * transit
    return settled + transit + delay + wait if delay else settled


def _longest_wait(router: machine.VirtualRouter, interval: int) -> int:
    lowest = router._replace(priority=tracking.LOWEST) if router.tracked else router
    return machine.active_down_interval(lowest, machine.State(active_interval=interval))
