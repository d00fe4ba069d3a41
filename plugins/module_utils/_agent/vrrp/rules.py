# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules for a Virtual Router of either engine, and for the agent's VRRP configuration as a whole. Pure.

Instances, groups and checks are dicts with the keys of the model, each value valid by itself: see ``schema.read``; one
that was refused is its default, or None. Times are seconds.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..checks.settings import INTERFACE
from ..config.fields import MILLION
from ..config.schema import Faults, Field, integer, refused, repeated, undefined, word
from .core import packet, tracking
from .core.packet import PASSWORD_SIZE
from .notation import read_route, split_dev

V3_INTERVAL = (0.01, 40.95)  # 12 bits of centiseconds, RFC 9568 section 5.2.7
V2_INTERVAL = (1, 255)  # 8 bits of seconds, RFC 3768 section 5.3.7
ttl = integer(1, 255, "a TTL")
MAX_ADDRESSES = 255  # the count has 8 bits, RFC 9568 section 5.2.5

Item = Dict[str, Any]

TRACKED = {
    "name": Field(word, required=True),
    # 0 means: its failure puts the instance into FAULT.
    "weight": Field(integer(-253, 253), 0),
}


def vip(value: Any) -> Tuple[Any, Optional[str]]:
    """An address with its prefix length; /32 or /128 if it has none."""
    try:
        interface = ipaddress.ip_interface(str(value).replace("%", " "))  # a zone may contain anything
    except ValueError:
        return None, "an address, with or without a prefix length, is required."
    return (str(interface) if "/" in str(value) else f"{interface.ip}/{interface.max_prefixlen}"), None


def spelled_out(track: Any) -> Any:
    """Turn bare names, the common case, into mappings."""
    return [{"name": item} if isinstance(item, str) else item for item in track] if isinstance(track, list) else track


def family(instance: Dict[str, Any], place: str, faults: Faults) -> int:
    """Return 4 or 6: a Virtual Router protects one family, RFC 9568 section 1.5."""
    families = {ipaddress.ip_interface(split_dev(address)[0]).version for address in instance["addresses"]}
    if len(families) > 1:
        faults.append(f"{place}.addresses mixes IPv4 and IPv6: make an instance for each, they may share the VRID.")
    return min(families, default=4)


def contradictions(instance: Dict[str, Any], place: str, wrong: Faults) -> Faults:
    """Return which values exclude each other. The ``family`` of the instance is known.

    :param wrong: what is wrong with the values themselves
    """
    return [f"{place}.{fault}" for keys, fault in _excluded(instance) if not refused(wrong, place, *keys)]


def _excluded(instance: Dict[str, Any]) -> Iterator[Tuple[Tuple[str, ...], str]]:
    """Yield what is wrong, with the keys of the values between which it is."""
    version, min_ttl = instance["version"], instance["min_ttl"]
    if instance["family"] == 6 and version == 2:
        yield ("version", "addresses"), "version is 2: IPv6 addresses need VRRP version 3."
    for fault in interval_faults(version, instance["advert_interval"], "advert_interval"):
        yield ("version", "advert_interval"), fault
    if instance["auth_pass"] and version == 3:
        yield ("version",), "auth_pass is set: VRRP version 3 has no authentication, leave it out."
    if instance["multicast"] and min_ttl not in (None, packet.REQUIRED_HOP_LIMIT):
        fault = f"min_ttl is {min_ttl}: over multicast VRRP requires {packet.REQUIRED_HOP_LIMIT}, leave it out."
        yield ("multicast",), fault
    if not instance["multicast"] and not instance["peers"]:
        # Without peers every member would become Active.
        yield ("multicast", "peers"), "peers is empty: name the other members, or set multicast to true."


def interval_faults(version: int, interval: float, place: str) -> Faults:
    """Refuse an Advertisement_Interval that a message of this version cannot have."""
    low, high = V2_INTERVAL if version == 2 else V3_INTERVAL
    if not low <= interval <= high or (version == 2 and interval != int(interval)):
        unit = "whole seconds" if version == 2 else "seconds"
        mend = "; version 3 takes fractions" if version == 2 and interval < 1 else ""
        return [f"{place} is {interval}: VRRP version {version} takes {low} to {high} {unit}{mend}."]
    if version == 3 and round(interval * MILLION) % packet.CENTISECOND:
        return [f"{place} is {interval}: VRRP version 3 counts in steps of 0.01 seconds."]
    return []


def too_long(auth_pass: str, place: str) -> Faults:
    """Refuse what VRRP would cut silently. The sentence does not repeat the password."""
    length = len(auth_pass.encode())
    if length > PASSWORD_SIZE:
        unit = "characters" if auth_pass.isascii() else "bytes"
        return [f"{place} has {length} {unit}: VRRP compares the first {PASSWORD_SIZE} only, shorten it."]
    return []


def vrid_clashes(instances: List[Dict[str, Any]], place: str) -> Faults:
    """Refuse a VRID twice on one link and in one family: to other routers that is one Virtual Router."""
    seen: Dict[Tuple[Any, ...], str] = {}
    faults = []
    for instance in instances:
        key = (instance["interface"], instance["vrid"], instance["family"])
        if key in seen and None not in key:
            faults.append(
                f"{place}: {seen[key]} and {instance['name']} both have VRID {instance['vrid']} on "
                f"{instance['interface']}: give one of them another VRID."
            )
        seen.setdefault(key, instance["name"])
    return faults


