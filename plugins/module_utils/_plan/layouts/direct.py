# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Services of a pair with `plane: direct`, whose servers answer the clients themselves. Pure.

The balancer serves them, too: it is the fallback of a member whose direct plane does not run. So the loss of a plane
lowers a member's priority instead of taking its VIPs away. The VIPs go to a member whose plane runs, where lasting
connections live on. Where no plane runs, they stay, and the balancer serves.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults, place_of, shown
from ..._agent.direct import config
from ..._agent.direct.settings import Settings
from ..._shared import engines, events
from ..model.agent import without_defaults
from ..model.plan import MemberPlan, Vip
from ..model.services import ANY, SERVER, SERVICE
from ..model.values import is_name
from .members import Member
from .subnets import Placement

PROXY, DIRECT = PLANES = ("proxy", "direct")
DOWN = "direct_down"  # the track file that the plane writes
UNIT = engines.Daemon(engines.DIRECT).unit
CONFIG = "/etc/onprem-lb-direct/direct.json"
DOWN_FILE = Settings._field_defaults["down_file"]
LONGEST_PAUSE = 60  # seconds, in the plane's configuration
LARGEST_WEIGHT = 253
MEND = "leave it out, or set plane to proxy"
_OUTWEIGHED = (
    f"pair_priorities are {{}} apart, and a track file weighs {LARGEST_WEIGHT} at most, so that VIPs may stay where "
    f"direct return has stopped: choose priorities that are less than {LARGEST_WEIGHT} apart."
)

# What only a proxy can do for a service, and for a server.
ONLY_PROXIED = ("balance", "maxconn", "send_proxy", "allow", "tls", "routes", "frontend_lines", "backend_lines")
ONLY_PROXIED_SERVER = ("maxconn", "backup", "options")

Service = Dict[str, Any]


class Direct(NamedTuple):
    """What a pair has read.

    :ivar services: as the plane's configuration has them
    :ivar interfaces: of each member's plane
    :ivar weight: what the loss of its plane adds to a member's priority; 0 where VRRP does not react to it
    :ivar distance: between the first and the last priority
    :ivar stop_pause: for how many seconds a plane that stops keeps its table
    """

    services: List[Service]
    interfaces: Dict[str, str]
    weight: int
    distance: int
    stop_pause: float

    def tracked(self, vip: Vip) -> List[Dict[str, Any]]:
        """Return what the instances of a VIP track."""
        return [{"name": DOWN, "weight": self.weight}] if self.weight and self.concerns(vip) else []

    @property
    def track_files(self) -> List[Dict[str, Any]]:
        return [{"name": DOWN, "path": DOWN_FILE}] if self.weight else []

    def concerns(self, vip: Vip) -> bool:
        return any(vip.address in service["bind"] for service in self.services)

    def watched(self, vips: Sequence[Vip], others: Sequence[str]) -> Dict[str, Dict[str, Any]]:
        """Return the loss of a plane, as `forecast.forecast` takes it.

        :param others: what else the pair tracks
        """
        lost = {
            "instances": [vip.name for vip in vips if self.concerns(vip)],
            "fatal": [events.DIRECT_DOWN] if self.weight else [],
            "harmless": {} if self.weight else {events.DIRECT_DOWN: 0},
            "blind_trackers": others,
            "serves": True,
            "failure": "direct return stops",
        }
        return {DIRECT: lost}

    def file(self, name: str) -> Dict[str, Any]:
        """Return the configuration of a member's plane, as `config_files` takes it."""
        whole = {"interface": self.interfaces[name], "stop_pause": self.stop_pause, "services": self.services}
        return {"path": CONFIG, "content": json.dumps(whole, indent=2) + "\n", "unit": UNIT}


def planes(given: Any, place: str, faults: Faults) -> Tuple[Any, List[int]]:
    """Return services without their planes, and the numbers of those that are direct."""
    if not isinstance(given, list):
        return given, []
    direct = []
    for at, item in enumerate(given):
        plane = item.get("plane", PROXY) if isinstance(item, dict) else PROXY
        if plane not in PLANES:
            faults.append(f"{place_of(place, at, item)}.plane is {shown(plane)}: choose one of {', '.join(PLANES)}.")
        if plane == DIRECT:
            direct.append(at)
    without = [
        {key: value for key, value in item.items() if key != "plane"} if isinstance(item, dict) else item
        for item in given
    ]
    return without, direct


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

    :param services: those with `plane: direct`, as `read_services` returns them, by their places
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
        member["name"]: _interface(member["name"], placements.get(member["name"], {}), used, wrong)
        for member in members
    }
    wrong += [fault for member in members for fault in _off_link(member, interfaces[member["name"]], found)]
    wrong = wrong or _refused_by_the_plane(found)
    faults += wrong
    moves = settings["preempt"] and not (settings["sync"] and len(vips) > 1)
    distance = priorities[0] - priorities[-1]
    weight = -min(LARGEST_WEIGHT, distance + 1) if moves else 0
    pause = _pause(settings["advert_interval"]) if moves else 0
    return None if wrong else Direct([*found.values()], interfaces, weight, distance, pause)


