# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A planned handover of VIPs: whose router stops, whose starts, and what follows from it. Pure.

A router that stops resigns, and the next in priority takes over at once. With preemption a member with a higher
priority would take the VIPs back as soon as its router ran again, so it is held back: its router stays stopped. Without
preemption it starts again and becomes Backup. A router has all VIPs of its host. So in a cluster, where members carry
different VIPs, others than those that are handed over may move as well.

Where all members announce the VIPs by BGP there is none to hand them over to: one of them leaves, and the others serve.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ..._shared.held_back import PATHS, SWITCHOVER
from . import draining
from .firewalls import hearing
from .members import BGP, Layout, Member
from .steps import Steps, delays, give_back, holder, holders_after, inverted, probe, several, unable, unfit

WHAT = "A switchover"
BACK = "-e switchover_back=true, the next run of onprem.lb.site, or a reboot of it"


def steps(given: List[Dict[str, Any]], to: str = "", back: bool = False, leaving: str = "", wait: int = 0) -> Steps:
    """Return the steps of a switchover.

    :param given: the hosts of the play, as `members` describes them
    :param to: the member that is to hold the VIPs; '' for the second in priority
    :param back: end an earlier switchover instead
    :param leaving: the member that is to announce its VIPs by BGP no more
    :param wait: for how many seconds at most its connections are waited for
    """
    every = hearing(given)
    wanted = {"switchover_back": back, f"switchover_to ({to})": to, f"switchover_from ({leaving})": leaving}
    chosen = [name for name, is_set in wanted.items() if is_set]
    if len(chosen) > 1:
        return Steps([f"{' and '.join(chosen[:2])} are both set: leave one of them out."])
    if back:
        return _merged([_give_back(layout) for layout in every])
    name = to or leaving
    choice = [layout for layout in every if name in layout.names] if name else every
    if not choice:
        known = ", ".join(name for layout in every for name in layout.names)
        variable = "switchover_to" if to else "switchover_from"
        return Steps([f"{variable} is {name!r}, which is not a member: choose one of {known}."])
    if len(choice) > 1:
        return Steps([f"There are {several(choice)}: name the member that takes over with -e switchover_to."])
    if choice[0].reach == BGP:
        return _leave(choice[0], leaving, wait)
    if leaving:
        return Steps([f"{leaving} has its VIPs by VRRP: name the member that takes over with -e switchover_to."])
    return _hand_over(choice[0], to)


def _leave(layout: Layout, name: str, wait: int) -> Steps:
    if not name:
        names = ", ".join(layout.names)
        return Steps([f"Each of {names} announces its VIPs: name the one that leaves with -e switchover_from."])
    faults = draining.unfit(layout, WHAT)
    if faults:
        return Steps(faults)
    member = next(each for each in layout.members if each.name == name)
    if member.held_back:
        return Steps([], [f"{name} is held back already: nothing to do."])
    found = draining.leave(layout, member, WHAT, wait)
    found = found._replace(**draining.record(SWITCHOVER, layout, member))
    return found._replace(lines=[*found.lines, f"{name} is held back until {BACK} ends that."] if found.leave else [])


def _hand_over(layout: Layout, to: str) -> Steps:
    faults = unfit(layout, WHAT)
    target = None if faults else _target(layout, to, faults)
    if target is None:
        return Steps(faults)
    vips = [vip for vip in layout.configured if target.election(vip)]
    if vips and set(vips) <= {*target.held}:
        return Steps([], [f"{target.name} already holds {', '.join(vips)}: nothing to do."])
    lacking = [f"{target.name} cannot take over {', '.join(layout.configured)}, which its configuration lacks."]
    broken = target.seen.get("would_not_start", [])
    starts = [f"{target.name} could not take over: {' '.join(broken)}"] if broken and target.held_back else []
    faults = [*unable(target), *starts] if vips else lacking
    if faults:
        return Steps(faults)
    found = _moves(layout, target, vips)
    return found._replace(lines=[*found.lines, *(f"{target.name} takes over as it runs now. {why}" for why in broken)])


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


