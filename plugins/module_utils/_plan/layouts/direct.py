# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Services with `plane: direct`, whose servers answer the clients themselves: what every layout has of them. Pure.

The balancer serves them, too: it is the fallback of a member whose direct plane does not run. So the loss of a plane
lowers a member's priority instead of taking its VIPs away. The VIPs go to a member whose plane runs, where lasting
connections live on. Where no plane runs, they stay, and the balancer serves.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults
from ..._agent.direct import settings as plane
from ..._shared import engines, events, paths
from ..members.hosts import Member
from ..members.subnets import Placement
from ..model import direct_plane
from ..model.plan import MemberPlan, Vip
from ..model.services import ANY

DOWN = "direct_down"  # the track file that the plane writes
UNIT = paths.PLANE
CONFIG = paths.PLANE_CONFIG
DOWN_FILE = plane.Settings._field_defaults["down_file"]
LONGEST_PAUSE = 60  # seconds, in the plane's configuration
LOWEST = 1  # of the priorities

Service = Dict[str, Any]


class Direct(NamedTuple):
    """What a layout has read.

    :ivar services: as the plane's configuration has them
    :ivar interfaces: of each member's plane
    :ivar lowered: the priority of each member that has lost its plane; 0 where VRRP does not react to it
    :ivar stop_pause: for how many seconds a plane that stops keeps its table
    :ivar members_serve: whether the members themselves are the servers
    """

    services: List[Service]
    interfaces: Dict[str, str]
    lowered: int
    stop_pause: float
    members_serve: bool = False

    def tracked(self, vips: Sequence[Vip], priority: int) -> List[Dict[str, Any]]:
        """Return what the instance of some VIPs with this priority tracks.

        Members that have lost their planes are equals: none preempts the one that holds the VIP.
        """
        weight = min(self.lowered - priority, -1)
        return [{"name": DOWN, "weight": weight}] if self.lowered and any(map(self.concerns, vips)) else []

    @property
    def track_files(self) -> List[Dict[str, Any]]:
        return [{"name": DOWN, "path": DOWN_FILE}] if self.lowered else []

    def concerns(self, vip: Vip) -> bool:
        return any(vip.address in service["bind"] for service in self.services)

    def watched(self, vips: Sequence[Vip], others: Sequence[str]) -> Dict[str, Dict[str, Any]]:
        """Return the loss of a plane, as `forecast.forecast` takes it.

        :param others: what else the layout tracks
        """
        lost = {
            "instances": list(dict.fromkeys(vip.name for vip in vips if self.concerns(vip))),
            "fatal": [events.DIRECT_DOWN] if self.lowered else [],
            "harmless": {} if self.lowered else {events.DIRECT_DOWN: 0},
            "blind_trackers": others,
            "serves": True,
            "failure": "direct return stops",
        }
        return {direct_plane.DIRECT: lost}

    def file(self, name: str) -> Dict[str, Any]:
        """Return the configuration of a member's plane, as `config_files` takes it; nothing of one without a plane."""
        if name not in self.interfaces:
            return {}
        whole = {"interface": self.interfaces[name], "stop_pause": self.stop_pause, "services": self.services}
        return {"path": CONFIG, "content": json.dumps(whole, indent=2) + "\n", "unit": UNIT}

    @property
    def memory(self) -> int:
        """How many MiB a plane may need."""
        return plane.memory(sum(service.get("buckets", plane.FEWEST) for service in self.services))

    def server(self, name: str) -> Dict[str, Any]:
        """Return what the role `direct_server` is called with on a member; nothing where that is no server."""
        if not self.members_serve or name not in self.interfaces:
            return {}
        services = [{key: service[key] for key in service if key != "new_connections"} for service in self.services]
        return {"interface": self.interfaces[name], "services": services}


def lowered(priorities: Sequence[int]) -> int:
    """Return the priority of a member that has lost its plane: below that of all the others, if there is one."""
    return max(LOWEST, min(priorities) - 1)


def lasting(vip: Vip, members: Mapping[str, MemberPlan]) -> str:
    """Return what becomes of a VIP's lasting connections in a failure; nothing where no service has a direct plane."""
    planned = next((member for member in members.values() if member.direct), None)
    if planned is None:
        return ""
    services, redirect = direct_plane.services(planned.direct), planned.balancer.redirect
    if redirect and vip.address not in redirect.vips:
        return ""  # the balancer serves nothing there
    there = [service for service in services if vip.address in service["bind"]]
    kept = {service["port"]: service["name"] for service in there if not direct_plane.drains(service)}
    ports = {to_port: port for port, to_port in redirect.ports.items()} if redirect else {}
    served = [service for service in planned.balancer.services if is_bound(service, vip)]
    lost = ", ".join(each["name"] for each in served if ports.get(each["port"], each["port"]) not in kept)
    older = [f"{service['name']} from before it drained" for service in there if direct_plane.drains(service)]
    said = [f"kept: {', '.join([*kept.values(), *older])}"] if there else []
    return "; ".join([*said, *([f"lost when the VIP moves or the balancer ends: {lost}"] if lost else [])])


def kept_ports(vip: Vip, members: Mapping[str, MemberPlan]) -> List[int]:
    """Return the ports of a VIP whose connections the servers keep, whichever member they come by."""
    planned = next((member for member in members.values() if member.direct), None)
    return direct_plane.kept_ports(planned.direct, vip.address) if planned else []


def is_bound(service: Service, vip: Vip) -> bool:
    return vip.address in service["bind"] or ("::" if vip.version == 6 else ANY) in service["bind"]


def pause(interval: float) -> float:
    """Return more than another member needs to take the VIP: Active_Down_Interval is three intervals and Skew_Time."""
    return min(LONGEST_PAUSE, 3 * interval + max(1, interval) + 1)


def interface_of(name: str, placements: Mapping[str, Placement], vips: Any, faults: Faults) -> str:
    """Return the interface of a member's plane, of which there is one."""
    found = sorted({placement.interface for vip, placement in placements.items() if vip in vips})
    if len(found) > 1:
        faults.append(
            f"{name}: the VIPs of services with plane direct are on {' and '.join(found)}, and the plane has one "
            "interface: bind these services to the VIPs of one of them."
        )
    return found[0] if found else ""


def off_link(member: Member, interface: str, services: Mapping[str, Service]) -> Iterator[str]:
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


def missing_programs(about: Optional[Direct], member: Member, engine: str) -> Faults:
    """Return the program that the plane needs and that no role installs for the agent."""
    if about is None or engine != engines.AGENT or "nft" not in member["host"].get("missing_programs", []):
        return []
    return [f"{member['name']}: nft is missing, which plane direct needs: install nftables."]
