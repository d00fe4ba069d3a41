# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the balancer serves on the masters of an IPI-like cluster: the API, and its own health. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, List

from ..._agent.config.schema import Faults
from ..model.services import ANY, read_services
from .ipi_cluster import Cluster

BACKEND = "masters"
# The parts of the one service, which the user writes as variables of the cluster.
OF_CHECK = re.compile(rf"^ipi\[0\] \({BACKEND}\)\.check\b")
OF_SERVERS = re.compile(rf"^ipi\[0\] \({BACKEND}\)\.servers\b")
# A connection that one server refuses goes to the next one at once, not after three tries: so does the agent anyway.
HAPROXY_LINES = ["option log-health-checks", "option redispatch 1"]


def services(cluster: Cluster, faults: Faults) -> List[Dict[str, Any]]:
    """Return the one service of the balancer: the API server of every master."""
    settings, preset, masters = cluster.settings, cluster.preset, cluster.masters
    if not cluster.api.vips or any(cluster.api.vips[0].address not in cluster.placements[name] for name in masters):
        return []  # which is a fault already
    servers: List[Dict[str, Any]] = [
        {
            "name": name,
            "address": cluster.placements[name][cluster.api.vips[0].address].address,
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
    faults += [OF_CHECK.sub("ipi_server_check", OF_SERVERS.sub("ipi_masters", fault)) for fault in wrong]
    return read


def monitors(cluster: Cluster) -> List[Dict[str, Any]]:
    """Return the ports that say whether the balancer runs, and whether it has an API server to pass requests to."""
    ports, paths = cluster.preset.ports, cluster.preset.paths
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
