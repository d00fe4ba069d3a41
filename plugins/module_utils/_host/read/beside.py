# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with the agent's daemons beside a member's balancer: with `follow`, and with the direct plane."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from ..._agent.direct import faults
from ..._agent.follow import show
from ..._agent.proxy.settings import UP
from ..._agent.runtime.text_table import problems
from ..._shared.engines import DIRECT, FOLLOW, Daemon
from ..._shared.pods import FOLLOW as FOLLOW_POD
from . import facts, in_force, pod_programs, pods
from .reader import Reader


def not_following(reader: Reader) -> List[str]:
    """Return a sentence for each reason why the balancer may have other servers than its cluster has nodes.

    Without the unit or the static pod it is not to follow one.
    """
    name, runs, report = _follower(reader)
    if not report:
        return [f"{name} does not {'answer' if runs else 'run'}."] if name else []
    return [*problems(report), *show.faults(report), *(each["fault"] for each in report["balancers"] if each["fault"])]


def _follower(reader: Reader) -> Tuple[str, bool, Dict[str, Any]]:
    """Return the unit or the static pod that follows the cluster, '' without one, whether it runs, and its report."""
    if facts.is_ours(Daemon(FOLLOW).unit):
        return _of_unit(reader, Daemon(FOLLOW), in_force.follow)
    if pods.own([FOLLOW_POD]):
        first = pods.running().get(FOLLOW_POD)
        return FOLLOW_POD, bool(first), pod_programs.report(first, FOLLOW)
    return "", False, {}


def direct_faults(reader: Reader) -> List[str]:
    """Return a sentence for each reason why clients of direct return may get no answer, or fewer servers."""
    if not facts.is_ours(Daemon(DIRECT).unit):
        return []
    name, runs, report = _of_unit(reader, Daemon(DIRECT), in_force.direct)
    if not report:
        return [f"{name} does not {'answer' if runs else 'run'}."]
    return [*problems(report), *faults.faults(report)]


def plane(reader: Reader) -> List[Dict[str, Any]]:
    """Return the services of the direct plane that runs here, and which servers get new connections."""
    if not facts.is_ours(Daemon(DIRECT).unit):
        return []
    return [_served(service) for service in _of_unit(reader, Daemon(DIRECT), in_force.direct)[2].get("services", [])]


def _served(service: Dict[str, Any]) -> Dict[str, Any]:
    servers = [
        {"name": each["name"], "address": each["address"], "serves": each["owner"] and each["state"] == UP}
        for each in service["servers"]
    ]
    return {**{key: service[key] for key in ("name", "bind", "port", "new_connections")}, "servers": servers}


def _of_unit(
    reader: Reader, daemon: Daemon, read_unit: Callable[[Reader], in_force.InForce]
) -> Tuple[str, bool, Dict[str, Any]]:
    """Return the unit of a daemon, whether it runs, and its report."""
    runs = read_unit(reader).active
    return daemon.unit, runs, in_force.report_of(daemon) if runs else {}
