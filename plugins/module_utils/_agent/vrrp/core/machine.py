# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Virtual Router of RFC 9568 section 6.4, with version 2's timers (RFC 3768 section 6) and keepalived's FAULT.

The machine reads no clock and touches no socket: ``step(router, state, event, now)`` returns the next state and the
effects, in the order in which they must happen. Times are integers in microseconds, of any clock that does not jump.
The caller sends ``Timeout`` when the clock has reached ``state.deadline``.

The election is in the wait: a Backup waits for three missed Advertisements and then for Skew_Time, which is shorter the
higher its priority is. So the Backup with the highest priority advertises first, and the others receive that.
``TRANSITIONS`` at the end is the whole machine as a table.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Tuple, Type, Union

from . import tracking
from .effects import AddAddresses, Announce, Effect, RemoveAddresses, Send, StateChanged
from .packet import Advertisement

INITIALIZE, BACKUP, ACTIVE, FAULT = "Initialize", "Backup", "Active", "Fault"
LEAVING = "Leaving"  # it has resigned, and serves until another router does; not a state of RFC 9568
SECOND = 1_000_000
MISSED = 3  # Advertisements that may be lost before their sender counts as gone
# How long a Leaving router keeps its addresses: after the first Advertisement of the new Active router, whose
# announcement follows it; and, if there is none, after the longest Skew_Time.
LINGER_AFTER_SUCCESSOR, LINGER_MAX = SECOND // 20, SECOND // 5


class VirtualRouter(NamedTuple):
    """What is configured, RFC 9568 section 6.1; times in microseconds."""

    version: int
    priority: int
    interval: int  # Advertisement_Interval
    source: str  # the primary address, which decides between equal Active routers
    preempt: bool = True
    preempt_delay: int = 0
    tracked: FrozenSet[str] = frozenset()  # objects that must have been read before the router takes part


class State(NamedTuple):
    """The state; immutable, so that it can be kept, compared and replayed."""

    name: str = INITIALIZE
    deadline: Optional[int] = None  # Backup: Active_Down_Timer; Active: Adver_Timer; Leaving: when it is over
    active_interval: int = 0  # Active_Adver_Interval: learned from the Active router (version 3)
    readings: Mapping[str, tracking.PriorityDelta] = {}
    started: bool = False
    preempt_at: Optional[int] = None  # when preempt_delay is over
    wants_active: bool = False  # held back by its sync group only
    holding: bool = False  # has its addresses though not Active: a crash left them there


class Start(NamedTuple):
    """The interface is ready: take part. ``holding`` says that the addresses are there already."""

    holding: bool = False


class Stop(NamedTuple):
    """Resign. With ``keep_until_taken`` the addresses stay until another router has them, or LINGER_MAX is over."""

    keep_until_taken: bool = False


class Timeout(NamedTuple):
    """The clock has reached the deadline."""


class Received(NamedTuple):
    """A valid Advertisement for this VRID was received."""

    advertisement: Advertisement
    source: str


class TrackerUpdate(NamedTuple):
    """A tracked object was read: the change of priority that it asks for, or FAULT."""

    name: str
    reading: tracking.PriorityDelta


class Promote(NamedTuple):
    """The sync group becomes Active."""


class Demote(NamedTuple):
    """The sync group becomes Backup."""


Event = Union[Start, Stop, Timeout, Received, TrackerUpdate, Promote, Demote]
Step = Tuple[State, List[Effect]]


def step(router: VirtualRouter, state: State, event: Event, now: int) -> Step:
    """Return the state after an event, and the effects. An event that the table does not name has none."""
    transition = TRANSITIONS.get((state.name, type(event)))
    return transition(router, state, event, now) if transition else (state, [])


def priority_of(router: VirtualRouter, state: State) -> int:
    """Return the effective priority: the configured one and what is tracked."""
    return tracking.effective(router.priority, state.readings)


