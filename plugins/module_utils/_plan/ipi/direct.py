# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The API of an IPI-like cluster with `ipi_plane: direct`: its masters answer the clients themselves. Pure.

Each master is a balancer and a server at the same time. What comes in from the link goes to the API server of the
master that the client's address chooses, and no redirect leads it to the balancer. What a master itself or a pod on it
sends to a VIP stays on that master, because each has the VIPs on its loopback interface: the redirect leads it to the
master's own balancer, and so to an API server that is up.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence

from ..._agent.config.schema import Faults
from ..._agent.direct import config
from ..._shared import engines
from ..layouts import direct
from ..layouts.direct import Direct, Service
from ..members.hosts import Member
from ..model import direct_plane, pace
from ..model.agent import check_without_defaults
from . import services as ipi_services
from .cluster import Cluster

NAMES = {4: ipi_services.BACKEND, 6: f"{ipi_services.BACKEND}6"}  # a service has one family
PLACE = "ipi_plane"
# Seconds. A proxy passes what one master refuses on to the next one. Here its clients see that until it is noticed.
LONGEST_INTERVAL = 1
PACE = {"interval": LONGEST_INTERVAL, "fall": 2}
ONLY_PROXIED = {"slow_start": 0, "shutdown_sessions": False, "tcp_user_timeout": 0}  # of a preset's check


def read(
    cluster: Cluster,
    services: Sequence[Dict[str, Any]],
    members: Sequence[Member],
    priorities: Sequence[int],
    faults: Faults,
) -> Optional[Direct]:
    """Return the direct plane of the masters; None where they have none, or where it cannot be.

    :param services: of the balancer, that of the API first
    :param priorities: of the masters for the API's VIPs
    """
    if cluster.settings["plane"] == direct_plane.PROXY or not services:
        return None
    wrong = [*_conflicts(cluster)]
    found = [] if wrong else _services(cluster, services[0])
    used = {vip.address for vip in cluster.api.vips}
    masters = [member for member in members if member["name"] in cluster.masters]
    interfaces = {
        member["name"]: direct.interface_of(member["name"], cluster.placements.get(member["name"], {}), used, wrong)
        for member in masters
    }
    places = {f"{PLACE} ({service['name']})": service for service in found}
    wrong += [fault for member in masters for fault in direct.off_link(member, interfaces[member["name"]], places)]
    faults += wrong
    moves = cluster.preset.preempt
    lowered = direct.lowered(priorities) if moves else 0
    pause = direct.pause(cluster.settings["advert_interval"]) if moves else 0
    return None if wrong else Direct(found, interfaces, lowered, pause, members_serve=True)


def warnings(about: Optional[Direct], preset: str) -> List[str]:
    if about is None or about.lowered:
        return []
    return [
        f"ipi_preset {preset} does not preempt, so that no VIP moves when a master's direct return stops: its lasting "
        "connections are cut then, and its own API server serves new ones."
    ]


def _conflicts(cluster: Cluster) -> Iterator[str]:
    """Refuse what direct return does not go together with, yet."""
    settings = cluster.settings
    plane = settings["plane"]
    if cluster.bootstrap or cluster.bootstrap_address:
        yield (
            f"{PLACE} is {plane} while ipi_bootstrap is set: the bootstrap host is not a server of direct return, so "
            "leave it at proxy until ipi_bootstrap_complete is true."
        )
    if cluster.preset.server_check.get("agent"):
        yield f"ipi_server_check.agent is set, which only a proxy can do: leave it out, or set {PLACE} to proxy."
    if settings["follow"]:
        yield (
            f"{PLACE} is {plane} and ipi_follow is true, and the servers of direct return are those of the inventory: "
            f"set {PLACE} to proxy, or ipi_follow to false."
        )
    if settings["delivery"] == engines.POD:
        yield f"{PLACE} is {plane}, which runs as a unit, and ipi_delivery is pod: set one of them to its default."


def _services(cluster: Cluster, api: Dict[str, Any]) -> List[Service]:
    """Return the API server of each master, in each family that has a VIP."""
    check = {**api["check"], **ONLY_PROXIED, "fast_interval": config.CHECK["fast_interval"].default}
    if (check["interval"], check["fall"]) == (pace.INTERVAL, pace.FALL):  # which is the proxy's, not the user's
        check.update(PACE)
    check["interval"] = min(check["interval"], LONGEST_INTERVAL)
    check = check_without_defaults(check, config.CHECK, ("type", "interval", "fall", "rise"))
    shared = {
        "port": cluster.settings["api_port"],
        "proxy_port": cluster.preset.ports["lb"],
        "new_connections": direct_plane.NEW_CONNECTIONS[cluster.settings["plane"]],
        "check": check,
    }
    found = []
    for version, name in NAMES.items():
        vips = [vip.address for vip in cluster.api.vips if vip.version == version]
        servers = [
            {"name": each, "address": cluster.placements[each][vip].address}
            for vip in vips[:1]
            for each in cluster.masters
        ]
        service = {"name": name, "bind": vips, **shared, "servers": servers}
        found += [service] if vips else []
    return found
