# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The resolver that a layout sets up on its members: whose names it answers, and at which address. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Union

from ..._agent.config.schema import Faults, Field, boolean, text
from ..._agent.follow import hosts
from ..dns import names
from ..dns import resolver as dns_resolver
from ..members import loops
from ..members.hosts import Member
from ..members.subnets import Placement
from ..model import resolver as model

SETTINGS = {"dns": Field(boolean, False), "domain": Field(text, "")}
OF_PAIR = {"subdomain": Field(text, "apps")}

Placements = Mapping[str, Mapping[str, Placement]]  # by member and address of a VIP
Addresses = Dict[str, List[str]]
IPNetwork = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


class Resolver(NamedTuple):
    """What a layout has read.

    :ivar layout: as the role `resolver` takes it
    :ivar addresses: the members' own, as far as they are known, IPv4 first
    :ivar names: what the resolver answers
    """

    layout: Dict[str, Any]
    addresses: Addresses
    names: dns_resolver.Names


def of_cluster(
    settings: Mapping[str, Any], members: List[Member], placements: Placements, faults: Faults
) -> Optional[Resolver]:
    """Return the resolver of a cluster's nodes; None where none is wanted, or where there can be none."""
    if not settings["dns"]:
        return None
    addresses = own_addresses(members, placements)
    zone = f"{settings['cluster_name']}.{settings['domain']}".lower().rstrip(".")
    bootstrap = "" if settings["bootstrap_complete"] else settings["bootstrap"]  # which has a name of its own
    layout = {
        "layout": "cluster",
        "name": settings["cluster_name"],
        "domain": settings["domain"],
        "api_vips": settings["api_vips"],
        "ingress_vips": settings["ingress_vips"],
        "nodes": _nodes({name: own for name, own in addresses.items() if name != bootstrap}, zone, faults),
        "bootstrap": bootstrap,
        "hosts": addresses,  # among which the bootstrap host may be
    }
    return _resolver(layout, addresses, faults)


def of_pair(
    settings: Mapping[str, Any], members: List[Member], placements: Placements, has_api: bool, faults: Faults
) -> Optional[Resolver]:
    """Return the resolver of a pair's members.

    :param has_api: whether the pair is before an API, whose names it gets then
    """
    if not settings["dns"]:
        return None
    addresses = own_addresses(members, placements)
    layout = {
        "layout": "pair",
        "domain": settings["domain"],
        "subdomain": settings["subdomain"],
        "vips": settings["vips"],
        "members": {name: found for name, found in addresses.items() if found},
        "api": has_api,
    }
    return _resolver(layout, addresses, faults)


def _resolver(layout: Dict[str, Any], addresses: Addresses, faults: Faults) -> Optional[Resolver]:
    wrong: Faults = []
    found = dns_resolver.names_of(layout, model.TTL, wrong)
    faults += [_in_words_of(layout, fault) for fault in wrong]
    return None if wrong else Resolver(layout, addresses, found)


def _in_words_of(layout: Dict[str, Any], fault: str) -> str:
    """Return a fault with the variables of the layout: the playbook `dns` has others for a pair."""
    own = fault.replace("dns_nodes has", "The inventory has")
    return own.replace("dns_", "pair_") if layout["layout"] == "pair" else own


def own_addresses(members: List[Member], placements: Placements) -> Addresses:
    """Return the members' own addresses in the VIPs' subnets, as far as they are known, IPv4 first."""
    known = loops.own_addresses(members)
    subnets = _subnets(members, placements)
    found = {}
    for name in (member["name"] for member in members):
        placed = [each.address for each in placements.get(name, {}).values() if known.get(each.address) == name]
        # A member without VIPs, such as a bootstrap host that is no longer one.
        own = placed or [each for each, owner in known.items() if owner == name and _is_in(each, subnets)]
        found[name] = sorted(dict.fromkeys(own), key=lambda address: ":" in address)
    return found


