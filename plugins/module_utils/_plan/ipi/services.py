# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the balancer serves on the masters of an IPI-like cluster: the API, and its own health. Pure.

While a bootstrap host is a member, it also serves the machine config servers: whoever holds the VIP then, a machine
that boots gets its configuration from a node that has it.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional

from ..._agent.config.schema import Faults
from ..change.still_asked import Answers
from ..model import nft_guard
from ..model.services import ANY, changed_check, read_services
from . import presets
from .cluster import Cluster

BACKEND, MACHINE_CONFIG = "masters", "machine-config"
# The parts of the services, which the user writes as variables of the cluster.
OF_CHECK = re.compile(r"^ipi\[\d\] \([a-z-]+\)\.check\b")
OF_SERVERS = re.compile(r"^ipi\[\d\] \([a-z-]+\)\.servers\b")
HAPROXY_LINES = ["option log-health-checks"]


def services(cluster: Cluster, faults: Faults) -> List[Dict[str, Any]]:
    """Return the services of the balancer: the API servers, and the machine config servers during the bootstrap."""
    on_nodes = (cluster.placements[name] for name in cluster.balancing)
    if not cluster.api.vips or any(cluster.api.vips[0].address not in on_node for on_node in on_nodes):
        return []  # which is a fault already
    found = [_service(cluster, BACKEND, cluster.preset.ports["lb"], cluster.settings["api_port"])]
    found += [_machine_config(cluster, cluster.preset.ports["machine_config"])] if cluster.bootstrap else []
    read, wrong = read_services(found, "ipi")
    faults += dict.fromkeys(OF_CHECK.sub("ipi_server_check", OF_SERVERS.sub("ipi_masters", fault)) for fault in wrong)
    return read


def _machine_config(cluster: Cluster, port: int) -> Dict[str, Any]:
    check = changed_check(cluster.preset.server_check, {"path": "/healthz"})
    one = _service(cluster, MACHINE_CONFIG, port, nft_guard.PORT)
    return {**one, "check": check, "allow": _machine_networks(cluster)}


def _machine_networks(cluster: Cluster) -> List[str]:
    """Return the networks of the machines that get a configuration; everybody does if there are none.

    The holder of a VIP connects to it from the VIP itself.
    """
    networks = cluster.settings["machine_networks"]
    return [*networks, *(vip.address for vip in cluster.api.vips)] if networks else []


def redirected(cluster: Cluster) -> Dict[int, int]:
    """Return by port of the API's VIPs the port of the balancer to which it leads."""
    ports = cluster.preset.ports
    machine_config = {nft_guard.PORT: ports["machine_config"]} if cluster.bootstrap else {}
    return {cluster.settings["api_port"]: ports["lb"], **machine_config}


def _service(cluster: Cluster, name: str, port: int, server_port: int) -> Dict[str, Any]:
    """Return a service with a server on every master, and the bootstrap host behind them."""
    vip = cluster.api.vips[0].address
    addresses = {each: cluster.placements[each][vip].address for each in cluster.balancing}
    servers: List[Dict[str, Any]] = [
        {"name": each, "address": addresses[each], "port": server_port, "weight": cluster.preset.server_weight}
        for each in cluster.masters
    ]
    address = addresses.get(cluster.bootstrap, cluster.bootstrap_address)
    if address:
        servers.append({"name": "bootstrap", "address": address, "port": server_port, "backup": True})
    return {
        "name": name,
        "bind": [ANY, "::"],
        "port": port,
        "balance": "roundrobin",
        "check": cluster.preset.server_check,
        "servers": servers,
    }


def monitors(cluster: Cluster) -> List[Dict[str, Any]]:
    """Return the ports that say whether the balancer runs, and whether it has an API server to pass requests to."""
    ports, paths = cluster.preset.ports, cluster.preset.paths
    wanted = ["ready", *(["monitor"] if ports["ready"] != ports["monitor"] else [])]
    return [_monitor(name, ports[name], paths[name]) for name in wanted]


def _monitor(name: str, port: int, path: str) -> Dict[str, Any]:
    at_least = {BACKEND: 1} if name == "monitor" else {}
    return {"name": f"haproxy_{name}", "bind": [ANY, "::"], "port": port, "path": path, "at_least": at_least}


def answers(cluster: Cluster) -> Answers:
    """Return how the balancer answers whoever asks at ports of before."""

    def monitor(name: str, port: int, path: str) -> Optional[Dict[str, Any]]:
        kind = presets.says(path) if presets.asks_haproxy(name) else ""
        return {**_monitor(kind, port, path), "name": f"haproxy_{kind}-{port}"} if kind else None

    def service(port: int, to: int) -> Optional[Dict[str, Any]]:
        if port != nft_guard.PORT:
            return _service(cluster, BACKEND, to, cluster.settings["api_port"])
        return read_services([_machine_config(cluster, to)], "ipi")[0][0]

    return Answers(monitor, service)
