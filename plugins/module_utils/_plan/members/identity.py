# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether each member is a host of its own, and each VIP an address that no host has. Pure.

A member is as in `planner`.
"""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any, Collection, Dict, Iterator, List

from ..._agent.config.schema import Faults, repeated, shown, word
from ..model.plan import Vip
from .hosts import Member, carried
from .subnets import Placement

GROUPS = {"pair": ("pair",), "ipi": ("ipi_masters", "ipi_workers")}  # of the inventory, by layout
MEMBERS = {"pair": "pair_members", "ipi": "ipi_masters and ipi_workers"}

Placements = Dict[str, Dict[str, Placement]]  # by member and address of a VIP


def names_in(settings: Dict[str, Any], layout: str) -> Any:
    """Return the names of a layout's members, best first: they may be anything until `of_names` has judged them.

    :param settings: the layout's variables, without their prefix
    """
    if layout == "pair":
        return settings["members"]
    return [*_listed(settings["masters"]), *_listed(settings["workers"])]


def _listed(names: Any) -> List[Any]:
    return names if isinstance(names, list) else [names]


def of_names(names: Any, inventory: Collection[str], host: str, layout: str) -> Faults:
    """Return what is wrong with the names of a layout's members, before anything is known of them.

    :param inventory: every host that there is
    :param host: the one whose variables name them, which must be a member
    """
    where = MEMBERS[layout]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return [f"{where} is {shown(names)}: a list of names of the inventory's hosts is required."]
    known = set(inventory)  # Ansible evaluates an item of its lists at each look
    found = [
        f"{where}: {name} is not a host in the inventory: correct the name." for name in names if name not in known
    ]
    found += [f"{where}: {name} is named twice, name each host once." for name in repeated(names)]
    if host not in names:
        mend = "add it, or take it out of the group, or of the play's hosts where they are more than the members."
        found.append(f"{where} does not name {host}, which this run is for: {mend}")
    return list(dict.fromkeys(found))


def of_members(members: List[Member], layout: str) -> Faults:
    """Return which hosts are named twice, or belong to another layout too."""
    names = [str(member["name"]) for member in members]
    unfit = ((name, word(name)[1]) for name in names)
    found = [
        f"{name!r} is not a valid name for a member: {wrong} Rename the host in the inventory."
        for name, wrong in unfit
        if wrong
    ]
    found += [f"{MEMBERS[layout]}: {name} is named twice, name each host once." for name in repeated(names)]
    for member, other in itertools.product(members, [name for name in GROUPS if name != layout]):
        for group in sorted(set(GROUPS[other]) & set(member.get("groups", ()))):
            found.append(
                f"{member['name']} is in the group {group} too, and each layout would overwrite the other's "
                "configuration: take it out of one of them."
            )
    return found


def of_addresses(members: List[Member], vips: List[Vip], placements: Placements) -> Faults:
    """Return what is wrong between the members' addresses and the VIPs."""
    found: Faults = []
    for member in members:
        for vip in vips:
            found += _own_address(member, vip)
            placement = placements[member["name"]].get(vip.address)
            found += _on_link(member, vip, placement) if placement else []
    return [*dict.fromkeys(found), *shared(members, placements)]


def _own_address(member: Member, vip: Vip) -> Iterator[str]:
    if _is(member.get("address", ""), vip.address):
        yield _own(member, vip, "(ansible_host)")
        return
    host = member["host"]
    known = {vip for each in host.get("instances", []) for vip in carried(each)}
    # A member that holds the VIP runs an instance with it. Where the configuration is in another file, an earlier run
    # has left its record.
    if vip.address in known or host.get("members") or vip.held_as == ipaddress.ip_address(vip.address).max_prefixlen:
        return
    for info in host["addresses"]:
        if info["address"] == vip.address and info["prefix"] == vip.held_as and info["interface"] != "lo":
            yield _own(member, vip, f"on {info['interface']}")


def _own(member: Member, vip: Vip, where: str) -> str:
    return f"{member['name']}: VIP {vip.address} is this host's own address {where}: choose one that nobody has."


def _is(text: str, address: str) -> bool:
    try:
        return ipaddress.ip_address(text) == ipaddress.ip_address(address)
    except ValueError:
        return False


def _on_link(member: Member, vip: Vip, placement: Placement) -> Iterator[str]:
    """Hold a VIP against the subnet of its link, as far as it was read."""
    info = _info(member, placement)
    if info.get("assumed"):
        return
    link: Any = ipaddress.ip_interface(f"{info['address']}/{info['prefix']}").network
    where = f"{info['interface']}'s subnet {link}"
    edges = {link.network_address: "network", link.broadcast_address: "broadcast"}
    edge = edges.get(ipaddress.ip_address(vip.address))
    if edge and vip.version == 4 and link.num_addresses > 2:
        yield f"{member['name']}: VIP {vip.address} is the {edge} address of {where}: choose another."
    wide: Any = ipaddress.ip_interface(vip.with_prefix).network
    if wide != link and wide.supernet_of(link):
        yield (
            f"{member['name']}: VIP {vip.with_prefix} is wider than {where}, and who holds it would look for all of "
            f"{wide} on that link: write /{link.prefixlen}, or no length."
        )


def shared(members: List[Member], placements: Placements) -> Faults:
    """Return which members have one address, or one network card: they are one host, or a host and its copy."""
    return list(dict.fromkeys(_shared(members, placements)))


def _shared(members: List[Member], placements: Placements) -> Iterator[str]:
    owners: Dict[str, str] = {}
    for member in members:
        name = member["name"]
        for placement in dict.fromkeys(placements[name].values()):
            mac = _info(member, placement).get("mac")
            for what in [f"the address {placement.address}", *([f"the hardware address {mac}"] if mac else [])]:
                other = owners.setdefault(what, name)
                if other != name:
                    yield f"{other} and {name} both have {what}: give each a host of its own (ansible_host)."


def _info(member: Member, placement: Placement) -> Dict[str, Any]:
    """Return what is known of the address that a member sends from."""
    own = (info for info in member["host"]["addresses"] if info["address"] == placement.address)
    return next(info for info in own if info["interface"] == placement.interface)
