# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pod of a member's balancer. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ..._shared.engines import HAPROXY, NATIVE, PROXY
from ..._shared.pods import BALANCER as NAME
from ..model.plan import MemberPlan
from . import configurations, held, paths, probes
from .manifests import Container, Manifest, Options, pod
from .paths import AGENT, AGENT_COMMAND, PARTS

PRIVILEGED = 1024  # the first port that every user may bind
BIND = ("NET_BIND_SERVICE",)
# haproxy starts as root, and its worker is the user haproxy in an empty folder. Without KILL it could not tell a worker
# to end, and would go on serving.
TO_DROP = ("SETGID", "SETUID", "SYS_CHROOT", "KILL")
STOP_WITHIN, SLACK = 10, 5  # seconds


def manifest(plan: MemberPlan, config: Dict[str, Any], checksum: str, options: Options) -> Manifest:
    """Return the pod.

    :param config: of the agent's proxy
    """
    ready = configurations.ready(plan)
    native = plan.engine == NATIVE
    program, config_file = (HAPROXY_COMMAND, paths.HAPROXY_CONFIG) if native else (PROXY_COMMAND, paths.PROXY_CONFIG)
    container = Container(
        name=HAPROXY if native else PROXY,
        image=options.haproxy_image if native else options.agent_image,
        command=held.command(program, paths.BALANCER_FIFO, config_file, held.PAUSE),
        volumes=[*(NATIVE_VOLUMES if native else AGENT_VOLUMES), paths.runtime(plan.engine, bool(plan.follow))],
        capabilities=(*_to_bind(plan), *(TO_DROP if native else ())),
        alive=probes.answers(ready.port, ready.path),
        cpu="100m",
        memory="200Mi",
    )
    stop_within = STOP_WITHIN if native else int(config["stop_within"]) if "stop_within" in config else STOP_WITHIN
    return pod(NAME, [container], stop_within + SLACK, checksum, options)


HAPROXY_COMMAND = ["haproxy", "-W", "-db", "-f", paths.HAPROXY_CONFIG]
PROXY_COMMAND = [*AGENT_COMMAND, PROXY, "--config", paths.PROXY_CONFIG]
NATIVE_VOLUMES = [PARTS[HAPROXY].volume(), paths.SHARED]
AGENT_VOLUMES = [PARTS[AGENT].volume(), PARTS[PROXY].volume(), paths.SHARED]


def _to_bind(plan: MemberPlan) -> Tuple[str, ...]:
    listening: List[Dict[str, Any]] = [*plan.balancer.services, *plan.balancer.monitors]
    return BIND if any(each["port"] < PRIVILEGED for each in listening) else ()
