# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What becomes of lasting connections as the direct planes of members change: kept, or cut. Pure.

A plane that comes into use leaves the connections of the balancer to it, and one that drains those of its servers to
them. What cuts connections of servers that get new ones at this moment wants the user's word.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ..._agent.config.schema import Faults
from ..members.hosts import Member
from ..model import direct_plane
from ..model.plan import MemberPlan

Place = Tuple[str, int]


class Service(NamedTuple):
    """A service of a plane at a VIP.

    :ivar drains: whether new connections are left to the balancer
    :ivar servers: their names, by address
    :ivar serving: the addresses of those that get new connections
    """

    name: str
    drains: bool
    servers: Dict[str, str]
    serving: Sequence[str]


class Became(NamedTuple):
    """What becomes of the lasting connections of a service.

    :ivar mend: how to keep them; '' if nothing cuts them
    """

    what: str
    mend: str = ""


def faults(members: Sequence[Member], planned: Mapping[str, MemberPlan], vips: Sequence[str], prefix: str) -> Faults:
    """Refuse what cuts connections."""
    cuts = [each for each in _every(members, planned, vips) if each.mend]
    return [f"{each.what}. {each.mend}, or accept that with -e {prefix}_accept_cut=true." for each in cuts]


def sentences(members: Sequence[Member], planned: Mapping[str, MemberPlan], vips: Sequence[str]) -> List[str]:
    """Return what becomes of lasting connections, where it is no fault."""
    return [f"{each.what}." for each in _every(members, planned, vips)]


def _every(members: Sequence[Member], planned: Mapping[str, MemberPlan], vips: Sequence[str]) -> List[Became]:
    """Return what becomes of them, once of what is the same on several members. A VIP that goes takes them along."""
    found: Dict[Became, None] = {}
    for member in members:
        if member.get("outside_limit") or not member["host"].get("instances"):
            continue  # it stays as it is, or nothing runs there yet
        before, after = running(member["host"]), _planned(planned[member["name"]])
        places = [place for place in dict.fromkeys([*before, *after]) if place[0] in vips]
        for vip, port in places:
            old, new = before.get((vip, port)), after.get((vip, port))
            found.update(dict.fromkeys(_changed(f"{vip} port {port}", old, new)))
    return [*found]


def running(host: Mapping[str, Any]) -> Dict[Place, Service]:
    """Return what the plane of a host serves, as `host_info` has read it."""
    return {
        (vip, service["port"]): Service(
            service["name"],
            direct_plane.drains(service),
            {server["address"]: server["name"] for server in service["servers"]},
            [server["address"] for server in service["servers"] if server["serves"]],
        )
        for service in host.get("plane", [])
        for vip in service["bind"]
    }


def _planned(member: MemberPlan) -> Dict[Place, Service]:
    return {
        (vip, service["port"]): Service(
            service["name"],
            direct_plane.drains(service),
            {server["address"]: server.get("name", server["address"]) for server in service["servers"]},
            (),
        )
        for service in direct_plane.services(member.direct)
        for vip in service["bind"]
    }


def _changed(place: str, before: Any, after: Any) -> Iterator[Became]:
    name = (after or before).name
    if before is None:
        yield Became(f"{name} at {place} comes into direct return: the balancer keeps the connections that it has")
    elif after is None:
        yield from _ended(name, place, before)
    else:
        if after.drains and not before.drains:
            yield Became(f"New connections of {name} at {place} go to the balancer, and servers keep those they have")
        elif before.drains and not after.drains:
            yield Became(f"New connections of {name} at {place} go to servers, and the balancer keeps those it has")
        yield from _other_servers(name, place, before, after)


def _ended(name: str, place: str, before: Service) -> Iterator[Became]:
    if before.drains or not before.serving:
        yield Became(f"Direct return of {name} at {place} ends, with the connections that servers still have")
        return
    yield Became(
        f"Direct return of {name} at {place} ends, which cuts the lasting connections that its servers have",
        f"Set plane to {direct_plane.DRAINING} first, and end it once `status` counts no more packets",
    )


def _other_servers(name: str, place: str, before: Service, after: Service) -> Iterator[Became]:
    gone = [address for address in before.servers if address not in after.servers]
    cut = ", ".join(before.servers[address] for address in gone if address in before.serving)
    if cut:
        yield Became(
            f"{name} at {place} loses {cut}, which cuts the lasting connections there",
            "Drain each on every balancer first, and take it out once `status` counts no more packets to it",
        )
    if [address for address in after.servers if address not in before.servers] or gone:
        yield Became(
            f"{name} at {place} gets another list of servers, and lasting connections are kept by servers that have "
            "the same: run the role direct_server on all of them"
        )
