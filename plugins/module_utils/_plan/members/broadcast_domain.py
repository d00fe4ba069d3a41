# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the members of each VIP are in one broadcast domain, so that any of them can carry it. Pure.

Two interfaces are on one link if they share a subnet, of either family. A host route (/32, /128), a link-local address
and one that was not read say nothing of a link: such a member is warned of, and never refused.
"""

from __future__ import annotations

import ipaddress
from typing import Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set

from ..._agent.config.schema import Faults
from ..model.links import Network, overlap, subnets
from ..model.plan import Vip
from .hosts import Member, carried
from .subnets import Placement

Placements = Mapping[str, Mapping[str, Placement]]  # by member and address of a VIP
RULE = "A VIP moves within one broadcast domain"


class Carrier(NamedTuple):
    """A member that may hold a VIP, the interface where it would, and the subnets of that interface."""

    name: str
    interface: str
    networks: List[Network]

    @property
    def place(self) -> str:
        return f"({self.interface} in {', '.join(map(str, self.networks))})"


def _in_words(carriers: Sequence[Carrier]) -> str:
    """Return the members of one link, each place once."""
    found: Dict[str, List[str]] = {}
    for each in carriers:
        found.setdefault(each.place, []).append(each.name)
    return ", ".join(f"{', '.join(names)} {place}" for place, names in found.items())


class Link(NamedTuple):
    """Members that are joined by shared subnets."""

    carriers: List[Carrier]
    networks: Set[Network]


def faults(
    members: Sequence[Member], vips: Sequence[Vip], placements: Placements, variable: str, mends: Mapping[str, str]
) -> Faults:
    """Refuse a VIP some of whose members can never answer for it.

    :param variable: that names the interfaces
    :param mends: by VIP, what else than the usual the user can do; ``{others}`` are the members that are not near it
    """
    own = _own_subnets(members, vips)
    found = []
    for vip in vips:
        apart = _apart([each for each in _carriers(vip, own, placements) if each.networks], vip)
        if len(apart) > 1:
            where = " and ".join(map(_in_words, apart))
            others = ", ".join(each.name for group in apart[1:] for each in group)
            mend = mends.get(vip.address, f"name members of one subnet, or correct {variable}")
            found.append(f"VIP {vip.address}: {where} share no subnet. {RULE}: {mend.format(others=others)}.")
    return found


def warnings(members: Sequence[Member], vips: Sequence[Vip], placements: Placements) -> List[str]:
    """Return a sentence for each member that was read, and whose addresses do not tell its link."""
    own = _own_subnets(members, vips)
    unread = [member["name"] for member in members if member["host"].get("assumed")]
    unknown: Dict[str, List[str]] = {}
    for vip in vips:
        for each in _carriers(vip, own, placements):
            if not each.networks and each.name not in unread:
                unknown.setdefault(f"{each.name}'s {each.interface}", []).append(vip.address)
    return [
        f"{where} has no subnet, only an address: nobody has checked that it is in the broadcast domain of "
        f"{', '.join(addresses)}. {RULE}."
        for where, addresses in unknown.items()
    ]


def peers(name: str, vips: Sequence[Vip], placements: Placements) -> Dict[str, List[str]]:
    """Return by VIP the addresses of the other members that may hold it."""
    others = [on_member for other, on_member in placements.items() if other != name]
    return {vip.address: [each[vip.address].address for each in others if vip.address in each] for vip in vips}


def _carriers(vip: Vip, own: Mapping[str, Dict[str, List[Network]]], placements: Placements) -> Iterator[Carrier]:
    for name in vip.order:
        placement = placements.get(name, {}).get(vip.address)
        if placement:
            yield Carrier(name, placement.interface, own[name].get(placement.interface, []))


def _own_subnets(members: Sequence[Member], vips: Sequence[Vip]) -> Dict[str, Dict[str, List[Network]]]:
    """Return the subnets of each member's interfaces, without those that a VIP brings."""
    found = {}
    for member in members:
        host = member["host"]
        floating = {vip.address for vip in vips}.union(*(carried(each) for each in host.get("instances", [])))
        found[member["name"]] = subnets(info for info in host["addresses"] if info["address"] not in floating)
    return found


def _apart(carriers: Sequence[Carrier], vip: Vip) -> List[List[Carrier]]:
    """Return the members by link, those first that are in the VIP's own subnet, or with the most members."""
    links: List[Link] = []
    for carrier in carriers:
        same = [link for link in links if overlap(carrier.networks, link.networks)]
        own = Link([carrier], set(carrier.networks))
        joined = Link(
            [each for link in [*same, own] for each in link.carriers],
            set().union(*(link.networks for link in [*same, own])),
        )
        links = [*(link for link in links if link not in same), joined]
    address = ipaddress.ip_address(vip.address)
    links.sort(key=lambda link: (not any(address in each for each in link.networks), -len(link.carriers)))
    return [link.carriers for link in links]
