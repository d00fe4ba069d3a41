# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the balancer serves on the masters of an IPI-like cluster: the API, and what it says of itself."""

from __future__ import annotations

from typing import Any, Dict, List

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import Faults
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.ipi_cluster import Cluster
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import ANY, read_services

BACKEND = "masters"
# A connection that one server refuses goes to the next one at once, not after three tries: so does the agent anyway.
HAPROXYS_OWN = ["option log-health-checks", "option redispatch 1"]


def services(sketch: Cluster, masters: List[str], faults: Faults) -> List[Dict[str, Any]]:
    """The balancer is for the API only, and goes to the API server of every master."""
    settings, preset = sketch.settings, sketch.preset
    if not sketch.api.vips or any(sketch.api.vips[0].address not in sketch.seats[name] for name in masters):
        return []  # there are sentences for that
    servers: List[Dict[str, Any]] = [
        {
            "name": name,
            "address": sketch.seats[name][sketch.api.vips[0].address].address,
            "port": settings["api_port"],
            "weight": preset.server_weight,
        }
        for name in masters
    ]
    if settings["bootstrap"] and not settings["bootstrap_complete"]:
        address = settings["bootstrap"]
        servers.append({"name": "bootstrap", "address": address, "port": settings["api_port"], "backup": True})
    service = {
        "name": BACKEND,
        "bind": [ANY, "::"],
        "port": preset.ports["lb"],
        "balance": "roundrobin",
        "check": preset.server_check,
        "servers": servers,
    }
    read, wrong = read_services([service], "ipi")
    faults += wrong
    return read


def for_haproxy(services: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the services with what only HAProxy has to be told."""
    return [{**service, "backend_lines": HAPROXYS_OWN} for service in services]


def monitors(sketch: Cluster) -> List[Dict[str, Any]]:
    """The balancer says of itself that it runs, and that it has somebody to pass the API to."""
    ports, paths = sketch.preset.ports, sketch.preset.paths
    wanted: Dict[str, Dict[str, int]] = {"ready": {}, "monitor": {BACKEND: 1}}
    if ports["ready"] == ports["monitor"]:
        del wanted["monitor"]
    return [
        {
            "name": f"haproxy_{name}",
            "bind": [ANY, "::"],
            "port": ports[name],
            "path": paths[name],
            "at_least": at_least,
        }
        for name, at_least in wanted.items()
    ]
