# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a member that announces its VIPs by BGP leaves, and comes back, for a switchover and a maintenance. Pure.

Routers are asked first to prefer the others, by graceful shutdown (RFC 8326). For those that do not honour that its
paths are withdrawn next, while its VIPs are still on lo and its balancer serves. At last the record that holds it back
takes the VIPs off lo, and FRR runs its file again, with nothing to announce. Up to then FRR alone remembers that it is
drained, so that wherever a run is cut off, `Member.announcing` or the record says so.

It leaves only while each router of another member may send to that one instead, for each of its VIPs.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from ..._shared.held_back import PATHS
from ..bgp import leaving
from . import announcing, steps
from .members import Layout, Member
from .outside import listed
from .steps import Steps


def is_away(member: Member) -> bool:
    """Whether a switchover or a maintenance has it leave, or has begun to."""
    return bool(member.held_back or member.announcing.get("drained"))


def unfit(layout: Layout, what: str) -> List[str]:
    """Say why no member of these may leave.

    :param what: what needs that, such as ``A switchover``
    """
    if len(layout.names) < 2:
        return [f"{layout.names[0]} is the only member: nobody would serve without it."]
    no_vip = [] if layout.configured else [f"{', '.join(layout.names)} have no VIP: run onprem.lb.site first."]
    by_vrrp = [
        f"{member.name} was set up for VRRP, and the inventory has BGP: run onprem.lb.site first."
        for member in layout.read
        if member.seen.get("router")
    ]
    return steps.missing(layout, what) or by_vrrp or no_vip


def last_one(layout: Layout, member: Member, proved: Sequence[str] = ()) -> List[str]:
    """Say which VIPs nobody is known to serve without a member, whether it serves them now or not.

    :param proved: the members that will have been proved before it leaves
    """
    others = [other for other in layout.members if other is not member]
    lacking = {vip: {other.name: _unproved(other, vip, proved) for other in others} for vip in _vips(member)}
    lacking = {vip: whys for vip, whys in lacking.items() if all(whys.values())}
    if not lacking:
        return []
    reasons = dict.fromkeys(f"{name}: {' '.join(why)}" for whys in lacking.values() for name, why in whys.items())
    without = f"Without {member.name} nobody is proved to serve {listed(list(lacking))}, so it stays."
    return [f"{without} {' '.join(reasons)}"]


def _vips(member: Member) -> List[str]:
    """Return the VIPs of its configuration, and those on its lo: a configuration may be damaged since it was loaded."""
    return list(dict.fromkeys([*member.addresses, *member.held]))


def _unproved(other: Member, vip: str, proved: Sequence[str]) -> List[str]:
    if other.name in proved:
        return []
    if not other.problem and vip not in other.addresses:
        return [f"It does not have {vip}."]
    return announcing.unproved(other, vip)


def untold(member: Member) -> List[str]:
    """Say why nobody can tell routers that a member leaves; [] if it can be told, or there is nothing to tell."""
    known = member.announcing.get("sessions_known", True)
    return [] if known else [f"Whether {member.name} announces its VIPs is not known. {member.announcing['silent']}"]


def leave(layout: Layout, member: Member, what: str, wait: int, proved: Sequence[str] = ()) -> Steps:
    """Return the steps with which a member leaves, or why it must not now.

    :param wait: for how many seconds at most its connections are waited for
    """
    faults = unfit(layout, what) or untold(member) or last_one(layout, member, proved)
    if faults:
        return Steps(faults)
    return Steps([], lines(layout, member, wait), leave=member.name, wait=wait, frr=commands(member))


def lines(layout: Layout, member: Member, wait: int) -> List[str]:
    """Say what becomes of connections when a member leaves, and when it is back."""
    serving = [each.name for each in layout.members if announcing.carried(each)]
    others = [name for name in serving if name != member.name]
    if member.name not in serving:
        return [f"{member.name} announces no VIP, and begins to do so only when it is let."]
    told = f"{member.name} leaves: its routers are to prefer {listed(others)} (RFC 8326), and then lose its paths."
    count = member.announcing.get("connections", 0)
    some = f"{count} now" if count else "none now"
    limit = f", which are waited for up to {wait} s" if wait else ""
    lost = f"Lasting connections through {member.name} are lost ({some}{limit})"
    moved = f"; a router that does not hash resiliently moves some of those of {listed(others)}" if others[1:] else ""
    back = round(100 * len(others) / len(serving))
    later = f"When it is back, up to {back} % of the others' lasting ones are lost."
    return [told, f"{lost}{moved}.", later, *_kept(member), *_alone(layout, member)]


def _alone(layout: Layout, member: Member) -> List[str]:
    """Say which routers have no session with another member. In other subnets the same router has other addresses."""
    peers = {each.name: {session["peer"] for session in each.announcing.get("sessions", [])} for each in layout.read}
    own = peers.pop(member.name)
    shared = own & set().union(*peers.values())
    lone = sorted(own - shared) if shared else []
    with_it = f"{listed(lone)} {'have' if lone[1:] else 'has'} a session with {member.name} alone"
    return [f"{with_it}, and needs the VIPs from another router meanwhile."] if lone else []


def _kept(member: Member) -> List[str]:
    """Say which connections last all the same: every member sends them to the same servers."""
    kept = [f"{vip} port {port}" for vip, port in member.announcing.get("direct", [])]
    return [f"Direct return keeps those of {listed(kept)}."] if kept else []


def commands(member: Member) -> Dict[str, List[str]]:
    """Return the commands of `leaving` for a member's FRR; empty ones where it has no BGP that could be told."""
    families = sorted({session["family"] for session in member.announcing.get("sessions", [])})
    return leaving.commands(member.announcing.get("asn", 0), families)


def has_not_left(name: str, why: str) -> List[str]:
    """Say what has become of a member that should have left, where it has not; [] if it has."""
    if not why:
        return []
    return [
        f"{name} has not left. {why} onprem.lb.status says whether it announces its VIPs, and onprem.lb.switchover -e "
        "switchover_back=true has it do so again."
    ]


def back(away: Sequence[Member]) -> Steps:
    """Return the steps after which members announce their VIPs again, each as soon as its health gate finds it well."""
    return Steps(
        [],
        [f"{member.name} announces its VIPs again, as soon as its checks succeed." for member in away],
        announce={member.name: commands(member) for member in away},
    )


def record(during: str, layout: Layout, member: Member, **more: str) -> Dict[str, Any]:
    """Return the record that holds a member back, and its path, as parts of the steps."""
    others = [each.name for each in layout.members if each is not member and announcing.carried(each)]
    return {"path": PATHS[during], "record": {"to": " and ".join(others), **more}}


def not_announcing(member: Member) -> List[str]:
    """Say why not every router of a member has its path to each of its VIPs."""
    return list(dict.fromkeys(why for vip in _vips(member) for why in announcing.unproved(member, vip)))


def place(layout: Layout, member: Member) -> Tuple[bool, bool, int]:
    """Return where a member comes in a maintenance: first those that are away, then those that serve nobody."""
    return not is_away(member), bool(announcing.carried(member)), layout.names.index(member.name)
