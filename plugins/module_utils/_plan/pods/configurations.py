# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The configurations of a member's pods: those of its plan, for programs that run in containers. Pure.

They are those of the roles, with what a container has otherwise: haproxy logs to its standard output, keepalived tells
the sidecar of its changes and runs no program of its own for them, and the track file is the pod's.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

from ..._shared.engines import AGENT, HAPROXY, NATIVE
from ..ipi import redirect as nft_redirect
from ..model import agent, frr, handed, haproxy, instances, nft_guard
from ..model.plan import MemberPlan, Router
from . import paths
from .paths import PARTS, SIDECAR

LOG_TARGET = "stdout format raw local0"
# What `haproxy.cfg.j2` takes of an OS family.
FAMILY = {
    "runtime_socket": paths.HAPROXY_SOCKET,
    "log_targets": [LOG_TARGET],
    "log_bind": "",
    "authorities": "/etc/ssl/certs/ca-certificates.crt",
}
NOTIFY_LINE = f"vrrp_notify_fifo {paths.NOTIFY_FIFO}"
ON_A_HOST: Dict[str, Any] = {
    "down_file": "",
    "start_commands": [],
    "stop_commands": [],
}  # which is the sidecar's in a pod
NFT = "nft"
REDIRECT, GUARD = "api-redirect.nft", "machine-config.nft"


class Ready(NamedTuple):
    """Where a balancer says that it runs."""

    port: int
    path: str


def ready(plan: MemberPlan) -> Ready:
    """Return the monitor that fails only if the balancer does."""
    monitor = next(each for each in plan.balancer.monitors if not each["at_least"])
    return Ready(monitor["port"], monitor["path"])


def has_balancer(plan: MemberPlan) -> bool:
    return bool(plan.balancer.services)


def has_router(plan: MemberPlan) -> bool:
    """Whether something carries VIPs here: a VRRP router, or FRR."""
    return bool(plan.router.instances or plan.bgp)


def has_sidecar(plan: MemberPlan) -> bool:
    """Whether something is to be done for the router's pod that nobody else does."""
    return has_balancer(plan) or (plan.engine == NATIVE and not plan.bgp)


def router(plan: MemberPlan) -> Router:
    """Return the router with the track files of its pod."""
    asked = {each["name"]: each["file"] for each in questions(plan)}
    files = [{**each, "path": asked.get(each["name"], paths.DOWN_FILE)} for each in plan.router.track_files]
    return plan.router._replace(track_files=files)


def questions(plan: MemberPlan) -> List[Dict[str, Any]]:
    """Return what the sidecar asks beside keepalived."""
    return [{**each, "file": f"{paths.RUN.path}/{each['name']}.failing"} for each in plan.questions]


def down_file(plan: MemberPlan) -> str:
    """Return the track file; '' where the router tracks none, as in the presets that poll."""
    of_gate = [check for check in plan.bgp["anycast"]["checks"] if check["type"] == "file"] if plan.bgp else []
    others = of_gate or len(plan.router.track_files) > len(plan.questions)
    return paths.DOWN_FILE if has_balancer(plan) and others else ""


def haproxy_model(plan: MemberPlan, name: str) -> Dict[str, Any]:
    """Return the model of the role `haproxy`, with its services as JSON."""
    settings = haproxy.settings_of(handed.of_balancer(HAPROXY, plan.balancer._replace(**ON_A_HOST)._asdict()))
    servers = plan.balancer.inventory_servers
    found = haproxy.model(settings, [], name, inventory_servers=servers, asking=plan.asked)
    return haproxy.for_template(found)


def keepalived_model(plan: MemberPlan, name: str, auth_pass: str) -> Dict[str, Any]:
    daemon = {"router_id": name, "global_lines": [NOTIFY_LINE]}
    return instances.keepalived_model({**router(plan)._asdict(), "auth_pass": auth_pass, "daemon": daemon})


def agent_model(plan: MemberPlan, name: str, auth_pass: str) -> Dict[str, Any]:
    """Return the configurations of the agent's daemons, as `agent.translate` does."""
    balancer = plan.balancer._replace(**ON_A_HOST)
    settings = {**router(plan)._asdict(), "auth_pass": auth_pass, **handed.of_balancer(AGENT, balancer._asdict())}
    return agent.translate(settings, host=name, inventory_servers=balancer.inventory_servers, asking=plan.asked)


def frr_model(plan: MemberPlan) -> Dict[str, Any]:
    """Return the model of the role `frr`."""
    return frr.model(plan.bgp["frr"])


def gate(plan: MemberPlan) -> Dict[str, Any]:
    """Return the configuration of the health gate, with the track file of its pod."""
    checks = [
        {**check, "file": paths.DOWN_FILE} if check["type"] == "file" else check
        for check in plan.bgp["anycast"]["checks"]
    ]
    return {**plan.bgp["anycast"], "checks": checks}


def runs_programs(config: Dict[str, Any]) -> bool:
    """Whether a daemon of the agent runs the programs of checks."""
    return any(check["type"] == "script" for check in config["checks"])


def redirect(plan: MemberPlan) -> str:
    """Return the nft file of the redirect; '' where there is none."""
    found = plan.balancer.redirect
    return nft_redirect.ruleset(found.vips, found.ports) if found else ""


def guard(plan: MemberPlan) -> str:
    """Return the nft file of the guard before the machine config server; '' where nobody is kept out."""
    restricted = [each["port"] for each in plan.firewall.restricted_ports]
    return plan.balancer.guard if nft_guard.PORT in restricted else ""


def sidecar(plan: MemberPlan) -> Dict[str, Any]:
    """Return the configuration of the sidecar."""
    found: Dict[str, Any] = {}
    if guard(plan):
        found["first"] = [[NFT, "--file", f"{PARTS[SIDECAR].inside}/{GUARD}"]]
    if has_balancer(plan):
        found["balancer"] = _watched_balancer(plan)
    found["router"] = {"fifo": paths.ROUTER_FIFO}
    if plan.bgp:
        return found
    if plan.engine == NATIVE:
        found["router"].update(
            keepalived=paths.KEEPALIVED_CONFIG, notify_fifo=paths.NOTIFY_FIFO, questions=questions(plan)
        )
    else:
        found["router"]["agent"] = paths.VRRP_CONFIG
    return found


def _watched_balancer(plan: MemberPlan) -> Dict[str, Any]:
    asked = ready(plan)
    found: Dict[str, Any] = {
        "fifo": paths.BALANCER_FIFO,
        "ready_port": asked.port,
        "ready_path": asked.path,
        "down_file": down_file(plan),
    }
    if plan.balancer.redirect:
        found["start_commands"] = [[NFT, "--file", f"{PARTS[SIDECAR].inside}/{REDIRECT}"]]
        found["stop_commands"] = [[NFT, nft_redirect.DELETE]]
    return found