def _subnets(members: List[Member], placements: Placements) -> Set[IPNetwork]:
    """Return the subnets in which the members that have VIPs have them."""
    return {
        ipaddress.ip_interface(f"{info['address']}/{info['prefix']}").network
        for member in members
        for info in member["host"]["addresses"]
        if info["address"] in {each.address for each in placements.get(member["name"], {}).values()}
    }


def _is_in(address: str, subnets: Set[IPNetwork]) -> bool:
    return any(ipaddress.ip_address(address) in subnet for subnet in subnets)


def _nodes(addresses: Addresses, zone: str, faults: Faults) -> Addresses:
    """Return the nodes that get a name in the cluster's domain, by that name."""
    found: Addresses = {}
    whose: Dict[str, str] = {}
    for name, own in addresses.items():
        label = hosts.label(name, zone)
        if label == zone:
            faults.append(f"The inventory has {name!r}, which is the domain itself: call the node otherwise.")
        if "." in label:
            continue
        label = names.host_name(label, f"The node {name}, of which ipi_dns makes a name,", "", faults)
        if label and whose.setdefault(label, name) != name:
            faults.append(
                f"{whose[label]} and {name} would both be {label}.{zone}: rename one of them in the inventory."
            )
        if own:
            found[label] = own
    return {label: own for label, own in found.items() if label}


def warnings(about: Optional[Resolver]) -> List[str]:
    """Return which names of the inventory the resolver leaves out, and why."""
    if about is None or about.layout["layout"] != "cluster":
        return []
    named = [name for name in about.addresses if name != about.layout["bootstrap"]]
    refused = hosts.nameless(named, about.names.domains[0], about.names.reserved)
    return [hosts.said(refused)] if refused else []


def abandoned(about: Optional[Resolver], members: List[Member], vips: Collection[str], prefix: str) -> Faults:
    """Refuse to do without resolvers in the run that moves what they answer: they are removed once it is confirmed.

    Until then they would lead to addresses that nobody holds, and to which names lead then is not known without them.

    :param vips: the addresses of the plan
    """
    hosts = {} if about else {member["name"]: member["host"] for member in members if not member.get("stays")}
    routers = (instance for host in hosts.values() for instance in host.get("instances", []))
    gone = {address.partition("/")[0] for instance in routers for address in instance["addresses"]} - {*vips}
    lost = {
        name: ips for host in hosts.values() for name, ips in host.get("named", {}).items() if ips and {*ips} <= gone
    }
    addresses = dict.fromkeys(ip for ips in lost.values() for ip in ips)
    leads = f"the members' resolvers lead {', '.join(lost)} to {', '.join(addresses)}"
    mend = f"keep {prefix}_dns: true for the run that changes the VIPs, and set it to false in the next one."
    return [f"{prefix}_dns is false, and {leads}, which this run gives up: {mend}"] if lost else []


def unheard(about: Optional[Resolver], members: List[Member]) -> Faults:
    """Refuse a resolver that does not listen where its own host asks, as its role would once members change."""
    if about is None:
        return []
    faults = []
    for member in members:
        name = member["name"]
        listen, _wrong = model.SETTINGS["listen"].check(member.get("resolver_listen", []))
        own = next(iter(about.addresses.get(name, [])), "")
        faults += [f"{name}: {fault}" for fault in model.unheard(own, listen or [])]
    return faults


def answered(about: Optional[Resolver]) -> Mapping[str, Sequence[str]]:
    """Return the addresses of the names that the resolver answers."""
    return about.names.hosts if about else {}


def planned(about: Optional[Resolver], name: str, follows: bool) -> Dict[str, Any]:
    """Return what a member's resolver is given; nothing where it has none."""
    if about is None:
        return {}
    return {"layout": about.layout, "address": next(iter(about.addresses[name]), ""), "follows": follows}


def followed(about: Optional[Resolver]) -> Dict[str, Any]:
    """Return what `follow` is given for the names of the nodes; nothing where it writes none."""
    if about is None:
        return {}
    return {"domain": about.names.domains[0], "reserved": about.names.reserved}
