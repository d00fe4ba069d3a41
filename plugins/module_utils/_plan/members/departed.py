# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Members that have left the inventory, and may still run. Pure.

Such a member no longer hears the others, because they no longer send to it, and so it takes their VIPs for good.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Set, Tuple

from ..._shared import membership, versions
from ..._shared.engines import ROUTERS
from ..model.plan import Departed

Members = Dict[str, List[str]]


def departed(members: List[Dict[str, Any]], vips: Iterable[str]) -> List[Departed]:
    """Return the former members, each once.

    :param members: as in `planner`
    :param vips: the plan's
    """
    hosts = [member["host"] for member in members if {*ROUTERS} & {*member["host"].get("active_units", [])}]
    running = membership.vips([instance for host in hosts for instance in host.get("instances", [])])
    irreplaceable = [vip for vip in vips if vip not in running]
    found = {former[0]: Departed(name, former[0], irreplaceable) for name, former in _former(members)}
    return list(found.values())


def addresses(members: List[Dict[str, Any]]) -> Set[str]:
    """Return all addresses that are known of former members."""
    return {address for _name, former in _former(members) for address in former}


def macs(members: List[Dict[str, Any]]) -> Set[str]:
    """Return the MACs of former members, as the present ones see them on their links. One of them may hold a VIP."""
    known = addresses(members)
    seen = (member["host"].get("answering", {}) for member in members)
    return {mac for answering in seen for address in known for mac in answering.get(address, [])}


def _former(members: List[Dict[str, Any]]) -> Iterator[Tuple[str, List[str]]]:
    """Yield the name and the addresses of each former member, the one to connect to first."""
    present = {info["address"] for member in members for info in member["host"]["addresses"]}
    present |= {member.get("address", "") for member in members}
    return membership.former(
        [member["name"] for member in members],
        present,
        [member["host"].get("members") or {} for member in members],
        [instance for member in members for instance in member["host"].get("instances", [])],
    )


def record(members: List[Dict[str, Any]], sources: Dict[str, List[str]]) -> Dict[str, Any]:
    """Return what a run leaves on each member: of all members the address to connect to, then those they send from.

    :param sources: by member
    """
    addresses = {
        member["name"]: list(dict.fromkeys([member.get("address", member["name"]), *sources[member["name"]]]))
        for member in members
    }
    return versions.marked(addresses)
