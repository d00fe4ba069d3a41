# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Services of a pair with `plane: direct`. Pure."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults, place_of, shown
from ..._agent.direct import config
from ..layouts import direct
from ..layouts.direct import LOWEST, Direct, Service
from ..members.hosts import Member
from ..members.subnets import Placement
from ..model import direct_plane, pace
from ..model.agent import check_without_defaults, without_defaults
from ..model.plan import Vip
from ..model.services import SERVER, SERVICE, listeners
from ..model.values import is_name

MEND = "leave it out, or set plane to proxy"
_NO_ROOM = (
    f"pair_priorities end with {LOWEST}, so that there is none below them, and VIPs may stay where direct return has "
    f"stopped: choose priorities above {LOWEST}."
)

# What only a proxy can do for a service, and for a server.
ONLY_PROXIED = [key for key in SERVICE if key not in config.SERVICE]
ONLY_PROXIED_SERVER = [key for key in SERVER if key not in config.SERVER]


def planes(given: Any, place: str, faults: Faults) -> Tuple[Any, Dict[int, str]]:
    """Return services without their planes, and the planes of those that have more than a proxy, by number."""
    if not isinstance(given, list):
        return given, {}
    found = {}
    for at, item in enumerate(given):
        plane = item.get("plane", direct_plane.PROXY) if isinstance(item, dict) else direct_plane.PROXY
        if plane not in direct_plane.PLANES:
            choices = ", ".join(direct_plane.PLANES)
            faults.append(f"{place_of(place, at, item)}.plane is {shown(plane)}: choose one of {choices}.")
        elif plane != direct_plane.PROXY:
            found[at] = plane
    return [_without_plane(item, at in found) for at, item in enumerate(given)], found


def _without_plane(item: Any, is_direct: bool) -> Any:
    """Return a service as a proxy has it. The check that the plane shares with it keeps its own pace."""
    if not isinstance(item, dict):
        return item
    without = {key: value for key, value in item.items() if key != "plane"}
    check = without.get("check", {})
    return {**without, "check": {**pace.FORMER, **check}} if is_direct and isinstance(check, dict) else without


def read(
    settings: Mapping[str, Any],
    services: Mapping[str, Service],
    vips: Sequence[Vip],
    placements: Mapping[str, Mapping[str, Placement]],
    members: Sequence[Member],
    priorities: Sequence[int],
    faults: Faults,
) -> Optional[Direct]:
    """Return the direct plane of a pair; None where no service has it, or where it cannot be.

    :param services: those with a direct plane, as `read_services` returns them, each with its `plane`, by their places
    """
    if not services:
        return None
    wrong = [fault for place, service in services.items() for fault in _only_proxied(service, place)]
    wrong = wrong or [fault for place, service in services.items() for fault in _followed(settings, service, place)]
    found = {} if wrong else {place: _planned(service, vips) for place, service in services.items()}
    wrong += [
        f"{place} has no VIP of its servers' family: add one, or set plane to proxy."
        for place, service in found.items()
        if not service["bind"]
    ]
    used = {address for service in found.values() for address in service["bind"]}
    interfaces = {
        member["name"]: direct.interface_of(member["name"], placements.get(member["name"], {}), used, wrong)
        for member in members
    }
    wrong += [fault for member in members for fault in direct.off_link(member, interfaces[member["name"]], found)]
    wrong = wrong or _refused_by_the_plane(found)
    faults += wrong
    moves = settings["preempt"] and not (settings["sync"] and len(vips) > 1)
    lowered = direct.lowered(priorities) if moves else 0
    pause = direct.pause(settings["advert_interval"]) if moves else 0
    return None if wrong else Direct([*found.values()], interfaces, lowered, pause)


def warnings(about: Optional[Direct], priorities: Sequence[int]) -> List[str]:
    if about is None:
        return []
    if about.lowered:
        return [_NO_ROOM] if about.lowered == min(priorities) else []
    return [
        "pair_preempt is false or pair_sync is true, so that no VIP moves when a member's direct return stops: its "
        "lasting connections are cut then, and the balancer serves new ones."
    ]


def out_of_reach(about: Optional[Direct], services: Sequence[Service], vips: Sequence[Vip]) -> List[str]:
    """Say which services the servers do not reach at a VIP that they have on lo, where each reaches itself."""
    found = []
    for vip in vips if about else ():
        direct_ones = [each for each in about.services if vip.address in each["bind"]] if about else []
        servers = {server["address"] for each in direct_ones for server in each["servers"]}
        ports = {each["port"] for each in direct_ones}
        for each in listeners([*services]):
            own = {server["address"] for server in each["servers"] if server["port"] in (None, each["port"])}
            lost = sorted(servers - own, key=ipaddress.ip_address)
            if lost and each["port"] not in ports and direct.is_bound(each, vip):
                found.append(
                    f"{', '.join(lost)} cannot reach {each['name']} at {vip.address} port {each['port']}: as servers "
                    f"of direct return they have that VIP on lo. If they need to, bind {each['name']} to another VIP."
                )
    return found


def _only_proxied(service: Service, place: str) -> Iterator[str]:
    """Refuse what only a proxy can do: nobody but the servers reads, counts or limits connections here."""
    for key in ONLY_PROXIED:
        if service[key] != SERVICE[key].default:
            yield f"{place}.{key} is {shown(service[key])}, which only a proxy can do: {MEND}."
    if service["check"]["agent"]:
        yield f"{place}.check.agent is set, which only a proxy can do: {MEND}."
    if not service["servers"]:
        yield f"{place}.servers is empty: name at least two, or set plane to proxy."
    for server in service["servers"]:
        where = f"{place}.servers: {server['name']}"
        if is_name(server["address"] or ""):
            yield f"{where} has the name {server['address']}: write its address, or set plane to proxy."
        for key in ONLY_PROXIED_SERVER:
            if server[key] != SERVER[key].default:
                yield f"{where} has {key} {shown(server[key])}, which only a proxy can do: {MEND}."


def _followed(settings: Mapping[str, Any], service: Service, place: str) -> Iterator[str]:
    if settings["follow"] and service["name"] in settings["follow_services"]:
        yield (
            f"{place} is one of pair_follow_services, and the servers of direct return are those of the inventory: "
            "leave it out there, or set plane to proxy."
        )


def _planned(service: Service, vips: Sequence[Vip]) -> Service:
    """Return a service as the plane's configuration has it, without what is its default."""
    servers = [without_defaults(server, config.SERVER, ("name", "address")) for server in service["servers"]]
    check = check_without_defaults(service["check"], config.CHECK, ("type", "interval", "fall", "rise"))
    families = {":" in server["address"] for server in servers if server["address"]}
    bind = [vip.address for vip in vips if direct.is_bound(service, vip) and (vip.version == 6) in families]
    new_connections = direct_plane.NEW_CONNECTIONS[service["plane"]]
    known = {**service, "bind": bind, "servers": servers, "check": check, "new_connections": new_connections}
    return without_defaults(known, config.SERVICE, ("name", "bind", "port", "check", "servers"))


def _refused_by_the_plane(services: Mapping[str, Service]) -> Faults:
    """Return why the plane would not start with these services, in the words of the pair."""
    text = json.dumps({"interface": "eth0", "services": [*services.values()]})
    return [_in_words_of_the_pair(fault, [*services]) for fault in config.parse(text)[1]]


def _in_words_of_the_pair(fault: str, places: Sequence[str]) -> str:
    return re.sub(r"^services\[(\d+)\](?: \([^)]*\))?", lambda found: places[int(found[1])], fault)
