# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The routers with which each member speaks BGP, from which of its addresses, and what is wrong with them. Pure.

Of a host that was not read only the address is known by which Ansible reaches it: what that cannot tell is not judged.
"""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..._agent.config.schema import Faults, repeated
from ..members import loops
from ..members.hosts import Member, carried
from ..members.subnets import Placement
from ..model.links import Network
from ..model.plan import Vip
from .settings import FAMILIES, Settings, read_bgp

Infos = List[Mapping[str, Any]]  # addresses of a host, as `host_info` returns them


class Speaker(NamedTuple):
    """A member as its routers see it.

    :ivar peers: as the role `frr` takes them, each with `route_reflector`
    :ivar bfd: its timers
    """

    name: str
    asn: int
    router_id: str
    peers: List[Settings]
    bfd: Dict[str, int]
    communities: List[str]

    def peers_of(self, vip: Vip) -> List[Settings]:
        """Return the peers to which a VIP is announced."""
        return [peer for peer in self.peers if FAMILIES[vip.version] in peer["families"]]


def read_speaker(member: Member, vips: Sequence[Vip], prefix: str, faults: Faults) -> Speaker:
    """Return a member with its peers, and append what is wrong with what its user wrote.

    :param vips: those that it may carry
    """
    wrong: Faults = []
    own = read_bgp(member["settings"], prefix, wrong)
    faults += [f"{member['name']}: {fault}" for fault in wrong]
    addresses = own_addresses(member, vips)
    peers = [_with_local_address(peer, addresses) for peer in own["peers"]]
    router_id = own["router_id"] or _router_id(peers, addresses)
    return Speaker(member["name"], own["asn"] or 0, router_id, peers, own["bfd"], own["communities"])


def own_addresses(member: Member, vips: Sequence[Vip]) -> Infos:
    """Return the addresses from which a member can send: none of lo, no link-local one, and no VIP."""
    floating = {vip.address for vip in vips}.union(*(carried(each) for each in member["host"].get("instances", [])))
    return [
        info
        for info in member["host"]["addresses"]
        if info["interface"] != "lo"
        and info["address"] not in floating
        and not ipaddress.ip_address(info["address"]).is_link_local
    ]


def network_of(info: Mapping[str, Any]) -> Network:
    return ipaddress.ip_interface(f"{info['address']}/{info['prefix']}").network


def _connected(address: str, addresses: Infos) -> Optional[Mapping[str, Any]]:
    """Return the own address on the network of another one."""
    there = ipaddress.ip_address(address)
    near = [info for info in addresses if there.version == network_of(info).version and there in network_of(info)]
    return max(near, key=lambda info: info["prefix"], default=None)


def _with_local_address(peer: Settings, addresses: Infos) -> Settings:
    """Return a peer with the own address on its network. One further away is reached as the routes say."""
    near = None if peer["multihop"] else _connected(peer["address"], addresses)
    local = near["address"] if near and not near.get("assumed") else ""
    return {**peer, "local_address": peer["local_address"] or local}


def _router_id(peers: Sequence[Settings], addresses: Infos) -> str:
    """Return the IPv4 address that the peers see, or another one, or four bytes made of an IPv6 address (RFC 6286)."""
    seen = [peer["local_address"] for peer in peers if peer["local_address"]]
    every = [*seen, *(info["address"] for info in addresses)]
    of_ipv4 = [address for address in every if ":" not in address]
    if of_ipv4 or not every:
        return of_ipv4[0] if of_ipv4 else ""
    made = hashlib.sha256(ipaddress.ip_address(every[0]).packed).digest()
    return str(ipaddress.IPv4Address(bytes([made[0] % 223 + 1, *made[1:4]])))


def placements(
    members: Sequence[Member], vips: Sequence[Vip], speakers: Mapping[str, Speaker], faults: Faults
) -> Dict[str, Dict[str, Placement]]:
    """Return by member and VIP the interface towards its router, and the own address there. The VIP itself is on lo."""
    found: Dict[str, Dict[str, Placement]] = {}
    for member in members:
        name, addresses = member["name"], own_addresses(member, vips)
        carrying = [vip for vip in vips if name in vip.order]
        if carrying and not addresses:
            faults.append(f"{name} has no address of its own to speak BGP from: give it one.")
        found[name] = {vip.address: _placement(vip, speakers[name], addresses) for vip in carrying if addresses}
    return found


def _placement(vip: Vip, speaker: Speaker, addresses: Infos) -> Placement:
    local = [peer["local_address"] for peer in speaker.peers_of(vip)]
    same = [info for info in addresses if ipaddress.ip_address(info["address"]).version == vip.version]
    info = next((info for info in addresses if info["address"] in local), (same or addresses)[0])
    return Placement(info["interface"], info["address"])


def faults(members: Sequence[Member], vips: Sequence[Vip], speakers: Mapping[str, Speaker], prefix: str) -> Faults:
    """Return what is wrong with the routers of members that have VIPs."""
    owners = {*loops.own_addresses([*members]), *(vip.address for vip in vips)}
    found: Faults = []
    for member in members:
        speaker, own_vips = speakers[member["name"]], [vip for vip in vips if member["name"] in vip.order]
        if not own_vips:
            continue
        found += _without_a_path(speaker, own_vips, prefix)
        for peer in speaker.peers:
            place = f"{speaker.name}: the peer {peer['address']}"
            found += [f"{place} {wrong}" for wrong in _of_peer(peer, speaker, member, vips, owners, prefix)]
        for address in repeated([peer["address"] for peer in speaker.peers]):
            found.append(f"{speaker.name}: the peer {address} is named twice: name each router once.")
        found += [f"{speaker.name}: {wrong}" for vip in own_vips for wrong in _of_vip(vip, member)]
    return [*found, *_same_router_ids(speakers, prefix)]


def _without_a_path(speaker: Speaker, vips: Sequence[Vip], prefix: str) -> Iterator[str]:
    if not speaker.peers:
        yield f"{speaker.name} has no peer, so that no router would send it anything: name one in {prefix}_bgp.peers."
        return
    lacking = dict.fromkeys(FAMILIES[vip.version] for vip in vips if not speaker.peers_of(vip))
    for family in lacking:
        addresses = ", ".join(vip.address for vip in vips if FAMILIES[vip.version] == family)
        yield (
            f"{speaker.name}: no peer has the family {family} of {addresses}: add one with an address of that family."
        )


def _of_peer(
    peer: Settings, speaker: Speaker, member: Member, vips: Sequence[Vip], owners: Collection[str], prefix: str
) -> Iterator[str]:
    if peer["address"] in owners:
        return  # which `destinations` refuses
    if peer["asn"] == speaker.asn and not peer["route_reflector"]:
        yield (
            f"has the same AS number {peer['asn']} (iBGP), and passes the VIPs on to other routers of its AS only as a "
            f"route reflector: give {prefix}_bgp an AS number of its own, or confirm with route_reflector: true."
        )
    for key in ("multihop", "ttl_security") if peer["asn"] == speaker.asn else ():
        if peer[key]:
            yield f"is of the same AS (iBGP), where {key} has no effect: leave it out."
    addresses = own_addresses(member, vips)
    local = peer["local_address"]
    if any(info.get("assumed") for info in addresses):
        return
    if local and local not in {info["address"] for info in member["host"]["addresses"]}:
        yield f"has local_address {local}, which this host does not have: correct it."
    elif local in {vip.address for vip in vips}:
        yield f"has local_address {local}, which is a VIP: name the host's own address."
    if peer["multihop"] or peer["asn"] == speaker.asn or _connected(peer["address"], addresses):
        return
    known = ", ".join(f"{info['interface']} {info['address']}/{info['prefix']}" for info in addresses) or "none"
    yield f"is on no connected network (there are: {known}): correct its address, or set multihop."


def _of_vip(vip: Vip, member: Member) -> Iterator[str]:
    held = {each for instance in member["host"].get("instances", []) for each in carried(instance)}
    for info in member["host"]["addresses"]:
        if info["address"] in held:
            continue  # its VRRP router has put it there
        if info["address"] == vip.address and info["prefix"] != vip.held_as and info["interface"] != "lo":
            yield f"VIP {vip.address} is this host's own address on {info['interface']}: choose one that nobody has."


def _same_router_ids(speakers: Mapping[str, Speaker], prefix: str) -> Iterator[str]:
    """RFC 4271, section 4.2: a router that hears the same identifier twice keeps one of the two sessions."""
    owners: Dict[str, str] = {}
    for speaker in speakers.values():
        other = owners.setdefault(speaker.router_id, speaker.name) if speaker.router_id else speaker.name
        if other != speaker.name:
            yield (
                f"{other} and {speaker.name} both have the router id {speaker.router_id}: give each its own "
                f"{prefix}_bgp.router_id in host_vars."
            )


def links(members: Sequence[Member], vips: Sequence[Vip]) -> Iterator[Tuple[Vip, str]]:
    """Yield each VIP with each network of a member that it is inside of: clients there look for it on their link."""
    for vip in vips:
        address = ipaddress.ip_address(vip.address)
        near: Set[str] = set()
        for member in members:
            known = (info for info in own_addresses(member, vips) if not info.get("assumed"))
            near |= {str(network_of(info)) for info in known if address in network_of(info)}
        yield from ((vip, network) for network in sorted(near))


def in_subnets(members: Sequence[Member], vips: Sequence[Vip]) -> Iterator[str]:
    """Yield a sentence for each VIP that clients on a member's own link would look for there.

    Linux answers ARP for the addresses of lo on every link, and Neighbor Discovery for those of the link alone.
    """
    for vip, network in links(members, vips):
        who = (
            "by ARP, and stay with the member that answers first, also when it has gone"
            if vip.version == 4
            else "by Neighbor Discovery, and nobody answers"
        )
        yield (
            f"VIP {vip.address} is inside {network}, where clients look for it {who}: choose a VIP outside the "
            "members' subnets, so that all clients come through a router."
        )
