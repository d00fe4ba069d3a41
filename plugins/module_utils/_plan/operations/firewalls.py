# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the firewalls of members refuse of what the plan opens. Pure.

A run opens them, and whoever loads other rules afterwards closes them: `nft -f` by hand does, or a firewall that is
started later. A port that the plan does not open may be closed on purpose, as long as not all of them are.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from .members import Layout, Member, layouts
from .outside import listed, ports

NOT_KNOWN = "let in clients and {} is not known"


def closed(member: Member, plans: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence of what a member's firewall refuses although it is to be open; '' if nothing is.

    :param plans: as `layout_drafts` returns them
    """
    seen, planned = member.seen.get("firewall", {}), _planned(member, plans)
    variable = planned.get("left_to_user", "")
    some_open = {vip for vip, _port in seen.get("open", [])}
    closed_ports = [] if variable else seen.get("closed", [])  # whom a user's own firewall lets in is the user's choice
    opens = planned.get("opens", [])
    shut = [[vip, port] for vip, port in closed_ports if port in opens or vip not in some_open]
    return _sentence(seen, [*_clients(shut), *_routers(seen.get("vrrp", []))], variable)


def hearing(given: List[Dict[str, Any]]) -> List[Layout]:
    """Return the pairs and clusters of a play, with what the members' firewalls refuse of each other's routers.

    A router that hears no other one takes the VIPs beside it, so none is to start, and none to take over, there.

    :param given: the hosts, as `members` describes them, each with ``left_to_user`` as a draft has it
    """
    variables = {host["name"]: host.get("left_to_user", "") for host in given}
    return [
        layout._replace(members=[each._replace(closed=_deaf(each, variables[each.name])) for each in layout.members])
        for layout in layouts(given)
    ]


def _deaf(member: Member, variable: str) -> str:
    seen = member.seen.get("firewall", {})
    return _sentence(seen, _routers(seen.get("vrrp", [])), variable)


def _sentence(seen: Mapping[str, Any], refused: Sequence[str], variable: str) -> str:
    if not refused:
        return ""
    mend = f"open it, as no run does ({variable}: false)." if variable else "onprem.lb.site opens it again."
    return f"Its firewall (chain {seen['chain']}) lets in {listed(refused)}: {mend}"


def unknown(members: Sequence[Member], others: str) -> List[str]:
    """Return a sentence for each reason why the firewalls of some members are not known.

    :param others: whom they have to let in beside clients
    """
    found: Dict[str, List[str]] = {}
    for member in members:
        why = member.seen.get("firewall", {}).get("unknown", "")
        if why and member.seen.get("engine"):
            found.setdefault(why, []).append(member.name)
    return [
        f"Whether the firewall{'s' if len(names) > 1 else ''} of {listed(names)} {NOT_KNOWN.format(others)}: {why}."
        for why, names in found.items()
    ]


def _planned(member: Member, plans: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((plan["members"][member.name] for plan in plans if member.name in plan["members"]), {})


def _clients(shut: Sequence[Sequence[Any]]) -> List[str]:
    """Say at which ports of which VIPs nobody is let in."""
    numbers: Dict[str, List[int]] = {}
    for vip, port in shut:
        numbers.setdefault(vip, []).append(port)
    vips: Dict[str, List[str]] = {}
    for vip, of_vip in numbers.items():
        vips.setdefault(ports(of_vip), []).append(vip)
    return [f"no client at {words} of {listed(of_words)}" for words, of_words in vips.items()]


def _routers(peers: Sequence[str]) -> List[str]:
    return [f"no VRRP{f' from {peer}' if peer else ''}" for peer in peers]
