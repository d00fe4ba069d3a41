# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the role `frr` renders: the peers of a host, and the VIPs that it may announce to them.

Whatever changes in one peer or VIP must leave the lines of the others as they are, because frr-reload deletes a line
before it adds another: a route-map of each peer, and a number in the prefix list that only the VIP itself decides.
"""

from __future__ import annotations

import ipaddress
import zlib
from typing import Any, Collection, Dict, Iterable, List, Mapping, Tuple

from ..._agent.config.schema import (
    Faults,
    Field,
    address,
    boolean,
    integer,
    list_of,
    no_addresses,
    no_list,
    one_of,
    port,
    read,
    repeated,
    shown,
)
from . import bgp_values as values
from . import raw_lines, secrets
from .variables import as_role_variables

IPV4, IPV6 = "ipv4", "ipv6"
FAMILIES = {4: IPV4, 6: IPV6}
HOLD_TIME = 9  # seconds
SEQUENCES = 4294967294  # numbers of a prefix list

PEER: Dict[str, Field] = {
    "address": Field(values.peer_address, required=True),
    "asn": Field(values.asn, required=True),
    "password": Field(values.password, "", secret=True),
    "port": Field(port, 179),
    "multihop": Field(integer(0, 254, "a number of hops"), 0),
    "ttl_security": Field(integer(0, 254, "a number of hops"), 0),
    "hold_time": Field(integer(3, 65535, "seconds"), HOLD_TIME),
    "keepalive_time": Field(integer(1, 21845, "seconds")),
    "connect_time": Field(integer(1, 65535, "seconds"), 1),
    "bfd": Field(boolean, False),
    "families": Field(list_of(one_of(IPV4, IPV6), at_least=1)),
    "local_address": Field(address),
    "communities": Field(list_of(values.community)),
}

# What the role has beside the peers and the VIPs.
SETTINGS: Dict[str, Field] = {
    "asn": Field(values.optional_asn, 0),
    "router_id": Field(values.router_id, ""),
    "bfd": Field(values.bfd, {}),
    "communities": Field(list_of(values.community), []),
    "graceful_shutdown": Field(boolean, False),
    "extra_lines": Field(raw_lines.frr_lines, []),
}


def model(settings: Mapping[str, Any], own: Iterable[str] = ()) -> Dict[str, Any]:
    """Return what the role renders, and a sentence for each fault.

    :param settings: the role's variables without their prefix, as the user wrote them
    :param own: the addresses of the host, the first one of which may be its router ID; none where it was not read
    """
    faults: Faults = []
    given = {key: settings[key] for key in SETTINGS if key in settings}
    found = read(SETTINGS, given, "frr", faults)
    prefixes = _prefixes(settings.get("prefixes", []), faults)
    peers = _peers(settings.get("peers", []), faults)
    addresses = [each for each in own if each not in prefixes]
    faults.extend(_clashes(peers, prefixes, addresses))
    if peers and not faults:
        faults.extend(_of_peers(peers, prefixes, found["asn"]))
        found["router_id"] = found["router_id"] or _router_id(addresses)
        faults.extend(_of_router_id(found["router_id"], prefixes, bool(list(own))))
    families = [family for family in FAMILIES.values() if any(family in peer["families"] for peer in peers)]
    rendered = [_with_communities(peer, found["communities"]) for peer in peers]
    return {
        **found,
        "peers": rendered,
        "families": {family: _sequences(prefixes, family) for family in families},
        "bfd": {**values.BFD_DEFAULTS, **found["bfd"]},
        "secrets": secrets.texts(peers, {"extra_lines": found["extra_lines"]}),
        "faults": [as_role_variables(fault, "frr") for fault in faults],
    }


def family_of(given: str) -> str:
    return FAMILIES[ipaddress.ip_address(given).version]


def _prefixes(given: Any, faults: Faults) -> List[str]:
    if not isinstance(given, list):
        faults.append(f"frr_prefixes is {shown(given)}: {no_addresses(given)}")
        return []
    found = [values.vip(each) for each in given]
    wrong = [f"frr_prefixes[{at}] is {shown(given[at])}: {fault}" for at, (_vip, fault) in enumerate(found) if fault]
    vips = [vip for vip, fault in found if not fault]
    twice = [f"frr_prefixes has {vip} twice: leave one out." for vip in repeated(vips)]
    faults.extend(wrong + twice)
    return sorted(set(vips), key=lambda vip: (":" in vip, int(ipaddress.ip_address(vip))))


def _peers(given: Any, faults: Faults) -> List[Dict[str, Any]]:
    """Return the peers that can be rendered, each with what its other settings imply."""
    if not isinstance(given, list):
        faults.append(f"frr_peers is {shown(given)}: {no_list(given, 'a list')}")
        return []
    found = []
    for at, item in enumerate(given):
        peer = read(PEER, item, f"frr_peers[{at}]", faults)
        if peer["address"]:
            peer["families"] = peer["families"] or [family_of(peer["address"])]
            peer["keepalive_time"] = peer["keepalive_time"] or peer["hold_time"] // 3
            faults.extend(_contradictions(peer, place_of(at, peer)))
            found.append(peer)
    twice = repeated([peer["address"] for peer in found])
    faults.extend(f"frr_peers has {each} twice: leave one out." for each in twice)
    return found


def place_of(at: int, peer: Mapping[str, Any]) -> str:
    return f"frr_peers[{at}] ({peer['address']})"


def _contradictions(peer: Mapping[str, Any], place: str) -> Faults:
    faults, family, hold = [], family_of(peer["address"]), peer["hold_time"]
    if peer["keepalive_time"] * 3 > hold:
        faults.append(
            f"{place}.keepalive_time is {peer['keepalive_time']}, and a third of the hold_time is {hold // 3} at most."
        )
    if peer["ttl_security"] and peer["multihop"]:
        faults.append(f"{place} has ttl_security and multihop, which exclude each other: leave one out.")
    others = [each for each in peer["families"] if each != family]
    if others:
        faults.append(f"{place}.families has {others[0]}, and its address is of {family}: add a peer of {others[0]}.")
    local = peer["local_address"]
    if local and family_of(local) != family:
        faults.append(f"{place}.local_address is {local}, and the peer is of {family}: name an address of {family}.")
    return faults


def _clashes(peers: List[Dict[str, Any]], prefixes: Collection[str], own: Collection[str]) -> Faults:
    faults = []
    for at, peer in enumerate(peers):
        place, local = place_of(at, peer), peer["local_address"]
        if peer["address"] in prefixes:
            faults.append(f"{place} is one of frr_prefixes: name the address of the router itself.")
        if peer["address"] in own:
            faults.append(f"{place} is an address of this host: name that of its router.")
        if local in prefixes:
            faults.append(f"{place}.local_address is one of frr_prefixes, which other hosts have too: name its own.")
        elif local and own and local not in own:
            faults.append(f"{place}.local_address is {local}, which this host does not have: name one of its own.")
    return faults


def _of_peers(peers: List[Dict[str, Any]], prefixes: Collection[str], own_asn: int) -> Faults:
    """Return what is wrong with peers together."""
    faults = [] if own_asn else ["frr_asn is not set: set the AS number of this host."]
    for at, peer in enumerate(peers):
        if peer["multihop"] and peer["asn"] == own_asn:
            faults.append(f"{place_of(at, peer)}.multihop is for another AS: within one AS leave it out.")
    known = {family for peer in peers for family in peer["families"]}
    for family in sorted({family_of(vip) for vip in prefixes} - known):
        vip = next(vip for vip in prefixes if family_of(vip) == family)
        faults.append(f"frr_prefixes has {vip}, and no peer is of {family}: add one to frr_peers, or leave it out.")
    return faults


def _router_id(own: Iterable[str]) -> str:
    usable = (each for each in own if not values.router_id(each)[1])
    return next(usable, "")


def _of_router_id(router_id: str, prefixes: Collection[str], is_read: bool) -> Faults:
    """Return what is wrong with it. FRR's own choice may be a VIP, which several hosts have."""
    if router_id in prefixes and router_id:
        return [f"frr_router_id is {router_id}, one of frr_prefixes, which other hosts have too: set another one."]
    if is_read and not router_id:
        return ["frr_router_id is not set, and this host has no IPv4 address: set one that no other router has."]
    return []


def _with_communities(peer: Dict[str, Any], usual: List[str]) -> Dict[str, Any]:
    """Return a peer with its communities in FRR's order: standard ones, and large ones."""
    mine = usual if peer["communities"] is None else peer["communities"]
    large = [each for each in mine if each.count(":") == 2]
    standard = [each for each in mine if each not in large]
    return {
        **peer,
        "out": f"onprem-out-{peer['address']}",
        "communities": sorted(set(standard), key=values.community_number),
        "large_communities": sorted(set(large), key=lambda each: [int(part) for part in each.split(":")]),
    }


def _sequences(prefixes: Iterable[str], family: str) -> List[Tuple[int, str]]:
    """Return the VIPs of a family, each with its number in the prefix list: that of an IPv4 VIP is itself."""
    taken: Dict[int, str] = {}
    for vip in (each for each in prefixes if family_of(each) == family):
        number = int(ipaddress.ip_address(vip)) if family == IPV4 else zlib.crc32(vip.encode())
        number = number % SEQUENCES or 1
        while number in taken:
            number = number % SEQUENCES + 1
        taken[number] = f"{vip}/{32 if family == IPV4 else 128}"
    return sorted(taken.items())
