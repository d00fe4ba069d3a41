# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How clients reach the VIPs of a layout, and what a user writes about BGP, also in the words of OpenShift's API. Pure.

Each member has its own: `PREFIX_bgp` may stand in host_vars, and `PREFIX_bgp_peers` takes the place of its peers.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Optional, Tuple

from ..._agent.config.schema import (
    Faults,
    Field,
    address,
    anything,
    boolean,
    integer,
    list_of,
    one_of,
    port,
    read,
    shown,
)
from ..model import bgp_values, values
from ..model.frr import FAMILIES

Settings = Dict[str, Any]
Checked = Tuple[Any, Optional[str]]

VRRP, BGP, BOTH = REACHES = ("vrrp", "bgp", "both")
BGP_PORT = 179
MAX_HOPS = 254
GRACEFUL_SHUTDOWN = ("65535:0", "graceful-shutdown")  # RFC 8326
MOST_PEERS, MOST_COMMUNITIES = 16, 32  # as in OpenShift's API

# What `bgpVIPConfig`, its resource of its own, and the peers of a host call these keys in OpenShift's API.
OPENSHIFT = {"localASN": "asn", "defaultPeers": "peers"}
OPENSHIFT_PEER = {
    "peerAddress": "address",
    "peerASN": "asn",
    "bfdEnabled": "bfd",
    "ebgpMultiHop": "multihop",
    "holdTime": "hold_time",
    "keepaliveTime": "keepalive_time",
}


def hold_time(value: Any) -> Checked:
    """RFC 4271, section 4.2: three seconds at least. Zero means never: a host that is lost would keep its path."""
    return _seconds(value, 3, 65535)


