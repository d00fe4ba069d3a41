# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A planned handover of a pair's VIPs: whose router stops, whose starts, and what follows from it. Pure.

A router that stops resigns, and the next in priority takes over at once. With preemption a member with a higher
priority would take the VIPs back as soon as its router ran again, so it is held back: its router stays stopped. Without
preemption it starts again and becomes Backup.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..._shared.held_back import PATHS, SWITCHOVER
from .members import Layout, Member, layouts
from .steps import Steps, give_back, holder, probe, unable, unfit

BACK = "-e switchover_back=true, the next run of onprem.lb.site, or a reboot of it"


def steps(given: List[Dict[str, Any]], to: str = "", back: bool = False) -> Steps:
    """Return the steps of a switchover.

    :param given: the hosts of the play, as `members` describes them
    :param to: the member that is to hold the VIPs; '' for the second in priority
    :param back: end an earlier switchover instead
    """
    every = layouts(given)
    if back and to:
        return Steps([f"switchover_back and switchover_to ({to}) are both set: leave one of them out."])
    if back:
        return _merged([_give_back(layout) for layout in every])
    choice = [layout for layout in every if to in layout.names] if to else every
    if not choice:
        known = ", ".join(name for layout in every for name in layout.names)
        return Steps([f"switchover_to is {to!r}, which is no member: choose one of {known}."])
    if len(choice) > 1:
        pairs = " and ".join(", ".join(layout.names) for layout in choice)
        return Steps([f"There are several pairs ({pairs}): name the member that takes over with -e switchover_to."])
    return _hand_over(choice[0], to)


def _hand_over(layout: Layout, to: str) -> Steps:
    faults = unfit(layout, "A switchover")
    target = None if faults else _target(layout, to, faults)
    if target is None:
        return Steps(faults)
    if set(layout.configured) <= {*target.held}:
        return Steps([], [f"{target.name} holds {_all(layout)} already: nothing to do."])
    faults = _refusals(layout, target)
    return Steps(faults) if faults else _moves(layout, target)


def _target(layout: Layout, to: str, faults: List[str]) -> Optional[Member]:
    """Return the member that is to take over, or append why there is none."""
    by_name = {member.name: member for member in layout.members}
    if to:
        return by_name[to]
    orders = {tuple(layout.by_priority(vip)) for vip in layout.configured}
    order = min(orders)
    if len(orders) > 1 or len(order) < 2:
        faults.append("The VIPs prefer different members: name the one that takes over with -e switchover_to.")
        return None
    return by_name[order[1]]


def _refusals(layout: Layout, target: Member) -> List[str]:
    lacking = [vip for vip in layout.configured if not target.election(vip)]
    if lacking:
        return [f"{target.name} cannot take over {', '.join(lacking)}, which its configuration lacks."]
    return unable(target)


def _moves(layout: Layout, target: Member) -> Steps:
    others = [member for member in layout.members if member is not target]
    preempts = bool(target.held_back) and all(target.election(vip)["preempt"] for vip in layout.configured)
    higher = [member for member in others if _outranks(layout, member, target)]
    holding = [member for member in others if member.held and not (preempts and member not in higher)]
    stop = [member for member in others if member in higher + holding and not member.held_back]
    hold = [member for member in higher if any(member.election(vip)["preempt"] for vip in layout.configured)]
    start = [target] if target.held_back else []
    start += [member for member in others if member.held_back and member not in higher]
    moving = [vip for vip in layout.configured if vip not in target.held]
    lines = [f"{vip} moves from {holder(layout, vip)} to {target.name}." for vip in moving]
    lines += [
        f"{member.name} is held back: it preempts (pair_preempt) and would take the VIPs at once, so its router stays "
        f"stopped. Meanwhile it could not take over from {target.name}. {BACK} ends that."
        for member in hold
    ]
    lines += [
        f"The router of {member.name} starts again, and {target.name} keeps the VIPs."
        for member in stop
        if member not in hold
    ]
    return Steps(
        faults=[],
        lines=lines,
        stop=_names(stop),
        hold=[name for name in _names(stop) if name in _names(hold)],
        start=_names(start),
        expected={target.name: layout.configured},
        probe=probe(layout, moving[0], target.name),
        path=PATHS[SWITCHOVER],
        record={"to": target.name},
    )


def _give_back(layout: Layout) -> Steps:
    held_back = [member for member in layout.read if member.held_back]
    if not held_back:
        return Steps([], [f"No member of {', '.join(layout.names)} is held back: nothing to do."])
    return give_back(layout, held_back)


def _merged(every: List[Steps]) -> Steps:
    return Steps(
        faults=[fault for each in every for fault in each.faults],
        lines=[line for each in every for line in each.lines],
        start=[name for each in every for name in each.start],
        expected={name: vips for each in every for name, vips in each.expected.items()},
        probe=next((each.probe for each in every if each.probe), {}),
    )


def _outranks(layout: Layout, member: Member, target: Member) -> bool:
    """Whether a member would win an election against the target."""
    return any(
        member.election(vip) and member.election(vip)["priority"] > target.election(vip)["priority"]
        for vip in layout.configured
    )


def _all(layout: Layout) -> str:
    return ", ".join(layout.configured)


def _names(members: List[Member]) -> List[str]:
    return [member.name for member in members]