def reconfigured(router: VirtualRouter, state: State, now: int) -> State:
    """Return the state under other settings: its name stays, and no timer exceeds what they allow."""
    if state.name == ACTIVE and state.deadline is not None:
        return state._replace(active_interval=router.interval, deadline=min(state.deadline, now + router.interval))
    if state.name != BACKUP:
        return state
    if router.version == 2:  # version 3 keeps the interval of the Active router
        state = state._replace(active_interval=router.interval)
    return state._replace(deadline=now + active_down_interval(router, state))


def skew_time(router: VirtualRouter, state: State) -> int:
    """RFC 9568 section 6.1; version 2 counts in whole seconds whatever the interval (RFC 3768 section 6.1)."""
    unit = state.active_interval if router.version == 3 else SECOND
    return (256 - priority_of(router, state)) * unit // 256


def active_down_interval(router: VirtualRouter, state: State) -> int:
    """How long no Advertisement must arrive before the Active router counts as gone."""
    return MISSED * state.active_interval + skew_time(router, state)


def _start(router: VirtualRouter, state: State, event: Start, now: int) -> Step:
    return _enter(router, state._replace(started=True, holding=event.holding), now, "start")


def _enter(router: VirtualRouter, state: State, now: int, reason: str) -> Step:
    """RFC 9568 section 6.4.1, once all that is tracked has been read: keepalived waits for that too."""
    if not state.started or router.tracked - state.readings.keys():
        return state, []
    if tracking.in_fault(state.readings):
        moved, effects = _move(state._replace(deadline=None, holding=False), FAULT, reason)
        return moved, [*_resignation(state), *effects]
    if router.priority == tracking.OWNER:
        return _become_active(router, state, now, f"{reason}, as the address owner")
    moved, effects = _become_backup(router, state._replace(active_interval=router.interval), now, reason)
    return moved._replace(deadline=now + _first_down_interval(router, moved)), effects


def _first_down_interval(router: VirtualRouter, state: State) -> int:
    """A router that crashed with its addresses in place resumes after one interval plus skew: any other Active would
    have advertised by then. RFC 9568 would wait three intervals, in which another router would take over.
    """
    return router.interval + skew_time(router, state) if state.holding else active_down_interval(router, state)


def _tracker_updated_in_initialize(router: VirtualRouter, state: State, event: TrackerUpdate, now: int) -> Step:
    return _enter(router, _with_reading(state, event), now, f"{event.name} was read")


def _received_in_initialize(router: VirtualRouter, state: State, event: Received, now: int) -> Step:
    """A router that does not take part yet must not keep addresses that another router has taken."""
    if not state.holding or not event.advertisement.priority:
        return state, []
    return state._replace(holding=False), [RemoveAddresses()]


def _stop(router: VirtualRouter, state: State, event: Stop, now: int) -> Step:
    """RFC 9568 sections 6.4.2 and 6.4.3, Shutdown: only an Active router has something to give up."""
    gone = state._replace(deadline=None, started=False, wants_active=False, holding=False)
    if event.keep_until_taken and state.name == ACTIVE:
        unit = router.interval if router.version == 3 else SECOND
        moved, effects = _move(gone._replace(deadline=now + unit + LINGER_MAX), LEAVING, "stop")
        return moved, [Send(0), *effects]
    moved, effects = _move(gone, INITIALIZE, "stop")
    return moved, [*_resignation(state), *effects]


def _received_in_leaving(router: VirtualRouter, state: State, event: Received, now: int) -> Step:
    """Clients are still served until the new Active router has announced the addresses, just after it advertised."""
    if not event.advertisement.priority or state.deadline is None:
        return state, []
    return state._replace(deadline=min(state.deadline, now + min(LINGER_AFTER_SUCCESSOR, router.interval))), []


def _leaving_is_over(router: VirtualRouter, state: State, event: Timeout, now: int) -> Step:
    """Another router has the addresses, or none has taken them in time."""
    if state.deadline is None or now < state.deadline:
        return state, []
    return _stop(router, state, Stop(), now)


