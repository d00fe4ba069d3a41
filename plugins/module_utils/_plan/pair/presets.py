# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a pair serves before each kind of cluster: the ports, the servers behind them, and their checks. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..._agent.config.schema import Faults, refused
from ..model import kinds, nft_guard
from ..model.values import is_name
from . import api

DEFAULT = "okd3"  # where neither pair_preset nor pair_services is set

HTTPS = {"type": "https"}
# Where anonymous requests are forbidden, as in RKE2, k3s and hardened clusters, a healthy API server answers 401.
API = {**HTTPS, "path": "/readyz", "status": [200, 401]}
# The supervisor listens long before its node can serve, and goes on while the API server is down. It answers 401 until
# it can authenticate clients, and 403 from then on.
RKE2_JOIN = {
    **HTTPS,
    "steps": [
        {"port": 6443, "path": API["path"], "status": API["status"]},
        {"path": "/v1-rke2/readyz", "status": [200, 403]},
    ],
}
ROUTER = {"type": "http", "port": 1936, "path": "/healthz/ready", "status": 200}


class Front(NamedTuple):
    """A port of the VIPs, and the servers behind it."""

    group: str  # the variable that names the servers, without its prefix
    port: int
    check: Dict[str, Any] = {}
    balance: str = "roundrobin"
    optional: bool = False  # whether the group may be empty
    bootstrap: bool = False  # whether the bootstrap host is a server, too
    machines_only: bool = False  # whether only the machine networks may connect

    @property
    def name(self) -> str:
        return f"{self.group}-{self.port}"

    @property
    def is_api(self) -> bool:
        return self.check.get("path") == API["path"]


def _ingress(group: str = "infra_nodes", **options: Any) -> Tuple[Front, ...]:
    """A client keeps its server."""
    return tuple(Front(group, port, balance="source", **options) for port in (80, 443))


class Preset(NamedTuple):
    """A kind of cluster: what the pair serves before it, and by what it calls its API, if the collection knows."""

    fronts: Tuple[Front, ...]
    names: Optional[api.Names] = None
    kind: kinds.Kind = kinds.KUBERNETES


OPENSHIFT = (
    Front("masters", 6443, {**API, "status": 200}, bootstrap=True),
    Front("masters", nft_guard.PORT, {**HTTPS, "path": "/healthz"}, bootstrap=True, machines_only=True),
)
PRESETS = {
    "okd3": Preset((Front("masters", 8443, balance="source"), *_ingress()), kind=kinds.OPENSHIFT_3),
    "openshift_upi": Preset((*OPENSHIFT, *_ingress(check=ROUTER)), api.OPENSHIFT, kinds.OPENSHIFT),
    # Two masters, which run the routers as well, and an arbiter, which has no API server.
    "openshift_arbiter": Preset((*OPENSHIFT, *_ingress("masters", check=ROUTER)), api.OPENSHIFT, kinds.OPENSHIFT),
    "kubeadm": Preset((Front("masters", 6443, API), *_ingress(optional=True)), api.KUBEADM, kinds.KUBEADM),
    "rke2": Preset(
        (Front("masters", 6443, API), Front("masters", 9345, RKE2_JOIN), *_ingress(optional=True)),
        api.rancher("rke2", 9345, "restart rke2-server"),
    ),
    "k3s": Preset(
        (Front("masters", 6443, API), *_ingress(optional=True)),
        api.rancher("k3s", 6443, "run `k3s certificate rotate` while k3s is stopped"),
    ),
    # Controllers join at 9443, and the workers' konnectivity agents connect to 8132.
    "k0s": Preset(
        (Front("masters", 6443, API), Front("masters", 9443), Front("masters", 8132), *_ingress(optional=True)), api.K0S
    ),
    "talos": Preset((Front("masters", 6443, API), *_ingress(optional=True)), api.TALOS),
}
NAMED = [name for name, preset in PRESETS.items() if preset.names]  # whose API servers' certificates are read


def names(settings: Dict[str, Any]) -> Optional[api.Names]:
    """Return by what the cluster of the settings' preset calls its API."""
    return PRESETS[settings["preset"]].names if settings["preset"] else None