def _moves(layout: Layout, target: Member, vips: List[str]) -> Steps:
    """Return the steps after which a member holds these VIPs."""
    others = [member for member in layout.members if member is not target]
    preempts = bool(target.held_back) and all(target.election(vip)["preempt"] for vip in vips)
    higher = [member for member in others if _outranks(member, target, vips)]
    moved = [vip for vip in vips if vip not in target.held]
    equal = [member for member in others if member not in higher and _equals(member, target, moved)]
    lower = [member for member in others if member not in higher + equal]
    holding = [member for member in others if {*vips} & {*member.held} and not (preempts and member in lower)]
    rivals = higher + [member for member in equal if {*member.addresses} <= {*vips}]
    stop = _names(member for member in others if member in rivals + holding and not member.held_back)
    hold = _names(member for member in higher if any(member.election(vip).get("preempt") for vip in vips))
    start = [target.name] if target.held_back else []
    start += _names(member for member in others if member.held_back and member not in higher)
    after = holders_after(layout, hold, [name for name in stop if name not in hold])
    orphans = [vip for vip in layout.configured if vip not in after and layout.holders(vip)]
    if orphans:
        without = f"Without {', '.join(stop)}, whose routers would stop, nobody could hold"
        return Steps([f"{without} {', '.join(orphans)}: choose another member."])
    moving = {vip: name for vip, name in after.items() if layout.holders(vip) != [name]}
    expected = {target.name: vips}
    for vip, name in moving.items():
        if name != target.name:
            expected.setdefault(name, []).append(vip)
    return Steps(
        faults=[],
        lines=_lines(layout, target, moving, (stop, hold)),
        stop=stop,
        delays=delays(layout, stop),
        hold=[name for name in stop if name in hold],
        start=start,
        expected=expected,
        others=_others(layout, {vip: name for vip, name in moving.items() if vip not in vips}, hold),
        probe=probe(layout, next(vip for vip in vips if vip in moving), target.name),
        path=PATHS[SWITCHOVER],
        record={"to": target.name},
    )


def _others(layout: Layout, moving: Dict[str, str], hold: Sequence[str]) -> Dict[str, List[str]]:
    """Return the VIPs that each member may have in place of the one that is expected to: nobody has asked for that one.

    :param moving: who is expected to take each of them
    :param hold: the members whose routers stay stopped
    """
    fit = [member.name for member in layout.members if not (member.seen["unable"] or member.name in hold)]
    return inverted(
        {vip: [each for each in layout.by_priority(vip) if each in fit and each != moving[vip]] for vip in moving}
    )


def _lines(
    layout: Layout, target: Member, moving: Dict[str, str], stopped: Tuple[Sequence[str], Sequence[str]]
) -> List[str]:
    """Say what moves, and what becomes of the members.

    :param stopped: the members whose routers stop, and those that are held back
    """
    stop, hold = stopped
    foreign = [vip for vip in layout.configured if not target.election(vip) and vip not in moving]
    return [
        *(f"{vip} moves from {holder(layout, vip)} to {name}." for vip, name in moving.items()),
        *(f"{vip} stays with {holder(layout, vip)}: {target.name} does not carry it." for vip in foreign),
        *(
            f"{name} is held back: with preemption it would take the VIPs at once, so its router stays stopped. "
            f"It starts on its own once nobody has held one of its VIPs for a while. {BACK} ends that."
            for name in hold
        ),
        *(f"The router of {name} starts again, and {target.name} keeps the VIPs." for name in stop if name not in hold),
    ]


def _give_back(layout: Layout) -> Steps:
    """Return the steps that end an earlier switchover, for the members that can be reached."""
    others = [f"{member.fault} If it is held back, it stays so." for member in layout.members if member.problem]
    others += [f"{name} is outside --limit. If it is held back, it stays so." for name in layout.left_out]
    held_back = [member for member in layout.read if draining.is_away(member)]
    if not held_back:
        return Steps([], [f"No member of {', '.join(layout.names)} is held back: nothing to do.", *others])
    by_bgp = layout.reach == BGP
    found = draining.back(held_back) if by_bgp else give_back(layout, held_back)
    return found._replace(lines=[*found.lines, *others])


def _merged(every: List[Steps]) -> Steps:
    return Steps(
        faults=[fault for each in every for fault in each.faults],
        lines=[line for each in every for line in each.lines],
        start=[name for each in every for name in each.start],
        expected={name: vips for each in every for name, vips in each.expected.items()},
        probe=next((each.probe for each in every if each.probe), {}),
        announce={name: commands for each in every for name, commands in each.announce.items()},
    )


def _outranks(member: Member, target: Member, vips: List[str]) -> bool:
    """Whether a member would win an election for one of these VIPs against the target."""
    return any(lead > 0 for lead in _leads(member, target, vips))


def _equals(member: Member, target: Member, vips: List[str]) -> bool:
    """Whether a member might win one, as their priorities are equal: whose Skew_Time ends first then holds the VIP."""
    return 0 in _leads(member, target, vips)


def _leads(member: Member, target: Member, vips: List[str]) -> List[int]:
    """Return by how much a member's priority exceeds the target's, for each of these VIPs that both carry."""
    shared = [vip for vip in vips if member.election(vip)]
    return [member.election(vip)["priority"] - target.election(vip)["priority"] for vip in shared]


def _names(members: Iterable[Member]) -> List[str]:
    return [member.name for member in members]