def keepalive_time(value: Any) -> Checked:
    return _seconds(value, 1, 65535 // 3)


def connect_time(value: Any) -> Checked:
    return _seconds(value, 1, 65535)


def _seconds(value: Any, low: int, high: int) -> Checked:
    """A whole number of seconds, with or without its unit."""
    found = values.seconds(value)[0] if isinstance(value, str) and not value.isdigit() else value
    return integer(low, high, "a time in seconds")(found)


def hops(value: Any) -> Checked:
    """How far away a peer may be: a number of hops, or whether it may be further than the next one."""
    if boolean(value)[1] is None:
        return (MAX_HOPS if boolean(value)[0] else 0), None
    return integer(0, MAX_HOPS, "true, false, or a number of hops")(value)


def distance(value: Any) -> Checked:
    """How far away a peer is at most, for GTSM (RFC 5082): packets from further away are ignored."""
    if boolean(value)[1] is None:
        return (1 if boolean(value)[0] else 0), None
    return integer(0, MAX_HOPS, "true, false, or a number of hops")(value)


def community(value: Any) -> Checked:
    """A community, large or not, that does not say by itself that the member is going away."""
    if str(value) in GRACEFUL_SHUTDOWN:
        return None, "with it routers avoid the member for good: a run sets it while a member is drained."
    return bgp_values.community(value)


def communities(value: Any) -> Checked:
    found, wrong = list_of(community)(value)
    if not wrong and len(found) > MOST_COMMUNITIES:
        return None, f"{MOST_COMMUNITIES} at most are allowed."
    return found, wrong


OF_A_SESSION = {
    "password": Field(bgp_values.password, "", secret=True),
    "hold_time": Field(hold_time, 9),
    "keepalive_time": Field(keepalive_time),  # a third of the hold time
    "connect_time": Field(connect_time, 1),
    "communities": Field(communities, []),
    "local_address": Field(values.optional(address), ""),
    "multihop": Field(hops, 0),
    "ttl_security": Field(distance, 0),
    "route_reflector": Field(boolean, False),  # whether the router passes on what it learns by iBGP
}
WHOLE = {
    "asn": Field(bgp_values.asn, required=True),
    "router_id": Field(bgp_values.router_id, ""),
    "peers": Field(anything, []),
    "bfd": Field(anything, False),  # for all peers; or its timers
    **OF_A_SESSION,
}
PEER = {
    "address": Field(bgp_values.peer_address, required=True),
    "asn": Field(bgp_values.asn, required=True),
    "port": Field(port, BGP_PORT),
    "bfd": Field(boolean),
    "families": Field(list_of(one_of(*FAMILIES.values()), at_least=1)),  # that of its address, and no other
    **{key: field._replace(default=None) for key, field in OF_A_SESSION.items()},
}
SETTINGS = {
    "reach": Field(one_of(*REACHES), VRRP),
    "bgp": Field(anything, {}),
    "bgp_peers": Field(anything, []),
}
PER_MEMBER = ("bgp", "bgp_peers")

# What only VRRP has, by the variables of the layouts.
OF_VRRP = (
    *("vrid", "auth_pass", "vrrp_version", "advert_interval", "preempt", "preempt_delay", "priorities", "multicast"),
    *("track_weight", "sync", "one_instance", "notify", "interface", "vrrp_interface", "other_clusters"),
)
OF_VRRP_VIPS = ("vrid", "first")


def is_bgp(settings: Mapping[str, Any]) -> bool:
    """Whether BGP alone carries the VIPs."""
    return bool(settings["reach"] == BGP)


def announces(settings: Mapping[str, Any]) -> bool:
    return settings["reach"] in (BGP, BOTH)


def without_effect(
    settings: Mapping[str, Any], schema: Mapping[str, Field], vips: Collection[str], prefix: str
) -> List[str]:
    """Return a sentence for each variable that nothing reads with this reach.

    :param vips: the variables that name VIPs
    """
    if not announces(settings):
        unread = [f"{prefix}_{key}" for key in PER_MEMBER if settings[key]]
        return [f"{name} has no effect with {prefix}_reach {VRRP}: set {prefix}_reach to {BGP}." for name in unread]
    if not is_bgp(settings):
        return []
    given = [key for key in OF_VRRP if key in schema and settings[key] != schema[key].default]
    places = [f"{prefix}_{key}" for key in given] + [
        f"{prefix}_{name}[{at}].{key}"
        for name in vips
        for at, item in enumerate(settings[name] if isinstance(settings[name], list) else [])
        for key in OF_VRRP_VIPS
        if isinstance(item, dict) and item.get(key) is not None
    ]
    return [f"{place} has no effect with {prefix}_reach {BGP}: leave it out." for place in places]


def without_vrrp(settings: Settings, schema: Mapping[str, Field]) -> Settings:
    """Return the settings of a layout in which nothing is left that only VRRP has."""
    if not is_bgp(settings):
        return settings
    return {**settings, **{key: schema[key].default for key in OF_VRRP if key in schema}}


def read_bgp(given: Mapping[str, Any], prefix: str, faults: Faults) -> Settings:
    """Return what a member has of `WHOLE`, its peers each with all of `PEER`, and BFD's timers.

    :param given: the member's settings
    """
    place = f"{prefix}_bgp"
    whole = read(WHOLE, _translated(given.get("bgp") or {}, OPENSHIFT, place, faults), place, faults)
    timers, with_bfd = _bfd(whole["bfd"], f"{place}.bfd", faults)
    own = given.get("bgp_peers")
    peers, where = (own, f"{prefix}_bgp_peers") if own else (whole["peers"], f"{place}.peers")
    if not isinstance(peers, list):
        faults.append(f"{where} is no list: write each peer as a mapping with address and asn.")
        peers = []
    if len(peers) > MOST_PEERS:
        faults.append(f"{where} has {len(peers)} peers, and {MOST_PEERS} at most are allowed.")
    usual = {**{key: whole[key] for key in OF_A_SESSION}, "bfd": with_bfd, "communities": None}
    found = [_peer(item, f"{where}[{at}]", usual, faults) for at, item in enumerate(peers)]
    return {**whole, "bfd": timers, "peers": [peer for peer in found if peer["address"] and peer["asn"]]}


def _translated(given: Any, names: Mapping[str, str], place: str, faults: Faults) -> Any:
    """Return a mapping with the names of this collection in place of those of OpenShift's API."""
    if not isinstance(given, dict):
        return given
    found: Settings = {}
    for key, value in given.items():
        name = names.get(key, key)
        if name in found:
            faults.append(f"{place} has both {name} and {key}, which are the same: leave one of them out.")
        found[name] = value
    return found


def _bfd(given: Any, place: str, faults: Faults) -> Tuple[Settings, bool]:
    """Return BFD's timers, and whether peers have it that do not say so."""
    if isinstance(given, dict):
        return read(bgp_values.BFD, given, place, faults), True
    found, wrong = boolean(given)
    if wrong:
        faults.append(f"{place} is {shown(given)}: true, false, or a mapping with interval and multiplier is required.")
    return read(bgp_values.BFD, {}, place, faults), bool(found)


def _peer(item: Any, place: str, usual: Settings, faults: Faults) -> Settings:
    """Return a peer, with what all of them have where it says nothing else."""
    own = read(PEER, _translated(item, OPENSHIFT_PEER, place, faults), place, faults)
    found = {key: usual.get(key) if value is None else value for key, value in own.items()}
    family = FAMILIES[6 if ":" in str(found["address"]) else 4]
    others = [each for each in found["families"] or [] if each != family]
    if others:
        faults.append(
            f"{place}.families has {others[0]}, and its address is of {family}: add a peer with an address of "
            f"{others[0]}."
        )
    found["families"] = [family]
    most = int(found["hold_time"] or 0) // 3
    if found["keepalive_time"] is None:
        found["keepalive_time"] = most
    elif found["keepalive_time"] > most:
        faults.append(
            f"{place}.keepalive_time is {found['keepalive_time']} and hold_time {found['hold_time']}, so that one lost "
            f"message may end the session: lower it to {most}, or raise hold_time."
        )
    if found["multihop"] and found["ttl_security"]:
        faults.append(f"{place} has multihop and ttl_security, which exclude each other: leave one of them out.")
    return found
