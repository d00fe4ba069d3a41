# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the status says of VIPs that VRRP moves: one member holds each, and the others could take over. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .members import Layout, Member
from .outside import SYMPTOMS, duration

HEAD = ["member", "engine", "versions", "VIPs held", "could take over", "servers up"]
HEARD = "VRRP"  # what a firewall has to let in beside clients
CAPABLE = "could_take_over"
MEMBER_KEYS = ("instances", "held")


def count(layout: Layout, member: Member) -> str:
    return f"{len(member.held)} of {len(layout.every_vip)}"


def vip_line(layout: Layout, vip: str) -> str:
    """Say who holds a VIP, and for how long."""
    holders, strangers = layout.holders(vip), layout.strangers(vip)
    if not holders and not strangers:
        return f"{vip} is held by nobody."
    seconds = _seconds_held(layout, vip)
    age = "" if seconds is None else f", for {duration(seconds)}"
    return f"{vip} is held by {' and '.join([*holders, *map(_stranger, strangers)])}{age}."


def _stranger(mac: str) -> str:
    return f"another host ({mac})"


def _seconds_held(layout: Layout, vip: str) -> Optional[int]:
    """Return for how long a VIP has its one holder, if that is known."""
    times = [held["seconds"] for member in layout.read for held in member.seen["held"] if held["address"] == vip]
    return times[0] if len(times) == 1 and not layout.strangers(vip) else None


def vip_fault(layout: Layout, vip: str) -> str:
    """Return a sentence if a VIP has not exactly one holder."""
    holders = [*layout.holders(vip), *map(_stranger, layout.strangers(vip))]
    if not holders:
        return f"{vip} has no holder: see 'Nobody holds the VIP' in {SYMPTOMS}."
    if len(holders) == 1:
        return ""
    return f"{vip} has {len(holders)} holders: {', '.join(holders)}. See 'Several members hold the VIP' in {SYMPTOMS}."


def asks(layout: Layout, vip: str) -> bool:
    """Whether a host that is no member asks through a VIP."""
    return not vip_fault(layout, vip)


def member_fault(_layout: Layout, member: Member) -> str:
    return member.fault


def lines(_layout: Layout) -> List[str]:
    return []


def vip_data(layout: Layout, vip: str) -> Dict[str, Any]:
    return {
        "address": vip,
        "holders": layout.holders(vip),
        "strangers": layout.strangers(vip),
        "seconds": _seconds_held(layout, vip),
    }


def differences(layout: Layout) -> List[str]:
    """Return which members were set up for BGP, and which have no hook for a keepalived that is killed."""
    of_bgp = [
        f"{member.name} was set up for BGP, and the inventory has VRRP." for member in layout.read if member.announcing
    ]
    without_hook = [
        f"{member.name}'s keepalived has no hook: if it is killed, the others take its VIPs only after an "
        "Active_Down_Interval. onprem.lb.site writes the hook."
        for member in layout.read
        if not member.seen["resigns_when_killed"]
    ]
    return [*of_bgp, *without_hook]
