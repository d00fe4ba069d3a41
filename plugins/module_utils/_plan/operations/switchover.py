# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A planned handover of a pair's VIPs: whose router stops, whose starts, and what follows from it. Pure.

A router that stops resigns, and the next in priority takes over at once. With preemption a member with a higher
priority would take the VIPs back as soon as its router ran again, so it is held back: its router stays stopped. Without
preemption it starts again and becomes Backup.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from .members import Layout, Member, layouts

INTERVAL_MS = 5  # of the probe
BACK = "-e switchover_back=true, the next run of onprem.lb.site, or a reboot of it"


class Steps(NamedTuple):
    """What is to be done. With faults, or when there is nothing to do, the rest is empty."""

    faults: List[str]
    lines: List[str] = []  # what it does, in words
    stop: List[str] = []  # the members whose routers stop, without those that are stopped already
    hold: List[str] = []  # those of them that stay stopped
    start: List[str] = []  # the members whose routers start, after an earlier switchover
    expected: Dict[str, List[str]] = {}  # the VIPs that each member is to hold in the end
    probe: Dict[str, Any] = {}  # the ``address``, ``port``, ``members`` and ``holder`` for a measurement


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
    faults = _unfit(layout)
    target = None if faults else _target(layout, to, faults)
    if target is None:
        return Steps(faults)
    if set(layout.configured) <= {*target.held}:
        return Steps([], [f"{target.name} holds {_all(layout)} already: nothing to do."])
    faults = _refusals(layout, target)
    return Steps(faults) if faults else _moves(layout, target)


def _unfit(layout: Layout) -> List[str]:
    """Say why no switchover is possible in this pair."""
    if len(layout.names) < 2:
        return [f"{layout.names[0]} is the only member: there is none to hand the VIPs over to."]
    if layout.left_out:
        return [f"{', '.join(layout.left_out)} is outside --limit, and a switchover needs all members: leave it out."]
    unread = [member.fault for member in layout.members if member.problem]
    if unread:
        return [f"A switchover needs all members. {' '.join(unread)}"]
    return [] if layout.configured else ["The pair has no VIP: run onprem.lb.site first."]


def _target(layout: Layout, to: str, faults: List[str]) -> Optional[Member]:
    """Return the member that is to take over, or append why there is none."""
    by_name = {member.name: member for member in layout.members}
    if to:
        return by_name[to]
    orders = {tuple(_by_priority(layout, vip)) for vip in layout.configured}
    order = min(orders)
    if len(orders) > 1 or len(order) < 2:
        faults.append("The VIPs prefer different members: name the one that takes over with -e switchover_to.")
        return None
    return by_name[order[1]]


def _by_priority(layout: Layout, vip: str) -> List[str]:
    ranked = [(-member.election(vip)["priority"], member.name) for member in layout.members if member.election(vip)]
    return [name for _priority, name in sorted(ranked)]


def _refusals(layout: Layout, target: Member) -> List[str]:
    lacking = [vip for vip in layout.configured if not target.election(vip)]
    if lacking:
        return [f"{target.name} cannot take over {', '.join(lacking)}, which its configuration lacks."]
    return _unable(target)


def _unable(member: Member) -> List[str]:
    """Say why a member could not take over, once its router runs if a switchover holds it back."""
    reasons = member.seen["unable"]
    return [f"{member.name} could not take over: {' '.join(reasons)}"] if reasons else []


def _moves(layout: Layout, target: Member) -> Steps:
    others = [member for member in layout.members if member is not target]
    preempts = bool(target.switchover) and all(target.election(vip)["preempt"] for vip in layout.configured)
    higher = [member for member in others if _outranks(layout, member, target)]
    holding = [member for member in others if member.held and not (preempts and member not in higher)]
    stop = [member for member in others if member in higher + holding and not member.switchover]
    hold = [member for member in higher if any(member.election(vip)["preempt"] for vip in layout.configured)]
    start = [target] if target.switchover else []
    start += [member for member in others if member.switchover and member not in higher]
    moving = [vip for vip in layout.configured if vip not in target.held]
    lines = [f"{vip} moves from {_holder(layout, vip)} to {target.name}." for vip in moving]
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
        probe=_probe(layout, moving[0], target.name),
    )


def _probe(layout: Layout, vip: str, to: str) -> Dict[str, Any]:
    """Return how to measure the move of a VIP; {} if nothing answers at it."""
    found = [member for member in layout.members if member.name == to and member.seen["ports"]]
    members = [{"name": member.name, "macs": member.seen["macs"]} for member in layout.members]
    return {"address": vip, "port": found[0].seen["ports"][0], "members": members, "holder": to} if found else {}


def _give_back(layout: Layout) -> Steps:
    held_back = [member for member in layout.read if member.switchover]
    if not held_back:
        return Steps([], [f"No member of {', '.join(layout.names)} is held back: nothing to do."])
    start = _names(held_back)
    faults = [fault for member in held_back for fault in _unable(member)]
    first = {vip: _by_priority(layout, vip)[0] for vip in layout.configured}
    moving = [vip for vip, name in first.items() if name in start]
    lines = [f"The router of {name} starts again." for name in start]
    lines += [f"{vip} moves from {_holder(layout, vip)} to {first[vip]}." for vip in moving]
    expected = {name: [vip for vip in moving if first[vip] == name] for name in start}
    if faults:
        return Steps(faults)
    probe = _probe(layout, moving[0], first[moving[0]]) if moving else {}
    return Steps([], lines, start=start, expected=expected, probe=probe)


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


def _holder(layout: Layout, vip: str) -> str:
    return " and ".join(layout.holders(vip)) or "nobody"


def _all(layout: Layout) -> str:
    return ", ".join(layout.configured)


def _names(members: List[Member]) -> List[str]:
    return [member.name for member in members]


def measured(probe: Dict[str, Any], seen: Dict[str, Any]) -> str:
    """Say what the probe has measured.

    :param probe: as the steps have it
    :param seen: as `vip_probe` returns it
    """
    vip, move = probe["address"], seen["takeover"]
    if seen["holder_after"] != probe["holder"]:
        return f"The probe did not see {vip} move to {probe['holder']}."
    if seen["holder_before"] == probe["holder"]:
        return f"{vip} had moved before the probe began: nothing was measured."
    return (
        f"{vip} was gone for {move['outage_ms']:.0f} ms: of {seen['tried']} connections, one every {INTERVAL_MS} ms, "
        f"{seen['failed_attempts']} failed, and for {move['response_gap_ms']:.0f} ms at most none was answered."
    )
