# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Virtual Routers on a virtual link under a virtual clock: the agent's own state machine, played instead of run.

Nothing here is random or waits: the same calls give the same history, so that a forecast can be proved and a schedule
can be played again. Times are integers in microseconds since the beginning.
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
    peers: Optional[FrozenSet[str]] = None  # whom it sends to; None is multicast
    lingers: bool = False  # when it leaves it serves until somebody else does, as the agent and not keepalived

    def hears(self, other: Seat) -> bool:
        """Whether an Advertisement of the other one would be taken for one of this Virtual Router."""
        if (self.family, self.advertisement.vrid) != (other.family, other.advertisement.vrid):
            return False
        if (self.peers is None) != (other.peers is None):  # keepalived drops multicast when it expects unicast
            return False
        if other.peers is not None and self.router.source not in other.peers:
            return False
        return packet.mismatch(other.advertisement, self.advertisement) is None


class Network:
    """A link without faults, but for pairs of members that cannot reach each other in one direction."""

    def __init__(self) -> None:
        self.blocked: FrozenSet[Tuple[str, str]] = frozenset()

    def copies(self, sender: str, receiver: str, now: int) -> Sequence[int]:
        """Return the delay of each copy that arrives; none when it is lost."""
        return () if (sender, receiver) in self.blocked else (DELAY,)


class Moment(NamedTuple):
    """A change that somebody outside could see."""

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
        """:param groups: the numbers of seats of one member that form a sync group
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
        self._hearers = [
            [at for at, other in enumerate(seats) if other.member != seat.member and other.hears(seat)]
            for seat in seats
        ]

    def fork(self) -> Simulation:
        """Return a copy that goes on by itself."""
        other = copy.copy(self)
        for name in ("states", "holding", "history", "changes", "running", "_paused", "_agenda", "network"):
            setattr(other, name, copy.copy(getattr(self, name)))
        return other

    def of(self, member: str) -> List[int]:
        """Return the numbers of a member's seats."""
        return [at for at, seat in enumerate(self.seats) if seat.member == member]

    def active(self) -> List[int]:
        return [at for at, state in enumerate(self.states) if state.name == machine.ACTIVE]

    def start(self, member: str) -> None:
        self.running.add(member)
        self.tell(member, machine.Start())

    def stop(self, member: str) -> None:
        """Leave in good order."""
        for seat in self.of(member):
            self.inject(seat, machine.Stop(self.seats[seat].lingers))
        if not self.holding.intersection(self.of(member)):  # who lingers still hears the others
            self.running.discard(member)

    def crash(self, member: str) -> None:
        """Forget everything, without a word. The addresses go with it: nobody serves them any more."""
        self.running.discard(member)
        for seat in self.of(member):
            self.states[seat] = machine.State()
            self._hold(seat, False)

    def pause(self, member: str, until: int) -> None:
        """Do nothing until then; what arrives meanwhile waits."""
        self._paused[member] = until

    def cut(self, member: str) -> None:
        """Cut a member off, both ways."""
        others = {seat.member for seat in self.seats if seat.member != member}
        self.network.blocked |= {pair for other in others for pair in ((member, other), (other, member))}

    def heal(self) -> None:
        self.network.blocked = frozenset()

    def tell(self, member: str, event: machine.Event) -> None:
        """Give an event to all of a member's seats."""
        for seat in self.of(member):
            self.inject(seat, event)

    def post(self, at: int, action: Callable[[Simulation], None]) -> None:
        """Do something later."""
        self._put(at, -1, action)

    def run(self, until: int) -> None:
        """Let time pass."""
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
                if what == self.states[seat].deadline:  # else it was set anew since
                    self.inject(seat, machine.Timeout())
            elif self.seats[seat].member in self.running:
                self.inject(seat, what)
        self.now = until

    def inject(self, seat: int, event: machine.Event) -> None:
        """Give an event to one seat, now."""
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
        for hearer in self._hearers[seat]:
            for delay in self.network.copies(sender.member, self.seats[hearer].member, self.now):
                self._put(self.now + delay, hearer, event)

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
        """When the member's clock will show a time; rounded up, so that its timer is never early."""
        gained = self.drift.get(self.seats[seat].member, 0)
        return -(-local * MILLION // (MILLION + gained)) if gained else local


def settling_time(seats: Sequence[Seat], transit: int = DELAY) -> int:
    """Return how long after the last disturbance a Virtual Router has exactly one Active, the right one, at the latest.

    The sum follows from the timers of RFC 9568 section 6.1, on clocks without drift:

    - what was sent before is under way for one transit more, and may set a Backup's timer for the last time;
    - that Backup waits for its Active_Down_Interval, with the longest interval that it can have learned, and at the
      lowest priority that it can have had when the timer was set (RFC 9568 section 6.4.2 lets a running timer alone);
    - it advertises as soon as it is Active. Who loses hears that after one transit. A Backup whose timer runs out in
      just that moment is answered at once, and has heard it two transits later;
    - whoever has a preempt_delay begins to count with the first Advertisement of the new Active, each further one sets
      its timer anew until the delay is over, and then comes one more Active_Down_Interval.

    A surviving Active needs less than that: one interval. Seats of a sync group belong together in one call, and those
    of other Virtual Routers only make the bound larger.

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