def same_routes(instances: List[Item], place: str) -> Faults:
    """Refuse two routes of one metric to a network: the kernel may delete either in place of the other."""
    ways = [(instance["name"], read_route(text)[0]) for instance in instances for text in instance["virtual_routes"]]
    seen: Dict[Tuple[str, int, int], str] = {}
    faults = []
    for name, route in ways:
        key = (route.to, route.table, route.metric)
        if key in seen:
            whose = name if seen[key] == name else f"{seen[key]} and {name}"
            faults.append(f"{place}: two routes of {whose} to {route.to} have the same metric: give each its own.")
        seen.setdefault(key, name)
    return faults


# -- the agent's configuration


def of_instance(instance: Item, place: str, wrong: Faults) -> Faults:
    """Return what is wrong with one instance by itself.

    :param wrong: what is wrong with its values
    """
    return [
        *contradictions(instance, place, wrong),
        *_times(instance, place),
        *_addresses(instance, place),
        *_routers(instance, place),
    ]


def _times(instance: Item, place: str) -> Iterator[str]:
    if instance["preempt_delay"] and not instance["preempt"]:
        yield f"{place}.preempt_delay is set, but preempt is false: leave one of them out."


def _addresses(instance: Item, place: str) -> Iterator[str]:
    own = _without_prefix(instance)
    if len(instance["addresses"]) > MAX_ADDRESSES:
        number = len(instance["addresses"])
        yield f"{place}.addresses has {number} of them: an advertisement has at most {MAX_ADDRESSES}."
    for address in repeated(own):
        yield f"{place}.addresses has {address} twice: leave one out."


def _routers(instance: Item, place: str) -> Iterator[str]:
    """Check the source address and the peers."""
    peers, source, family = instance["peers"], instance["source"], instance["family"]
    for key, address in [("peers", peer) for peer in peers] + ([("source", source)] if source else []):
        if ipaddress.ip_address(address).version != family:
            yield f"{place}.{key} has {address}, but its addresses are IPv{family}: name one of that family."
    if source in peers:
        yield f"{place}.peers has {source}, which is its own source: name the other members only."
    for address in sorted(set(peers) & set(_without_prefix(instance))):
        yield f"{place}.peers has {address}, which is one of its own addresses: name the other members only."
    for address in repeated(peers):
        yield f"{place}.peers has {address} twice: leave one out."
    if source in _without_prefix(instance) and instance["priority"] != tracking.OWNER:
        yield f"{place}.source is {source}, one of its own addresses, which a Backup has not: name one that stays."


def of_tracking(instance: Item, checks: List[Item], place: str) -> Faults:
    """Return what is wrong with what an instance tracks."""
    faults = undefined(instance["track"], checks, place)
    own = {check["name"] for check in checks if check["type"] == INTERFACE and _is_on(check, instance["interface"])}
    for item in instance["track"]:
        if item["name"] in own and not instance["dont_track_primary"]:
            faults.append(f"{place} has its own interface ({item['name']}), which is always tracked: leave it out.")
        if item["weight"] and instance["priority"] == tracking.OWNER:
            faults.append(
                f"{place} has {item['name']} with weight {item['weight']}, which cannot change the priority "
                f"{tracking.OWNER}: use weight 0 (FAULT), or a lower priority."
            )
    return faults


def _is_on(check: Item, interface: Any) -> bool:
    return interface is not None and check["interface"] == interface


def among_instances(instances: List[Item]) -> Faults:
    """Return what is wrong between instances."""
    faults = vrid_clashes(instances, "instances")
    holders: Dict[Any, Item] = {}
    for instance in instances:
        for address in set(_with_link(instance)):
            other = holders.setdefault(address, instance)
            if other is not instance:
                faults.append(
                    f"instances: {other['name']} and {instance['name']} both have the address {address[0]}: "
                    "leave it to one of them."
                )
    return faults + same_routes(instances, "instances")


def of_group(group: Item, instances: List[Item], place: str) -> Faults:
    """Return what is wrong with one sync group. As with keepalived, only a FAULT changes its members together."""
    members = group["instances"]
    faults = undefined([{"name": name} for name in members], instances, f"{place}.instances")
    faults += [f"{place}.instances has {name} twice: leave one out." for name in repeated(members)]
    faults += [
        f"{place} tracks {item['name']} with weight {item['weight']}, which counts for nothing in a group: "
        "use weight 0 (FAULT)."
        for item in group["track"]
        if item["weight"]
    ]
    faults += [
        f"{place}: its instance {instance['name']} tracks {item['name']} with weight {item['weight']}, "
        "which counts for nothing in a group: use weight 0 (FAULT)."
        for instance in instances
        if instance["name"] in members
        for item in instance["track"]
        if item["weight"]
    ]
    return faults


def among_groups(groups: List[Item]) -> Faults:
    """Return what is wrong between sync groups."""
    members = [name for group in groups for name in set(group["instances"])]
    return [
        f"sync_groups: {name} is in more than one of them: leave it in one, or make them one group."
        for name in repeated(members)
    ]


def _with_link(instance: Item) -> Iterator[Tuple[str, Optional[str]]]:
    """Yield each address with the link that it is on, where it matters: a link-local one may be on each of several."""
    for written in (*instance["addresses"], *instance["excluded_addresses"]):
        with_prefix, dev = split_dev(written)
        address = with_prefix.partition("/")[0]
        yield address, (dev or instance["interface"]) if ipaddress.ip_address(address).is_link_local else None


def _without_prefix(instance: Item) -> List[str]:
    return [address.partition("/")[0] for address in (*instance["addresses"], *instance["excluded_addresses"])]
