# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pod of a member's router, of VRRP or BGP, with the sidecar that systemd is to its unit. Pure."""

from __future__ import annotations

from typing import Any, Dict, List

from ..._shared.engines import KEEPALIVED, NATIVE, VRRP
from ..._shared.pods import ROUTER as NAME
from ..model.plan import MemberPlan
from . import configurations, held, paths, probes, speaker
from .manifests import Container, Manifest, Options, pod
from .paths import AGENT, AGENT_COMMAND, PARTS, SIDECAR

ADDRESSES_AND_RAW_SOCKETS = (*speaker.ADDRESSES, "NET_RAW")
CHECKS = ("SETGID",)  # without it keepalived 2.2.7 cannot run their programs, and takes each of them for a success
REAL_TIME = ("SYS_NICE", "IPC_LOCK")
STOP_WITHIN = 15  # seconds: it resigns, and the sidecar waits for that


def manifest(plan: MemberPlan, config: Dict[str, Any], checksum: str, options: Options) -> Manifest:
    """Return the pod. The sidecar comes first, so that the router finds what it tracks.

    :param config: of the agent's router
    """
    containers: List[Container] = [_sidecar(plan, options)] if configurations.has_sidecar(plan) else []
    containers += speaker.containers(plan, options) if plan.bgp else [_of_vrrp(plan, config, options)]
    return pod(NAME, containers, STOP_WITHIN, checksum, options)


def _of_vrrp(plan: MemberPlan, config: Dict[str, Any], options: Options) -> Container:
    return _keepalived(plan, options) if plan.engine == NATIVE else _agent(plan, config, options)


def _sidecar(plan: MemberPlan, options: Options) -> Container:
    shared = [paths.SHARED] if configurations.has_balancer(plan) else []
    router = [] if plan.bgp else [PARTS[KEEPALIVED if plan.engine == NATIVE else VRRP].volume()]
    return Container(
        name=SIDECAR,
        image=options.agent_image,
        command=[*AGENT_COMMAND, SIDECAR, "--config", f"{PARTS[SIDECAR].inside}/{SIDECAR}.json"],
        volumes=[PARTS[AGENT].volume(), PARTS[SIDECAR].volume(), *router, paths.RUN, *shared],
        capabilities=speaker.ADDRESSES if plan.bgp else ADDRESSES_AND_RAW_SOCKETS,
        alive=probes.touches(f"{paths.RUN.path}/{SIDECAR}"),
    )


def _keepalived(plan: MemberPlan, options: Options) -> Container:
    program = ["keepalived", "--dont-fork", "--vrrp", "--log-console", "--pid", paths.PID_FILE]
    program += ["--vrrp_pid", paths.VRRP_PID_FILE, "--use-file", paths.KEEPALIVED_CONFIG]
    return Container(
        name=KEEPALIVED,
        image=options.keepalived_image,
        command=held.command(program, paths.ROUTER_FIFO, paths.KEEPALIVED_CONFIG, file=configurations.down_file(plan)),
        volumes=[PARTS[KEEPALIVED].volume(), paths.RUN, paths.TMP],
        capabilities=(*ADDRESSES_AND_RAW_SOCKETS, *CHECKS),
        alive=probes.BY_THE_SIDECAR,
    )


def _agent(plan: MemberPlan, config: Dict[str, Any], options: Options) -> Container:
    program = [*AGENT_COMMAND, VRRP, "--config", paths.VRRP_CONFIG]
    programs = speaker.PROGRAMS if configurations.runs_programs(config) else ()
    return Container(
        name=VRRP,
        image=options.agent_image,
        command=held.command(program, paths.ROUTER_FIFO, paths.VRRP_CONFIG, file=configurations.down_file(plan)),
        volumes=[PARTS[AGENT].volume(), PARTS[VRRP].volume(), paths.RUN],
        capabilities=(*ADDRESSES_AND_RAW_SOCKETS, *REAL_TIME, *programs),
        alive=probes.touches(f"{paths.RUN.path}/{VRRP}"),
    )