def _active_down_timer_fired(router: VirtualRouter, state: State, event: Event, now: int) -> Step:
    """RFC 9568 section 6.4.2: Active_Down_Timer fires."""
    if state.deadline is None or now < state.deadline:
        return state, []
    return _become_active(router, state, now, "no Advertisement was heard")


def _received_in_backup(router: VirtualRouter, state: State, event: Received, now: int) -> Step:
    """RFC 9568 section 6.4.2, an Advertisement is received. An equal priority never preempts."""
    theirs, ours = event.advertisement.priority, priority_of(router, state)
    if theirs == 0:  # the Active router resigns: no need to miss three Advertisements
        # A further one must not postpone the takeover, or whoever repeats it holds the addresses back for ever.
        skewed = now + skew_time(router, state)
        return state._replace(deadline=skewed if state.deadline is None else min(state.deadline, skewed)), []
    if state.holding:  # another router has taken the addresses
        after, effects = _received_in_backup(router, state._replace(holding=False), event, now)
        return after, [RemoveAddresses(), *effects]
    if theirs < ours and _preempts(router, state, now):
        return state, []  # discarded without touching the timer, which runs out soon
    # version 2 has discarded another interval before it came here (RFC 3768 section 7.1)
    if router.version == 3 and state.active_interval != event.advertisement.interval:
        state = state._replace(active_interval=event.advertisement.interval)
    deadline = now + active_down_interval(router, state)
    preempt_at = _preempt_at(router, state, theirs < ours, now)
    return state._replace(deadline=deadline, preempt_at=preempt_at, wants_active=False), []


def _preempts(router: VirtualRouter, state: State, now: int) -> bool:
    """RFC 9568 section 6.1: the address owner preempts whatever Preempt_Mode says. The delay is keepalived's."""
    if router.priority == tracking.OWNER:
        return True
    if router.preempt_delay and (state.preempt_at is None or now < state.preempt_at):
        return False
    return router.preempt


def _preempt_at(router: VirtualRouter, state: State, lower: bool, now: int) -> Optional[int]:
    """The delay begins with the first Advertisement of lower priority, and ends with one that is not."""
    if not router.preempt_delay or not lower:
        return None
    return now + router.preempt_delay if state.preempt_at is None else state.preempt_at


def _advertise(router: VirtualRouter, state: State, event: Event, now: int) -> Step:
    """RFC 9568 section 6.4.3: Adver_Timer fires."""
    if state.deadline is None or now < state.deadline:
        return state, []
    return state._replace(deadline=now + router.interval), [Send(priority_of(router, state))]


def _received_in_active(router: VirtualRouter, state: State, event: Received, now: int) -> Step:
    """RFC 9568 section 6.4.3, an Advertisement is received."""
    theirs, ours = event.advertisement.priority, priority_of(router, state)
    if theirs == 0:  # another router resigns: advertise to the Backups at once
        return state._replace(deadline=now + router.interval), [Send(ours)]
    rival, own = (theirs, _number(event.source)), (ours, _number(router.source))
    if rival == own:  # a loop in the link returns our own messages, and would return each answer (as keepalived)
        return state, []
    if rival > own:
        interval = event.advertisement.interval if router.version == 3 else router.interval
        reason = f"Advertisement with priority {theirs} from {event.source}"
        moved, effects = _become_backup(router, state._replace(active_interval=interval), now, reason)
        # One last Advertisement, which the winner answers with its announcement: ours may have been the latest that
        # other hosts received, and they would go on sending to us (keepalived's vrrp_higher_prio_send_advert).
        return moved, [Send(ours), RemoveAddresses(), *effects]
    # The other router must learn at once that it loses (RFC 9568; keepalived does so in version 2 as well), and all
    # hosts that its announcement was wrong.
    return state, [Send(ours), Announce()]