def warnings(about: Optional[Direct]) -> List[str]:
    if about is None:
        return []
    if about.weight:
        return [_OUTWEIGHED.format(about.distance)] if about.distance >= LARGEST_WEIGHT else []
    return [
        "pair_preempt is false or pair_sync is true, so that no VIP moves when a member's direct return stops: its "
        "lasting connections are cut then, and the balancer serves new ones."
    ]


def lasting(vip: Vip, members: Mapping[str, MemberPlan]) -> str:
    """Return what becomes of a VIP's lasting connections in a failure; nothing where no service has a direct plane."""
    planned = next((member for member in members.values() if member.direct), None)
    if planned is None:
        return ""
    direct = json.loads(planned.direct["content"])["services"]
    kept = [service["name"] for service in direct if vip.address in service["bind"]]
    served = [service["name"] for service in planned.balancer.services if _is_bound(service, vip)]
    lost = ", ".join(name for name in served if name not in kept)
    said = [f"kept: {', '.join(kept)}"] if kept else []
    return "; ".join([*said, *([f"lost when the VIP moves or the balancer ends: {lost}"] if lost else [])])


def _pause(interval: float) -> float:
    """Return more than another member needs to take the VIP: Active_Down_Interval is three intervals and Skew_Time."""
    return min(LONGEST_PAUSE, 3 * interval + max(1, interval) + 1)


def _only_proxied(service: Service, place: str) -> Iterator[str]:
    """Refuse what only a proxy can do: nobody but the servers reads, counts or limits connections here."""
    for key in ONLY_PROXIED:
        if service[key] != SERVICE[key].default:
            yield f"{place}.{key} is {shown(service[key])}, which only a proxy can do: {MEND}."
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
    check = without_defaults(service["check"], config.CHECK, ("type", "interval", "fall", "rise"))
    families = {":" in server["address"] for server in servers if server["address"]}
    bind = [vip.address for vip in vips if _is_bound(service, vip) and (vip.version == 6) in families]
    known = {**service, "bind": bind, "servers": servers, "check": check}
    return without_defaults(known, config.SERVICE, ("name", "bind", "port", "check", "servers"))


def _is_bound(service: Service, vip: Vip) -> bool:
    return vip.address in service["bind"] or ("::" if vip.version == 6 else ANY) in service["bind"]


def _interface(name: str, placements: Mapping[str, Placement], vips: Any, faults: Faults) -> str:
    """Return the interface of a member's plane, of which there is one."""
    found = sorted({placement.interface for vip, placement in placements.items() if vip in vips})
    if len(found) > 1:
        faults.append(
            f"{name}: the VIPs of services with plane direct are on {' and '.join(found)}, and the plane has one "
            "interface: bind these services to the VIPs of one of them."
        )
    return found[0] if found else ""


def _off_link(member: Member, interface: str, services: Mapping[str, Service]) -> Iterator[str]:
    """Refuse a server that is not on the link of the plane. Of a host that was not read its subnets are unknown."""
    addresses = [each for each in member["host"]["addresses"] if each["interface"] == interface]
    if not interface or any(each.get("assumed") for each in addresses):
        return
    links = [ipaddress.ip_interface(f"{each['address']}/{each['prefix']}").network for each in addresses]
    for place, service in services.items():
        for server in service["servers"]:
            if not any(ipaddress.ip_address(server["address"]) in link for link in links):
                yield (
                    f"{place}.servers: {server['address']} is in no subnet of {interface} of {member['name']}, and "
                    "direct return reaches servers on its own link alone: move it there, or set plane to proxy."
                )


def _refused_by_the_plane(services: Mapping[str, Service]) -> Faults:
    """Return why the plane would not start with these services, in the words of the pair."""
    text = json.dumps({"interface": "eth0", "services": [*services.values()]})
    return [_in_words_of_the_pair(fault, [*services]) for fault in config.parse(text)[1]]


def _in_words_of_the_pair(fault: str, places: Sequence[str]) -> str:
    return re.sub(r"^services\[(\d+)\](?: \([^)]*\))?", lambda found: places[int(found[1])], fault)


def missing_programs(about: Optional[Direct], member: Member, engine: str) -> Faults:
    """Return the program that the plane needs and that no role installs for the agent."""
    if about is None or engine != engines.AGENT or "nft" not in member["host"].get("missing_programs", []):
        return []
    return [f"{member['name']}: nft is missing, which plane direct needs: install nftables."]
