# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Members that have left the inventory, and may still run. Pure.

Such a member no longer hears the others, because they no longer send to it, and so it takes their VIPs for good.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple, Union

from ..._agent.config.schema import Faults
from ..._shared import membership, paths, versions
from ..._shared import pods as static_pods
from ..._shared.engines import ROUTERS
from ..model.plan import Departed

Members = Dict[str, List[str]]


class Judged(NamedTuple):
    """What becomes of a former member.

    :ivar faults: why nothing may become of it
    :ivar units: of its router, which stop
    :ivar pods: likewise
    :ivar lines: how to remove what goes on there
    """

    faults: Faults
    units: List[str] = []
    pods: List[str] = []
    lines: List[str] = []


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


def judged(
    former: Mapping[str, Any],
    found: Mapping[str, Any],
    vips: Collection[str],
    retired: Union[str, Collection[str]],
    prefix: str,
) -> Judged:
    """Return what becomes of a former member, of which its user may say that it is switched off.

    A connection that ignores the address, such as a local one, has read a host that is still a member.

    :param former: of the plan, as data
    :param found: what `host_info` returned there, or why it did not
    :param vips: the plan's
    :param retired: the names and addresses of those that are switched off; a text when it comes from the command line
    """
    off = [each.strip() for each in (retired.split(",") if isinstance(retired, str) else map(str, retired))]
    is_retired = bool({former["name"], former["address"]} & {*off})
    accept = f"-e {prefix}_retired={former['name']}."
    if former["address"] not in [each["address"] for each in found.get("addresses", [])]:
        return Judged([] if is_retired else [_unread(former, found.get("msg", "another host answered")) + accept])
    active, up = {*found["active_units"]}, {*found["active_units"], *found["enabled_units"]}
    held = membership.vips(found["instances"])
    alone = [vip for vip in former["irreplaceable"] if vip in held and active & {*ROUTERS}]
    left = sorted({*paths.BESIDE_ROUTERS} & {*found["own_units"]} & up)
    has_a_vip = bool(held & {*vips})
    return Judged(
        [_last(former["name"], alone) + accept] if alone and not is_retired else [],
        [unit for unit in ROUTERS if unit in up and unit != static_pods.ROUTER] if has_a_vip else [],
        [static_pods.ROUTER] if has_a_vip else [],
        [_removal(former["name"], left)] if left else [],
    )


def _unread(former: Mapping[str, Any], why: str) -> str:
    return (
        f"{former['name']} is no longer a member, but {former['address']} cannot be read ({why}). Its "
        "router may still run, and would take the VIPs of the others: put it back into the inventory, or switch it off "
        "and confirm that with "
    )


def _last(name: str, alone: Sequence[str]) -> str:
    return (
        f"{name} is no longer a member, and no router of another member serves {', '.join(alone)} yet: "
        "once its own had stopped, nobody would. Put it back into the inventory, and take it out after that run, or "
        "accept an outage with "
    )


def _removal(name: str, left: Sequence[str]) -> str:
    return (
        f"{name} is no longer a member, but it still has {', '.join(left)}, and the redirects and credentials that "
        f"belong to them. To remove all of it, put {name} back into the inventory, run onprem.lb.remove --limit {name} "
        "-e confirm=true, and take it out again."
    )
