# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The presets of an IPI-like cluster, as data.

- ``default``: OpenShift's current ports, with the fast election of the pair and the server line that was proposed to
  OpenShift in MCO#6400.
- ``upstream``: what OpenShift does, as far as URLs can tell it.
- ``ocp45``: what OpenShift 4.5 did.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ..model import kinds, pace

NODE_PORTS = range(30000, 32768)  # kube-apiserver's --service-node-port-range
EPHEMERAL = range(32768, 61000)  # net.ipv4.ip_local_port_range

# On the nodes of every cluster.
TAKEN = {
    **dict.fromkeys((80, 443), "the ingress router"),
    **dict.fromkeys((2379, 2380), "etcd"),
    **dict.fromkeys((22623, 22624), "the machine config server"),
    10250: "the kubelet",
}


class Check(NamedTuple):
    """A check of the VRRP router: passes when one entry of ``any_of`` does, which is when all its URLs answer."""

    name: str
    any_of: Tuple[Tuple[str, ...], ...]
    interval: float
    rise: int
    fall: int
    weight: int = 0  # FAULT, or what `answers` chooses
    timeout: float = 0  # 0: the interval
    sees_haproxy: bool = True  # fails when haproxy (or the router) dies
    sees_local_api: bool = False  # fails when this node's API server does


class Preset(NamedTuple):
    """Ports, election, checks of the VRRP router, and the health check of the API servers."""

    ports: Dict[str, int]
    paths: Dict[str, str]
    api_priority: int  # of every member; 0: staggered
    ingress_priority: int
    preempt: bool
    events: bool  # haproxy's unit writes the track file
    lowers: bool  # a check without a weight lowers the priority, as in `answers`, and is no FAULT
    multicast: bool
    named_passwords: bool  # made of the cluster's name, and not secret
    api_checks: Tuple[Check, ...]
    ingress_checks: Tuple[Check, ...]
    server_check: Dict[str, Any]
    server_weight: int
    timeouts: Dict[str, str]
    haproxy_lines: Tuple[str, ...] = ()  # of each backend
    former_pace: Mapping[str, float] = {}  # of its server check
    bootstrap_priority: int = 0  # of the bootstrap host; 0: the lowest of all
    bootstrap_checks: Tuple[Check, ...] = ()  # of the bootstrap host; none: those of the masters
    kind: kinds.Kind = kinds.KUBERNETES


CURRENT_PORTS = {"lb": 9445, "machine_config": 9446, "ready": 9444, "monitor": 9454, "stats": 29445}
PATHS = {"ready": "/haproxy_ready", "monitor": "/haproxy_monitor"}
SERVER_CHECK = {
    "type": "https",
    "path": "/readyz",
    "interval": pace.INTERVAL,
    "fall": pace.FALL,
    "rise": 3,
    "slow_start": 60,
    "tcp_user_timeout": pace.LATE_S,
}
# Whoever changes one of these for the default preset keeps what the others were before they became faster.
FORMER_PACE = {"interval": 5, "fast_interval": 2, "fall": 2}
# How long OpenShift lets a server take. The roles' own defaults are shorter.
UPSTREAM_LINES = ("timeout connect 5s", "timeout check 10s")
TIMEOUTS = {"client": "1m", "server": "1m", "tunnel": "1h", "fin": "", "http_request": "30s"}

LB_READY = "http://localhost:{ready}{ready_path}"
LB_SERVES = "http://localhost:{monitor}{monitor_path}"
LOCAL_API = "https://localhost:{api}/readyz"
MACHINE_CONFIG = "https://localhost:22623/healthz"
# OpenShift's bootstrap host gives the API VIP up once its own API server has gone for good.
BOOTSTRAP_PRIORITY = 70
CHK_BOOTSTRAP = Check("chk_bootstrap", ((LOCAL_API, LB_READY),), interval=1, rise=1, fall=5, sees_local_api=True)
ROUTER_LIVE = "http://localhost:{router}/healthz"
ROUTER_READY = "http://localhost:{router}/healthz/ready"

