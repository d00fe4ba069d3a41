# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The three ways to run an IPI-like cluster's VIPs, as data.

- ``default``: today's ports and server line, with the pair's fast election.
- ``upstream``: what OpenShift does today.
- ``ocp45``: what OpenShift 4.5 did.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Tuple

NODE_PORTS = range(30000, 32768)  # kube-apiserver's --service-node-port-range
EPHEMERAL = range(32768, 61000)  # net.ipv4.ip_local_port_range


class Check(NamedTuple):
    """A question that keepalived asks; well when one of ``any_of`` answers, each being URLs that must all answer."""

    name: str
    any_of: Tuple[Tuple[str, ...], ...]
    interval: float
    rise: int
    fall: int
    weight: int = 0  # FAULT
    sees_haproxy: bool = True  # fails when haproxy (or the router) dies
    sees_local_api: bool = False  # fails when this node's API server does


class Preset(NamedTuple):
    """The ports, the election, the checks, and how haproxy asks an API server."""

    ports: Dict[str, int]
    paths: Dict[str, str]
    api_priority: int  # of every member; 0: staggered
    ingress_priority: int
    preempt: bool
    events: bool  # haproxy's own unit tells keepalived
    multicast: bool
    named_passwords: bool  # made of the cluster's name, and not secret
    api_checks: Tuple[Check, ...]
    ingress_checks: Tuple[Check, ...]
    server_check: Dict[str, Any]
    server_weight: int
    timeouts: Dict[str, str]


TODAY = {"lb": 9445, "ready": 9444, "monitor": 9454, "stats": 29445}
PATHS = {"ready": "/haproxy_ready", "monitor": "/haproxy_monitor"}
# haproxy needs two failures, of which the second is asked for after fast_interval.
SERVER_CHECK = {
    "type": "https",
    "path": "/readyz",
    "interval": 5,
    "fast_interval": 2,
    "fall": 2,
    "rise": 3,
    "slow_start": 60,
    "shutdown_sessions": True,
}
TIMEOUTS = {"client": "1m", "server": "1m", "tunnel": "1h", "http_request": "30s"}

LB_READY = "http://localhost:{ready}{ready_path}"
LB_SERVES = "http://localhost:{monitor}{monitor_path}"
LOCAL_API = "https://localhost:{api}/readyz"
ROUTER_LIVE = "http://localhost:{router}/healthz"
ROUTER_READY = "http://localhost:{router}/healthz/ready"

PRESETS = {
    "default": Preset(
        ports=TODAY,
        paths=PATHS,
        api_priority=0,
        ingress_priority=0,
        preempt=False,
        events=True,
        multicast=False,
        named_passwords=False,
        # While one API server anywhere answers, the VIP stays: a restart of the local one is haproxy's to handle.
        api_checks=(Check("chk_api", ((LB_SERVES,),), interval=2, rise=2, fall=2),),
        ingress_checks=(Check("chk_ingress", ((ROUTER_READY,),), interval=1, rise=2, fall=2),),
        server_check=SERVER_CHECK,
        server_weight=256,
        timeouts=TIMEOUTS,
    ),
    "upstream": Preset(
        ports=TODAY,
        paths=PATHS,
        api_priority=40,
        ingress_priority=20,
        preempt=True,
        events=False,
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
        ),
        ingress_checks=(
            Check("chk_ingress", ((ROUTER_LIVE,),), interval=1, rise=3, fall=2),
            Check("chk_ingress_ready", ((ROUTER_READY,),), interval=1, rise=3, fall=2, weight=10),
            Check("chk_default_ingress", ((ROUTER_LIVE,),), interval=5, rise=3, fall=2, weight=50),
        ),
        server_check=SERVER_CHECK,
        server_weight=256,
        timeouts=TIMEOUTS,
    ),
    "ocp45": Preset(
        ports={"lb": 9445, "ready": 50936, "monitor": 50936, "stats": 30936},
        paths={"ready": "/readyz", "monitor": "/readyz"},
        api_priority=40,
        ingress_priority=40,
        preempt=True,
        events=False,
        multicast=True,
        named_passwords=True,
        api_checks=(
            Check("chk_ocp", ((LOCAL_API, LB_READY),), interval=1, rise=1, fall=1, weight=50, sees_local_api=True),
        ),
        ingress_checks=(Check("chk_ingress", ((ROUTER_LIVE,),), interval=1, rise=1, fall=1, weight=50),),
        server_check={"type": "https", "path": "/readyz", "interval": 3, "fall": 2, "rise": 3},
        server_weight=1,
        timeouts={"client": "1m", "server": "1m", "tunnel": "1h", "http_request": "10s"},
    ),
}


FORMER_NAMES = {"current": "upstream", "seed": "ocp45"}  # still understood


def called(name: str) -> Tuple[str, List[str]]:
    """Return the preset's name of today, and a warning for a former one."""
    if name not in FORMER_NAMES:
        return name, []
    today = FORMER_NAMES[name]
    return today, [f"ipi_preset is {name!r}, which is called {today!r} now: write that, the old name will go."]


def fails_on_draining(preset: Preset) -> bool:
    """Whether a router that is about to stop counts as one that has stopped."""
    return all(urls == (ROUTER_READY,) for check in preset.ingress_checks for urls in check.any_of)


def detection_time(preset: Preset) -> float:
    """Return how long haproxy may take to see that an API server is dead, in seconds."""
    check = preset.server_check
    fast = check.get("fast_interval") or check["interval"]
    return float(check["interval"] + fast * (check["fall"] - 1))


def asked(check: Check, places: Dict[str, Any]) -> List[List[str]]:
    """Return the URLs of a check, as `url_checks` takes them."""
    return [[url.format(**places) for url in urls] for urls in check.any_of]


def port_warnings(ports: Dict[str, int]) -> List[str]:
    """Say which ports may be taken by something else one day."""
    found = []
    for name, port in sorted(ports.items()):
        if port in NODE_PORTS:
            found.append(f"ipi_{name}_port is {port}, which Kubernetes may give to a NodePort service.")
        if port in EPHEMERAL:
            found.append(f"ipi_{name}_port is {port}, which the kernel may give to any outgoing connection.")
    return found
