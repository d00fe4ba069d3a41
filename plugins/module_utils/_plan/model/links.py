# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""On which link a Virtual Router is: with its VRID and its IP version that identifies it (RFC 9568, 5.2.3). Pure.

Interfaces have other names on other members, so two of them are on one link if their subnets overlap. A host route
(/32, /128), a link-local and an assumed address say nothing of a link. An interface without a known subnet is on the
link of the VIPs there. Where nothing tells the link, nothing tells that two routers with one VRID are apart: they count
as one.
"""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ..._shared.membership import carriers
from .plan import Vip

Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
Subnets = Dict[str, List[Network]]  # by interface
Links = Dict[str, Dict[str, int]]  # by member and interface: the number of the link
Instances = Iterable[Mapping[str, Any]]


class VirtualRouter(NamedTuple):
    """What identifies a Virtual Router."""

    link: int
    vrid: int
    family: int


def virtual_router(instance: Mapping[str, Any], links: Mapping[str, int]) -> VirtualRouter:
    """Return the Virtual Router of an instance.

    :param links: of its member; one that is not there is the first
    """
    family = 6 if any(":" in address for address in instance["addresses"]) else 4
    return VirtualRouter(links.get(instance["interface"], 0), instance["vrid"], family)


def subnets(addresses: Iterable[Mapping[str, Any]]) -> Subnets:
    """Return the subnets of each interface of a host that was read."""
    found: Subnets = {}
    for info in addresses:
        network = ipaddress.ip_interface(f"{info['address']}/{info['prefix']}").network
        if not info.get("assumed") and not network.is_link_local and network.num_addresses > 1:
            found.setdefault(info["interface"], []).append(network)
    return found


def overlap(one: Iterable[Network], other: Iterable[Network]) -> bool:
    return any(a.version == b.version and a.overlaps(b) for a, b in itertools.product(one, other))


class Group(NamedTuple):
    """The interfaces of one link, each with its member, and the subnets or VIPs by which they were found."""

    interfaces: Set[Tuple[str, str]]
    networks: List[Network]
    is_known: bool  # whether a subnet was read


def of_members(known: Mapping[str, Subnets], instances: Mapping[str, Instances]) -> Links:
    """Return the link of each interface that has an instance.

    :param known: the subnets of each member
    :param instances: of each member, those that run and those that are planned
    """
    groups: List[Group] = []
    for member, some in instances.items():
        for interface in dict.fromkeys(each["interface"] for each in some):
            read = known.get(member, {}).get(interface, [])
            networks = read or of_vips(
                vip
                for each in some
                if each["interface"] == interface
                for vip, carrier in carriers(each).items()
                if carrier == interface
            )
            groups = _joined(groups, Group({(member, interface)}, networks, bool(read)))
    for group in [each for each in groups if not each.is_known]:
        others = [each for each in groups if each is not group and not _hosts(each) & _hosts(group)]
        if others and group in groups:
            others[0].interfaces.update(group.interfaces)
            groups.remove(group)
    found: Links = {member: {} for member in instances}
    for number, group in enumerate(groups):
        for member, interface in group.interfaces:
            found[member][interface] = number
    return found


def _joined(groups: List[Group], new: Group) -> List[Group]:
    same = [each for each in groups if overlap(each.networks, new.networks)]
    merged = Group(
        new.interfaces.union(*(each.interfaces for each in same)),
        [*new.networks, *(network for each in same for network in each.networks)],
        any(each.is_known for each in [new, *same]),
    )
    return [*(each for each in groups if each not in same), merged]


def _hosts(group: Group) -> Set[str]:
    return {member for member, _interface in group.interfaces}


def of_vips(addresses: Iterable[str]) -> List[Network]:
    """Return VIPs that somebody may have written by hand, each as a network."""
    found = []
    for address in addresses:
        try:
            found.append(ipaddress.ip_network(address.partition("/")[0]))
        except ValueError:  # no address at all
            continue
    return found


def on_one_link(vip: Vip, other: Vip, members: Sequence[Mapping[str, Any]]) -> Optional[bool]:
    """Whether two VIPs are on one link; None if that is not known.

    :param members: as in `planner`
    """
    one, two = (_places(each, members) for each in (vip, other))
    together = any(one[name][0] == two[name][0] for name in one.keys() & two.keys())
    networks = [networks_of(each, members) for each in (vip, other)]
    return True if together else overlap(*networks) if all(networks) else None


def networks_of(vip: Vip, members: Sequence[Mapping[str, Any]]) -> List[Network]:
    """Return the subnets of the interfaces where a VIP is advertised, as far as they are known."""
    return [network for _name, some in _places(vip, members).values() for network in some]


def _places(vip: Vip, members: Sequence[Mapping[str, Any]]) -> Dict[str, Tuple[str, List[Network]]]:
    """Return for each member that may hold a VIP the interface where it advertises that, and its subnets."""
    address, found = ipaddress.ip_address(vip.address), {}
    for member in members:
        if member["name"] in vip.order:
            known, settings = subnets(member["host"]["addresses"]), member["settings"]
            wanted = settings.get("vrrp_interface") or settings.get("interface")
            near = [(net.prefixlen, name) for name, some in known.items() for net in some if address in net]
            interface = wanted or (max(near)[1] if near else "")
            found.update({member["name"]: (interface, known.get(interface, []))} if interface else {})
    return found