def kind(settings: Dict[str, Any]) -> kinds.Kind:
    """Return the kind of cluster; any Kubernetes where the user's own services replace the default."""
    return PRESETS[settings["preset"] or DEFAULT].kind if fronts(settings) else kinds.KUBERNETES


def fronts(settings: Dict[str, Any]) -> List[Front]:
    """Return the ports that the settings ask for; none where the user's own services replace the default."""
    if not settings["preset"] and settings["services"] is not None:
        return []
    return [
        front for front in PRESETS[settings["preset"] or DEFAULT].fronts if settings[front.group] or not front.optional
    ]


def of_masters(settings: Dict[str, Any]) -> List[Front]:
    """Return the ports whose servers are the masters."""
    return [front for front in fronts(settings) if front.group == "masters"]


def missing(settings: Dict[str, Any], refusals: Faults) -> Faults:
    """Return what a preset needs and the user has not set.

    :param refusals: what was said of the settings; a value that was refused is not missing
    """
    wanted = fronts(settings)
    empty = [f"pair_{group}" for group in dict.fromkeys(front.group for front in wanted) if not settings[group]]
    faults = []
    if empty:
        verb, instead = "are" if len(empty) > 1 else "is", "" if settings["preset"] else ", or set pair_services"
        faults.append(f"{' and '.join(empty)} {verb} empty: name the servers' addresses{instead}.")
    is_open = not settings["machine_networks"] and not refused(refusals, "pair", "machine_networks")
    if is_open and any(front.machines_only for front in wanted):
        faults.append(
            "pair_machine_networks is empty: name the networks of the cluster's machines, which alone may fetch their "
            f"configuration, with its secrets, from port {nft_guard.PORT}."
        )
    return faults


def services(settings: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the services of the settings' preset, in the words of ``pair_services``."""
    return [_service(front, settings) for front in fronts(settings)]


def _service(front: Front, settings: Dict[str, Any]) -> Dict[str, Any]:
    servers = settings[front.group]
    if front.bootstrap and settings["bootstrap"] and not settings["bootstrap_complete"] and isinstance(servers, list):
        servers = [*servers, {"name": "bootstrap", "address": settings["bootstrap"], "backup": True}]
    return {
        "name": front.name,
        "port": front.port,
        "balance": front.balance,
        "check": front.check,
        "allow": settings["machine_networks"] if front.machines_only else [],
        "servers": servers,
    }


def shut_out(settings: Dict[str, Any], read: List[Dict[str, Any]]) -> Faults:
    """Return which master or bootstrap host the machine networks lack.

    :param read: the services, as `read_services` returns them
    """
    guarded = {front.name for front in fronts(settings) if front.machines_only}
    machines = {
        server["address"]: server["name"]
        for service in read
        for server in service["servers"]
        if service["name"] in guarded and server["address"] and not is_name(server["address"])
    }
    return nft_guard.outside(settings["machine_networks"], machines, "pair_machine_networks")


def as_written(fault: str, settings: Dict[str, Any]) -> str:
    """Return a fault of a preset's service with the variable that the user wrote."""
    for front in fronts(settings):
        fault = re.sub(rf"^pair_services\[\d+\] \({front.name}\)\.servers", f"pair_{front.group}", fault)
    return fault


def without_effect(settings: Dict[str, Any]) -> List[str]:
    """Return a sentence for each variable that nothing reads."""
    wanted = fronts(settings)
    if not wanted:
        return [
            f"pair_{group} has no effect, because pair_services is set: leave one of them out."
            for group in ("masters", "infra_nodes", "api_names")
            if settings[group]
        ]
    unused = {"bootstrap": not any(front.bootstrap for front in wanted)}
    unused["machine_networks"] = not (settings["follow"] or any(front.machines_only for front in wanted))
    unused["api_names"] = names(settings) is None
    unused["platform"] = names(settings) is not api.OPENSHIFT
    preset = settings["preset"] or DEFAULT
    return [
        f"pair_{key} has no effect with the preset {preset}: leave it out, or set pair_preset to openshift_upi."
        for key, is_unused in unused.items()
        if is_unused and settings[key]
    ]
