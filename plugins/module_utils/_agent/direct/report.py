# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the direct plane reports; docs/direct.md describes the fields. Pure."""

from __future__ import annotations

from typing import Any, Dict

from ..proxy.settings import DOWN, UP
from ..runtime.loop import MILLION
from .packets import Packets
from .plane import Plane
from .settings import Service

Report = Dict[str, Any]


def build(plane: Plane, packets: Packets, up: bool) -> Report:
    """Return the part of the report that changes while the plane runs.

    :param up: what VRRP is told
    """
    writer = plane.writer
    return {
        "interface": plane.settings.interface,
        "mtu_fault": plane.mtu_fault() or None,
        "up": up,
        "table": {
            "in_force": plane.in_force is not None,
            "written_at": writer.written_at,
            "took": writer.took / MILLION if writer.took is not None else None,
            "fault": writer.fault,
            **writer.counts,
        },
        "services": [_service(service, plane, packets) for service in plane.settings.services],
    }


def _service(service: Service, plane: Plane, packets: Packets) -> Report:
    balanced = service.balanced
    usable, table = plane.usable(balanced), plane.in_force
    owners = table.owners.get((balanced.bind[0], balanced.port), frozenset()) if table else frozenset()
    servers = []
    for server in balanced.servers:
        state = plane.health.server_state(balanced, server)
        servers.append(
            {
                "name": server.name,
                "address": server.address,
                "mac": plane.macs.known.get(server.address),
                "weight": server.weight,
                "state": state.state,
                "since": state.since,
                "order": state.admin_state,
                "owner": server.address in owners,
                "proven": plane.is_proven(balanced, server),
                "second_chances": plane.gives_chances(balanced, server),
                "path_fault": plane.fault_of(balanced, server)
                or plane.fault_of_clients(balanced, server, packets)
                or plane.fault_of_chances(balanced, server)
                or None,
                "packets": packets.of(balanced.bind[0], balanced.port, server.address),
                "unanswered_attempts": packets.unanswered(balanced.bind[0], balanced.port, server.address),
                "check": state.last_check,
            }
        )
    return {
        "name": balanced.name,
        "bind": list(balanced.bind),
        "port": balanced.port,
        "buckets": service.buckets,
        "new_connections": service.new_connections,
        "state": UP if usable else DOWN,
        "usable": usable,
        "kept": bool(owners) and not usable,
        "servers": servers,
    }
