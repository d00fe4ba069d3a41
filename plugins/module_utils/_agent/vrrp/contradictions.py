# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What does not go together in a configuration whose every value is good by itself. Pure.

Instances, groups and checks are dicts as ``config`` reads them; a value that was refused is its default, or None.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, Iterator, List

from ..checks.settings import INTERFACE
from ..config.schema import Faults
from . import rules
from .core import packet, tracking

MILLION = 1_000_000
MOST_ADDRESSES = 255  # the count has 8 bits, RFC 9568 section 5.2.5

Item = Dict[str, Any]


def of_instance(instance: Item, place: str) -> Faults:
    """Return what is wrong with one instance, seen alone."""
    return [
        *rules.contradictions(instance, place),
        *_times(instance, place),
        *_addresses(instance, place),
        *_routers(instance, place),
    ]


def _times(instance: Item, place: str) -> Iterator[str]:
    interval = instance["advert_interval"]
    if instance["version"] == 3 and round(interval * MILLION) % packet.CENTISECOND:
        yield f"{place}.advert_interval is {interval}: VRRP version 3 counts in steps of 0.01 seconds."
    if instance["preempt_delay"] and not instance["preempt"]:
        yield f"{place}.preempt_delay is set, but preempt is false: leave one of them out."


def _addresses(instance: Item, place: str) -> Iterator[str]:
    own = _without_prefix(instance)
    if len(own) > MOST_ADDRESSES:
        yield f"{place}.addresses has {len(own)} of them: an advertisement has at most {MOST_ADDRESSES}."
    for address in _repeated(own):
        yield f"{place}.addresses has {address} twice: leave one out."


def _routers(instance: Item, place: str) -> Iterator[str]:
    """The address that it sends from, and those that it sends to."""
    peers, source, family = instance["peers"], instance["source"], instance["family"]
    for key, address in [("peers", peer) for peer in peers] + ([("source", source)] if source else []):
        if ipaddress.ip_address(address).version != family:
            yield f"{place}.{key} has {address}, but its addresses are IPv{family}: name one of that family."
    if source in peers:
        yield f"{place}.peers has {source}, which is its own source: name the other members only."
    for address in sorted(set(peers) & set(_without_prefix(instance))):
        yield f"{place}.peers has {address}, which is one of its own addresses: name the other members only."
    for address in _repeated(peers):
        yield f"{place}.peers has {address} twice: leave one out."
    if source in _without_prefix(instance) and instance["priority"] != tracking.OWNER:
        yield f"{place}.source is {source}, one of its own addresses, which a Backup has not: name one that stays."


def of_check(check: Item, place: str) -> Faults:
    """Return what is wrong with one check, seen alone."""
    if check.get("ca") and not check["verify"]:
        return [f"{place}.ca is set, but verify is false: set verify to true, or leave ca out."]
    return []


def of_tracking(instance: Item, checks: List[Item], place: str) -> Faults:
    """Return what is wrong with what an instance tracks."""
    faults = rules.undefined(instance["track"], checks, place)
    own = {check["name"] for check in checks if check["type"] == INTERFACE and _is_on(check, instance["interface"])}
    for item in instance["track"]:
        if item["name"] in own:
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
    faults = rules.vrid_clashes(instances, "instances")
    holders: Dict[Any, Item] = {}
    for instance in instances:
        for address in set(_without_prefix(instance)):
            # A link-local address is another one on each link.
            link = instance["interface"] if ipaddress.ip_address(address).is_link_local else None
            other = holders.setdefault((address, link), instance)
            if other is not instance:
                faults.append(
                    f"instances: {other['name']} and {instance['name']} both have the address {address}: "
                    "leave it to one of them."
                )
    return faults


def of_group(group: Item, instances: List[Item], place: str) -> Faults:
    """Return what is wrong with one sync group. Its members change together, by FAULT only: as with keepalived."""
    members = group["instances"]
    faults = rules.undefined([{"name": name} for name in members], instances, f"{place}.instances")
    faults += [f"{place}.instances has {name} twice: leave one out." for name in _repeated(members)]
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
        for name in _repeated(members)
    ]


def _without_prefix(instance: Item) -> List[str]:
    return [address.partition("/")[0] for address in instance["addresses"]]


def _repeated(names: List[str]) -> List[str]:
    return sorted({name for name in names if names.count(name) > 1})
