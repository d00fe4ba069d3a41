# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a switchover and a maintenance do to the routers of members, and how a probe measures it. Pure."""

from __future__ import annotations

from typing import Any, Collection, Dict, List, NamedTuple, Sequence, Set

from .members import Layout, Member

INTERVAL_MS = 5  # of the probe
FORMER = (
    "is a member according to the others, but not in the inventory: its router may run, and would hold the VIPs as "
    "well. Run onprem.lb.site first, which stops it, or put it back into the inventory."
)


class Steps(NamedTuple):
    """What is to be done. With faults, or when there is nothing to do, the rest is empty."""

    faults: List[str]
    lines: List[str] = []  # what it does, in words
    stop: List[str] = []  # the members whose routers stop, without those that are stopped already
    hold: List[str] = []  # those of them that stay stopped
    delays: Dict[str, int] = {}  # after how many seconds each of them stops, so that each VIP moves once
    start: List[str] = []  # the members whose routers start again
    expected: Dict[str, List[str]] = {}  # the VIPs that each may end with; one of those takes a VIP
    others: Dict[str, List[str]] = {}  # those that each other one may end with as well, if it advertises first
    probe: Dict[str, Any] = {}  # the ``address``, ``port``, ``members`` and ``holder`` for a measurement
    path: str = ""  # of the record on a member that is held back
    record: Dict[str, str] = {}  # what it has, besides since when and by whom
    lasts: bool = False  # whether the routers stay stopped after a reboot
    leave: str = ""  # the member that announces its VIPs by BGP no more
    wait: int = 0  # for how many seconds at most its connections are waited for
    frr: Dict[str, List[str]] = {}  # the commands for its FRR, as `draining.commands` has them
    announce: Dict[str, Dict[str, List[str]]] = {}  # those for the members that announce theirs again


def give_back(layout: Layout, held_back: List[Member]) -> Steps:
    """Return the steps after which members that are held back take part again.

    One that could not take over, or cannot be reached, is named, and does not keep the others from it.
    """
    unable_ones = [member for member in held_back if unable(member)]
    faults = [fault for member in unable_ones for fault in unable(member)]
    able = [member for member in held_back if member not in unable_ones]
    if not able:
        return Steps(faults)
    start = [member.name for member in able]
    without = [member.name for member in unable_ones]
    expected = {member.name: returning(layout, member, without) for member in able}
    moving = {vip: name for name, vips in expected.items() for vip in vips}
    lines = [f"The router of {name} starts again." for name in start]
    lines += [f"{vip} moves from {holder(layout, vip)} to {name}." for vip, name in moving.items()]
    lines += [f"{fault} It stays held back." for fault in faults]
    measured_at = next(iter(moving.items()), None)
    return Steps([], lines, start=start, expected=expected, probe=probe(layout, *measured_at) if measured_at else {})


def returning(layout: Layout, member: Member, without: Collection[str] = ()) -> List[str]:
    """Return the VIPs that a member takes over as soon as its router runs.

    :param without: members whose routers stay stopped
    """
    found = []
    for vip in layout.configured:
        first = next((name for name in layout.by_priority(vip) if name not in without), "")
        holders = layout.holders(vip)
        takes = not holders or layout.preempts(member.name, vip, holders)
        if first == member.name and takes and vip not in member.held:
            found.append(vip)
    return found


def holders_after(layout: Layout, stopped: Collection[str], restarted: Collection[str]) -> Dict[str, str]:
    """Return who holds each VIP once the routers of some members are stopped, and all others run.

    A VIP that nobody could hold is left out.

    :param restarted: members whose routers stop as well, and start again when others have taken over
    """
    unfit_ones = {member.name for member in layout.members if member.seen["unable"]} | {*stopped}
    found = {}
    for vip in layout.configured:
        able = [name for name in layout.by_priority(vip) if name not in unfit_ones]
        holders = [name for name in layout.holders(vip) if name not in {*stopped, *restarted}]
        if able and (not holders or layout.preempts(able[0], vip, holders)):
            found[vip] = next((name for name in able if name not in restarted), able[0])
        elif holders:
            found[vip] = holders[0]
    return found


def delays(layout: Layout, stop: Sequence[str]) -> Dict[str, int]:
    """Return after how many seconds each of these routers stops, so that each VIP moves once.

    Holders come after the others, and after a router that starts at the same time. Who would take over from another
    holder stops before it; those that would take over from each other stop at one time.
    """
    found = {member.name: 0 for member in layout.members if member.name in stop and not member.held}
    left = [member for member in layout.members if member.name in stop and member.held]
    for second in range(1, len(left) + 1):
        names = {member.name for member in left}
        free = [member for member in left if not names & _next_holders(layout, member, found)]
        found.update(dict.fromkeys((member.name for member in free or left), second))
        left = [member for member in left if member.name not in found]
    return found


def _next_holders(layout: Layout, member: Member, stopped: Collection[str]) -> Set[str]:
    """Return who takes the VIPs of a member over when its router stops."""
    gone = {member.name, *stopped, *(each.name for each in layout.members if each.seen["unable"])}
    orders = ([name for name in layout.by_priority(vip) if name not in gone] for vip in member.held)
    return {order[0] for order in orders if order}