PRESETS = {
    "default": Preset(
        ports=CURRENT_PORTS,
        paths=PATHS,
        api_priority=0,
        ingress_priority=0,
        preempt=False,
        events=True,
        lowers=True,
        multicast=False,
        named_passwords=False,
        # The VIP stays while any API server answers: haproxy handles a restart of the local one.
        # One that hangs has to be found sooner: it still takes the clients' connections.
        api_checks=(
            Check("chk_api", ((LB_SERVES,),), interval=2, rise=2, fall=2),
            Check("chk_haproxy", ((LB_READY,),), interval=1, rise=2, fall=2, timeout=0.5),
        ),
        ingress_checks=(Check("chk_ingress", ((ROUTER_READY,),), interval=1, rise=2, fall=2),),
        server_check=SERVER_CHECK,
        former_pace=FORMER_PACE,
        server_weight=256,
        timeouts=TIMEOUTS,
    ),
    "upstream": Preset(
        ports=CURRENT_PORTS,
        paths=PATHS,
        api_priority=40,
        ingress_priority=20,
        preempt=True,
        events=False,
        lowers=False,
        multicast=False,
        named_passwords=True,
        api_checks=(
            Check("chk_ocp_lb", ((LB_READY,),), interval=2, rise=3, fall=3, weight=20),
            Check(
                "chk_ocp_both",
                ((LB_READY,), (LOCAL_API,)),
                interval=2,
                rise=3,
                fall=3,
                weight=5,
                sees_haproxy=False,
            ),
            Check("chk_mcs", ((MACHINE_CONFIG,),), interval=2, rise=3, fall=3, weight=3, sees_haproxy=False),
        ),
        ingress_checks=(
            Check("chk_ingress", ((ROUTER_LIVE,),), interval=1, rise=3, fall=2),
            Check("chk_ingress_ready", ((ROUTER_READY,),), interval=1, rise=3, fall=2, weight=10),
            Check("chk_default_ingress", ((ROUTER_LIVE,),), interval=5, rise=3, fall=2, weight=50),
        ),
        server_check={"type": "https", "path": "/readyz", "interval": 5, "fall": 3, "rise": 1},
        kind=kinds.OPENSHIFT_IPI,
        server_weight=1,
        timeouts={**TIMEOUTS, "tunnel": "5m", "fin": "1s"},
        haproxy_lines=UPSTREAM_LINES,
        bootstrap_priority=BOOTSTRAP_PRIORITY,
        bootstrap_checks=(CHK_BOOTSTRAP,),
    ),
    "ocp45": Preset(
        ports={"lb": 9445, "machine_config": 9446, "ready": 50936, "monitor": 50936, "stats": 30936},
        paths={"ready": "/readyz", "monitor": "/readyz"},
        api_priority=40,
        ingress_priority=40,
        preempt=True,
        events=False,
        lowers=False,
        multicast=True,
        named_passwords=True,
        api_checks=(
            Check("chk_ocp", ((LOCAL_API, LB_READY),), interval=1, rise=1, fall=1, weight=50, sees_local_api=True),
        ),
        ingress_checks=(Check("chk_ingress", ((ROUTER_LIVE,),), interval=1, rise=1, fall=1, weight=50),),
        server_check={"type": "https", "path": "/readyz", "interval": 3, "fall": 2, "rise": 3},
        kind=kinds.OPENSHIFT_IPI_45,
        server_weight=1,
        timeouts={**TIMEOUTS, "http_request": "10s"},
        haproxy_lines=UPSTREAM_LINES,
        bootstrap_priority=BOOTSTRAP_PRIORITY,
        bootstrap_checks=(CHK_BOOTSTRAP,),
    ),
}


FORMER_NAMES = {"current": "upstream", "seed": "ocp45"}  # still understood


def current_name(name: str) -> Tuple[str, List[str]]:
    """Return the current name of a preset, and a warning for a former name."""
    if name not in FORMER_NAMES:
        return name, []
    current = FORMER_NAMES[name]
    return current, [f"ipi_preset is {name!r}, which is called {current!r} now: write that, the old name will go."]


def fails_on_draining(preset: Preset) -> bool:
    """Return whether the ingress checks fail while a router drains."""
    return all(urls == (ROUTER_READY,) for check in preset.ingress_checks for urls in check.any_of)


def detection_time(preset: Preset) -> float:
    """Return the longest time in which haproxy detects a dead API server, in seconds."""
    check = preset.server_check
    fast = check.get("fast_interval") or check["interval"]
    return float(check["interval"] + fast * (check["fall"] - 1))


def asks_haproxy(name: str) -> bool:
    """Return whether a check of any preset has this name that asks about haproxy."""
    every = (check for each in PRESETS.values() for check in (*each.api_checks, *each.bootstrap_checks))
    return name in {check.name for check in every}


def says(path: str) -> str:
    """Return which of haproxy's two monitors answers at a path, in any preset; '' for another path."""
    found = {each.paths[name]: name for each in PRESETS.values() for name in ("monitor", "ready")}
    return found.get(path, "")


def urls_of(check: Check, values: Dict[str, Any]) -> List[List[str]]:
    """Return the URLs of a check, as `url_checks` takes them."""
    return [[url.format(**values) for url in urls] for urls in check.any_of]


def port_faults(ports: Dict[str, int]) -> List[str]:
    """Refuse a port twice, and one that something else on the nodes has.

    :param ports: by the names of their variables; ``ready`` and ``monitor`` may be one
    """
    found = [
        f"ipi_{name}_port is {port}, which {TAKEN[port]} has: choose another."
        for name, port in ports.items()
        if port in TAKEN
    ]
    for (one, port), (other, same) in itertools.combinations(ports.items(), 2):
        if port == same and {one, other} != {"ready", "monitor"}:
            found.append(f"ipi_{one}_port and ipi_{other}_port are both {port}: change one of them.")
    return found


def port_warnings(ports: Dict[str, int]) -> List[str]:
    """Return a warning for each port that Kubernetes or the kernel may assign to something else."""
    found = []
    for name, port in sorted(ports.items()):
        if port in NODE_PORTS:
            found.append(f"ipi_{name}_port is {port}, which Kubernetes may give to a NodePort service.")
        if port in EPHEMERAL:
            found.append(f"ipi_{name}_port is {port}, which the kernel may give to any outgoing connection.")
    return found
