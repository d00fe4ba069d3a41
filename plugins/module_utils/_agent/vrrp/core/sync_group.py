# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A sync group: Virtual Routers that are Active together or not at all, as keepalived defines it. Pure.

- One in FAULT takes all of them there; they leave it together.
- They become Active only when each of them would: a member whose timer has expired waits for the others.
- When one becomes Backup, all of them do.
"""

from __future__ import annotations

from typing import List, Sequence, Tuple

from . import machine, tracking
from .effects import Effect

GROUP = "the sync group"  # what the others' FAULT is called among a member's readings

Effects = List[Tuple[int, Effect]]


def step(
    routers: Sequence[machine.VirtualRouter], states: Sequence[machine.State], at: int, event: machine.Event, now: int
) -> Tuple[List[machine.State], Effects]:
    """Return the states of all members after an event of one, and each effect with the number of its member."""
    after = list(states)
    effects: Effects = []
    waiting: List[Tuple[int, machine.Event]] = [(at, event)]
    while waiting:
        member, what = waiting.pop(0)
        before = after[member]
        if isinstance(what, machine.Timeout) and _is_held_back(before, member, after, now):
            deadline = now + machine.active_down_interval(routers[member], before)
            after[member] = before._replace(wants_active=True, deadline=deadline)
            continue
        after[member], actions = machine.step(routers[member], before, what, now)
        effects += [(member, effect) for effect in actions]
        waiting += _consequences(before, member, after)
    return after, effects


def _is_held_back(state: machine.State, member: int, states: Sequence[machine.State], now: int) -> bool:
    if state.name != machine.BACKUP or state.deadline is None or now < state.deadline:
        return False
    others = [other for index, other in enumerate(states) if index != member]
    return not all(other.name == machine.ACTIVE or other.wants_active for other in others)


def _consequences(
    before: machine.State, member: int, states: Sequence[machine.State]
) -> List[Tuple[int, machine.Event]]:
    """What the change of one member means for the others."""
    found: List[Tuple[int, machine.Event]] = []
    faulty = [tracking.in_fault({**state.readings, GROUP: 0}) for state in states]
    count = sum(faulty)
    for other, state in enumerate(states):
        reading = tracking.FAULT if count > faulty[other] else 0
        if state.readings.get(GROUP, 0) != reading:
            found.append((other, machine.TrackerUpdate(GROUP, reading)))
    moved = states[member].name if states[member].name != before.name else ""
    others = [other for other in range(len(states)) if other != member]
    if moved == machine.ACTIVE:
        found += [(other, machine.Promote()) for other in others if states[other].name == machine.BACKUP]
    elif moved == machine.BACKUP:
        found += [(other, machine.Demote()) for other in others if states[other].name == machine.ACTIVE]
    return found