def unable(member: Member) -> List[str]:
    """Say why a member could not take over, once its router runs if it is held back."""
    reasons = [*member.seen["unable"], *member.unloaded, *filter(None, [member.closed])]
    return [f"{member.name} could not take over: {' '.join(reasons)}"] if reasons else []


def unfit(layout: Layout, what: str) -> List[str]:
    """Say why the VIPs of these members cannot be handed over.

    :param what: what needs that, such as ``A switchover``
    """
    if len(layout.names) < 2:
        return [f"{layout.names[0]} is the only member: there is none to hand the VIPs over to."]
    no_vip = [] if layout.configured else [f"{', '.join(layout.names)} have no VIP: run onprem.lb.site first."]
    return incomplete(layout, what) or no_vip


def several(every: Sequence[Layout]) -> str:
    """Name pairs and clusters of which one is to be chosen."""
    return f"several pairs or clusters ({' and '.join(', '.join(layout.names) for layout in every)})"


def incomplete(layout: Layout, what: str) -> List[str]:
    """Say which members are missing for what needs all of them, and which the inventory lacks."""
    return missing(layout, what) or [*(f"{name} {FORMER}" for name in layout.former), *_strange(layout)]


def missing(layout: Layout, what: str) -> List[str]:
    """Say which members are missing for what needs all of them."""
    if layout.left_out:
        names = ", ".join(layout.left_out)
        return [f"{names} is outside --limit, and {what.lower()} needs all members: run it without --limit."]
    unread = [member.fault for member in layout.members if member.problem]
    return [f"{what} needs all members. {' '.join(unread)}"] if unread else []


def _strange(layout: Layout) -> List[str]:
    """Say which VIPs are held by a host that is not a member."""
    return [
        f"{vip} is held by another host ({mac}), which is not a member in the inventory: add it there, or stop its "
        "router."
        for vip in layout.every_vip
        for mac in layout.strangers(vip)
    ]


def holder(layout: Layout, vip: str) -> str:
    return " and ".join(layout.holders(vip)) or "nobody"


def probe(layout: Layout, vip: str, to: str) -> Dict[str, Any]:
    """Return how to measure the move of a VIP; {} if nothing answers at it."""
    found = [port for member in layout.members if member.name == to for port in member.ports_of(vip)]
    members = [{"name": member.name, "macs": member.seen["macs"]} for member in layout.read]
    return {"address": vip, "port": found[0], "members": members, "holder": to} if found else {}


def inverted(given: Dict[str, List[str]]) -> Dict[str, List[str]]:
    """Return the VIPs of each member from the members of each VIP, and the reverse."""
    found: Dict[str, List[str]] = {}
    for key, names in given.items():
        for name in names:
            found.setdefault(name, []).append(key)
    return found


def missed(expected: Dict[str, List[str]], ends: Dict[str, Dict[str, Any]]) -> List[str]:
    """Return the VIPs that none of the members which might take them holds in the end.

    :param expected: as the steps have it
    :param ends: what each member's wait for that returned; one that did not wait is not judged
    """
    vain = {name: end for name, end in ends.items() if end.get("failed") or end.get("unreachable")}
    held = {each["address"] for end in vain.values() for each in end.get("held", [])}
    return [vip for vip, names in inverted(expected).items() if {*names} <= {*vain} and vip not in held]


def elsewhere(done: Dict[str, Any], seen: Dict[str, Dict[str, Any]]) -> Dict[str, str]:
    """Return the VIPs that another one holds than those that were waited for, each with a sentence that says so.

    Skew_Time is 4 ms shorter for each step of the priority, and a busy host may advertise later than that. Without
    preemption the VIP then stays with a member of a lower priority.

    :param done: the steps
    :param seen: what each of the others has been read with; nothing if it was not
    """
    found = {}
    for name, vips in done["others"].items():
        held = [each["address"] for each in seen.get(name, {}).get("held", [])]
        for vip in (vip for vip in vips if vip in held):
            late = " and ".join(each for each, theirs in done["expected"].items() if vip in theirs)
            found[vip] = f"{vip} is with {name}, which advertised before {late}."
    return found


def measured(probed: Dict[str, Any], seen: Dict[str, Any]) -> str:
    """Say what the probe has measured.

    :param probed: as the steps have it
    :param seen: as `vip_probe` returns it
    """
    vip, move = probed["address"], seen["takeover"]
    if seen["holder_after"] != probed["holder"]:
        return f"The probe did not see {vip} move to {probed['holder']}."
    if seen["holder_before"] == probed["holder"]:
        return f"{vip} had moved before the probe began: nothing was measured."
    return (
        f"{vip} was gone for {move['outage_ms']:.0f} ms: of {seen['tried']} connections, one every {INTERVAL_MS} ms, "
        f"{seen['failed_attempts']} failed, and for {move['response_gap_ms']:.0f} ms at most none was answered."
    )
