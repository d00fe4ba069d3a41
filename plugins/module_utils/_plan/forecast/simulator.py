# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Simulates Virtual Routers on a link, with the agent's own state machine and a virtual clock.

It is deterministic: the same calls give the same history, so a forecast can be verified and a schedule repeated. Times
are integers in microseconds since the start.
"""

from __future__ import annotations

import copy
import heapq
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import (
    effects,
    machine,
    packet,
    sync_group,
    tracking,
)

MILLION = 1_000_000
DELAY = 1  # microseconds on a link without faults: enough to keep cause before effect


class Seat(NamedTuple):
    """One Virtual Router on one member."""

    member: str
    name: str  # the same on every member that shares the addresses
    router: machine.VirtualRouter
    advertisement: packet.Advertisement  # what it sends, but for the priority
    family: int = 4
    peers: Optional[FrozenSet[str]] = None  # the addresses that it sends to; None is multicast
    # When stopped it keeps its addresses until another member has taken them, as the agent does (keepalived does not).
    keeps_addresses_on_stop: bool = False

    def accepts(self, other: Seat) -> bool:
        """Whether it would accept an Advertisement of another seat as one of its own Virtual Router."""
        if (self.family, self.advertisement.vrid) != (other.family, other.advertisement.vrid):
            return False
        if (self.peers is None) != (other.peers is None):  # keepalived drops multicast when it expects unicast
            return False
        if other.peers is not None and self.router.source not in other.peers:
            return False
        return packet.mismatch(other.advertisement, self.advertisement) is None


class Network:
    """A link without faults, except for pairs of members of which one cannot reach the other."""

    def __init__(self) -> None:
        self.blocked: FrozenSet[Tuple[str, str]] = frozenset()

    def delays(self, sender: str, receiver: str, now: int) -> Sequence[int]:
        """Return the delay of each copy of a packet that arrives; an empty sequence when it is lost."""
        return () if (sender, receiver) in self.blocked else (DELAY,)


class Moment(NamedTuple):
    """A change that is visible on the link."""

    at: int
    holding: FrozenSet[int]  # the seats that have their addresses


class Simulation:
    """Members that start, stop, fail and come back, and the Virtual Routers on them."""

    def __init__(
        self,
        seats: Sequence[Seat],
        network: Optional[Network] = None,
        groups: Iterable[Tuple[int, ...]] = (),
        drift: Optional[Dict[str, int]] = None,
    ) -> None:
        """
        :param groups: the numbers of seats of one member that form a sync group
        :param drift: how many microseconds a member's clock gains in each second
        """
        self.seats = list(seats)
        self.network = network or Network()
        self.drift = drift or {}
        self.now = 0
        self.states = [machine.State() for _seat in seats]
        self.holding: Set[int] = set()
        self.history = [Moment(0, frozenset())]
        self.changes: List[Tuple[int, int, effects.StateChanged]] = []
        self.running: Set[str] = set()
        self._paused: Dict[str, int] = {}
        self._agenda: List[Tuple[int, int, int, Any]] = []
        self._serial = 0
        self._grouped = {seat: members for members in groups for seat in members}
        self._receivers = [
            [at for at, other in enumerate(seats) if other.member != seat.member and other.accepts(seat)]
            for seat in seats
        ]

    def fork(self) -> Simulation:
        """Return an independent copy."""
        other = copy.copy(self)
        for name in ("states", "holding", "history", "changes", "running", "_paused", "_agenda", "network"):
            setattr(other, name, copy.copy(getattr(self, name)))
        return other

    def seats_of(self, member: str) -> List[int]:
        """Return the numbers of a member's seats."""
        return [at for at, seat in enumerate(self.seats) if seat.member == member]

    def active(self) -> List[int]:
        return [at for at, state in enumerate(self.states) if state.name == machine.ACTIVE]

    def start(self, member: str) -> None:
        self.running.add(member)
        self.inject_all(member, machine.Start())

    def stop(self, member: str) -> None:
        """Shut a member down."""
        for seat in self.seats_of(member):
            self.inject(seat, machine.Stop(self.seats[seat].keeps_addresses_on_stop))
        if not self.holding.intersection(self.seats_of(member)):  # one that keeps them still receives
            self.running.discard(member)

    def crash(self, member: str) -> None:
        """Kill a member. Its addresses count as gone, because nothing serves them any more."""
        self.running.discard(member)
        for seat in self.seats_of(member):
            self.states[seat] = machine.State()
            self._hold(seat, False)

    def pause(self, member: str, until: int) -> None:
        """Suspend a member until then; what arrives meanwhile waits."""
        self._paused[member] = until

    def cut(self, member: str) -> None:
        """Cut a member off, in both directions."""
        others = {seat.member for seat in self.seats if seat.member != member}
        self.network.blocked |= {pair for other in others for pair in ((member, other), (other, member))}

    def heal(self) -> None:
        self.network.blocked = frozenset()

    def inject_all(self, member: str, event: machine.Event) -> None:
        """Inject an event into all of a member's seats."""
        for seat in self.seats_of(member):
            self.inject(seat, event)

    def call_at(self, at: int, action: Callable[[Simulation], None]) -> None:
        """Call an action at a later time."""
        self._put(at, -1, action)

    def run(self, until: int) -> None:
        """Advance the clock."""
        agenda = self._agenda
        while agenda and agenda[0][0] <= until:
            self.now, serial, seat, what = heapq.heappop(agenda)
            if seat < 0:
                what(self)
                continue
            resumes = self._paused.get(self.seats[seat].member, 0)
            if resumes > self.now:
                heapq.heappush(agenda, (resumes, serial, seat, what))
            elif isinstance(what, int):
                if what == self.states[seat].deadline:  # else the timer was set again since
                    self.inject(seat, machine.Timeout())
            elif self.seats[seat].member in self.running:
                self.inject(seat, what)
        self.now = until

    def inject(self, seat: int, event: machine.Event) -> None:
        """Inject an event into one seat, now."""
        now = self._local(seat)
        if seat not in self._grouped:
            before = self.states[seat].deadline
            self.states[seat], wanted = machine.step(self.seats[seat].router, self.states[seat], event, now)
            self._arm(seat, before)
            for effect in wanted:
                self._do(seat, effect)
            return
        members = self._grouped[seat]
        before_all = [self.states[member].deadline for member in members]
        routers = [self.seats[member].router for member in members]
        states, done = sync_group.step(routers, [self.states[m] for m in members], members.index(seat), event, now)
        for member, state, earlier in zip(members, states, before_all):
            self.states[member] = state
            self._arm(member, earlier)
        for at, effect in done:
            self._do(members[at], effect)

    def _do(self, seat: int, effect: effects.Effect) -> None:
        if isinstance(effect, effects.Send):
            self._send(seat, effect.priority)
        elif isinstance(effect, effects.AddAddresses):
            self._hold(seat, True)
        elif isinstance(effect, effects.RemoveAddresses):
            self._hold(seat, False)
        elif isinstance(effect, effects.StateChanged):
            self.changes.append((self.now, seat, effect))

    def _send(self, seat: int, priority: int) -> None:
        sender = self.seats[seat]
        event = machine.Received(sender.advertisement._replace(priority=priority), sender.router.source)
        for receiver in self._receivers[seat]:
            for delay in self.network.delays(sender.member, self.seats[receiver].member, self.now):
                self._put(self.now + delay, receiver, event)

    def _hold(self, seat: int, holds: bool) -> None:
        if holds != (seat in self.holding):
            (self.holding.add if holds else self.holding.remove)(seat)
            self.history.append(Moment(self.now, frozenset(self.holding)))

    def _arm(self, seat: int, before: Optional[int]) -> None:
        deadline = self.states[seat].deadline
        if deadline is not None and deadline != before:
            self._put(self._global(seat, deadline), seat, deadline)

    def _put(self, at: int, seat: int, what: Any) -> None:
        self._serial += 1
        heapq.heappush(self._agenda, (at, self._serial, seat, what))

    def _local(self, seat: int) -> int:
        gained = self.drift.get(self.seats[seat].member, 0)
        return self.now + self.now * gained // MILLION

    def _global(self, seat: int, local: int) -> int:
        """Return when the member's clock will show a time; rounded up, so that its timer is never early."""
        gained = self.drift.get(self.seats[seat].member, 0)
        return -(-local * MILLION // (MILLION + gained)) if gained else local


def settling_time(seats: Sequence[Seat], transit: int = DELAY) -> int:
    """Return how long after the last disturbance a Virtual Router takes at most to have one Active, the right one.

    The sum follows from the timers of RFC 9568 section 6.1, on clocks without drift:

    - a packet that was sent before travels for one more transit, and may set a Backup's timer for the last time;
    - that Backup waits for its Active_Down_Interval, with the longest interval that it can have learned, and at the
      lowest priority that it can have had when the timer was set (RFC 9568 section 6.4.2 leaves a running timer alone);
    - it advertises as soon as it is Active. The loser receives that after one transit. A Backup whose timer fires at
      that very moment is answered at once, and receives the answer two transits later;
    - a router with a preempt_delay starts counting at the first Advertisement of the new Active. Each further one
      restarts its timer until the delay is over, and then comes one more Active_Down_Interval.

    A surviving Active takes less, one interval. Pass the seats of a sync group in one call; seats of other Virtual
    Routers only make the bound larger.

    :param transit: how long an Advertisement takes at most
    """
    slowest = max((seat.router.interval for seat in seats), default=0)
    wait = max((_longest_wait(seat.router, slowest) for seat in seats), default=0)
    delay = max((seat.router.preempt_delay for seat in seats), default=0)
    settled = transit + wait + 3 * transit
    return settled + transit + delay + wait if delay else settled


def _longest_wait(router: machine.VirtualRouter, interval: int) -> int:
    lowest = router._replace(priority=tracking.LOWEST) if router.tracked else router
    return machine.active_down_interval(lowest, machine.State(active_interval=interval))
