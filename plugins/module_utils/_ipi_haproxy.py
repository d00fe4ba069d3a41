# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What haproxy serves on the masters of an IPI-like cluster: the API, and what it says of itself."""

from __future__ import annotations

from typing import Any, Dict, List

from ansible_collections.onprem.lb.plugins.module_utils._agent.schema import Faults
from ansible_collections.onprem.lb.plugins.module_utils._ipi_sketch import Sketch
from ansible_collections.onprem.lb.plugins.module_utils._services import ANY, read_services

BACKEND = "masters"


def services(sketch: Sketch, masters: List[str], faults: Faults) -> List[Dict[str, Any]]:
    """haproxy balances the API only, to the API server of every master."""
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
    words = [f"default-server {preset.server_words}"] if preset.server_words else []
    service = {
        "name": BACKEND,
        "bind": [ANY, "::"],
        "port": preset.ports["lb"],
        "balance": "roundrobin",
        "check": preset.server_check,
        "servers": servers,
        # A connection that one server refuses goes to the next one at once, not after three tries.
        "backend_lines": ["option log-health-checks", "option redispatch 1", *words],
    }
    read, wrong = read_services([service], "ipi")
    faults += wrong
    return read


def monitors(sketch: Sketch) -> List[Dict[str, Any]]:
    """The listeners by which haproxy says of itself that it runs, and that it has somebody to pass the API to."""
    ports, paths = sketch.preset.ports, sketch.preset.paths
    names = ["ready"] if ports["ready"] == ports["monitor"] else ["ready", "monitor"]
    return [
        {"name": f"haproxy_{name}", "port": ports[name], "path": paths[name], "bind": [ANY, "::"]} for name in names
    ]


def lines(sketch: Sketch) -> List[str]:
    found: List[str] = []
    for monitor in monitors(sketch):
        gate = [f"    monitor fail if {{ nbsrv({BACKEND}) lt 1 }}"] if monitor["name"] == "haproxy_monitor" else []
        found += [
            *([""] if found else []),
            f"listen {monitor['name']}",
            f"    bind :::{monitor['port']} v4v6",
            "    mode http",
            f"    monitor-uri {monitor['path']}",
            *gate,
            "    option dontlognull",
        ]
    return found