def _tracker_updated(router: VirtualRouter, state: State, event: TrackerUpdate, now: int) -> Step:
    """A priority takes effect with the next Advertisement, a FAULT at once (keepalived)."""
    noted = _with_reading(state, event)
    if not tracking.in_fault(noted.readings):
        return noted, []
    moved, effects = _move(
        noted._replace(deadline=None, wants_active=False, holding=False), FAULT, f"{event.name} failed"
    )
    return moved, [*_resignation(state), *effects]


def _tracker_updated_in_fault(router: VirtualRouter, state: State, event: TrackerUpdate, now: int) -> Step:
    return _enter(router, _with_reading(state, event), now, f"{event.name} is well again")


def _promote(router: VirtualRouter, state: State, event: Event, now: int) -> Step:
    return _become_active(router, state, now, "its sync group becomes Active")


def _demote(router: VirtualRouter, state: State, event: Event, now: int) -> Step:
    moved, effects = _become_backup(
        router, state._replace(active_interval=router.interval), now, "its sync group becomes Backup"
    )
    return moved, [RemoveAddresses(), *effects]


def _become_active(router: VirtualRouter, state: State, now: int, reason: str) -> Step:
    """RFC 9568 sections 6.4.1 and 6.4.2: advertise, take the addresses, announce them, set Adver_Timer."""
    state = state._replace(
        deadline=now + router.interval, active_interval=router.interval, wants_active=False, holding=False
    )
    moved, effects = _move(state, ACTIVE, reason)
    return moved, [Send(priority_of(router, state)), AddAddresses(), Announce(), *effects]


def _become_backup(router: VirtualRouter, state: State, now: int, reason: str) -> Step:
    deadline = now + active_down_interval(router, state)
    return _move(state._replace(deadline=deadline, preempt_at=None, wants_active=False), BACKUP, reason)


def _move(state: State, name: str, reason: str) -> Step:
    return state._replace(name=name), [StateChanged(state.name, name, reason)] if name != state.name else []


def _resignation(state: State) -> List[Effect]:
    """Priority 0 first, so that the next router takes over at once; RFC 9568 section 6.4.3, Shutdown.

    One that a crash left with its addresses has heard of no other Active since then. The others still wait for it.
    """
    if state.name == ACTIVE or state.holding:
        return [Send(0), RemoveAddresses()]
    return [RemoveAddresses()] if state.name == LEAVING else []


def _with_reading(state: State, event: TrackerUpdate) -> State:
    return state._replace(readings={**state.readings, event.name: event.reading})


@lru_cache(maxsize=1024)
def _number(address: str) -> int:
    """Addresses are compared as numbers in network byte order, RFC 9568 section 6.4.3."""
    return int(ipaddress.ip_address(address))


Transition = Callable[..., Step]

TRANSITIONS: Dict[Tuple[str, Type[Event]], Transition] = {
    (INITIALIZE, Start): _start,
    (INITIALIZE, TrackerUpdate): _tracker_updated_in_initialize,
    (INITIALIZE, Received): _received_in_initialize,
    (INITIALIZE, Stop): _stop,
    (BACKUP, Timeout): _active_down_timer_fired,
    (BACKUP, Received): _received_in_backup,
    (BACKUP, TrackerUpdate): _tracker_updated,
    (BACKUP, Promote): _promote,
    (BACKUP, Stop): _stop,
    (ACTIVE, Timeout): _advertise,
    (ACTIVE, Received): _received_in_active,
    (ACTIVE, TrackerUpdate): _tracker_updated,
    (ACTIVE, Demote): _demote,
    (ACTIVE, Stop): _stop,
    (FAULT, TrackerUpdate): _tracker_updated_in_fault,
    (FAULT, Stop): _stop,
    (LEAVING, Received): _received_in_leaving,
    (LEAVING, Timeout): _leaving_is_over,
    (LEAVING, Stop): _stop,
}
