# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Other programs on this host that move VIPs. None can be adopted: what started it would start it again. Pure.

A static pod can be disabled, if its user wants that: its manifest is all that starts it.
"""

from __future__ import annotations

from typing import Callable, Collection, List, NamedTuple, Sequence

from ..._shared.engines import KEEPALIVED
from . import cgroups, facts
from .processes import Process

KUBE_VIP = "kube-vip"
PROGRAMS = (KEEPALIVED, KUBE_VIP)
KUBE_VIP_ADDRESSES = ("address", "vip_address")  # its environment; the second is the older one
OPENSHIFT_KEEPALIVED = "/etc/kubernetes/static-pod-resources/keepalived"  # exists where the node brings its own


class Rival(NamedTuple):
    """One of them that is in the way."""

    program: str
    problem: str  # a sentence, with its mend
    manifest: str  # of a static pod, if it is known


def problem(rival: Rival, variable: str) -> str:
    """Return why a run is refused.

    :param variable: the one by which a user lets the run disable a static pod; '' if there is none
    """
    if not (rival.manifest and variable):
        return rival.problem
    return f"{rival.problem[:-1]}, or let the run disable {rival.manifest} at the right moment: -e {variable}=true."


def rivals(
    processes: Sequence[Process], vips: Collection[str], is_openshift: bool, manifest: Callable[[str], str]
) -> List[Rival]:
    """Return those that are in the way, once for each program and each pod, container or unit that it runs in.

    :param processes: those of PROGRAMS
    :param vips: the addresses that this host is to hold
    :param is_openshift: whether OPENSHIFT_KEEPALIVED exists
    :param manifest: `static_pods.manifest`
    """
    here = [process for process in processes if process.on_this_network]
    keepaliveds = [process for process in here if process.program == KEEPALIVED and _is_foreign(process)]
    kube_vips = [process for process in here if process.program == KUBE_VIP]
    problems = [
        *((process, _of_keepalived(process, is_openshift)) for process in keepaliveds),
        *((process, _of_kube_vip(process, held)) for process in kube_vips for held in [_held(process, vips)] if held),
    ]
    return [Rival(process.program, problem, _manifest(process, manifest)) for process, problem in problems]


def _manifest(process: Process, manifest: Callable[[str], str]) -> str:
    return manifest(process.program) if process.runs_in.kind == cgroups.STATIC_POD else ""


def _is_foreign(process: Process) -> bool:
    where = process.runs_in
    return where.kind not in ("", cgroups.OWN_POD) and where != cgroups.RunsIn(cgroups.UNIT, f"{KEEPALIVED}.service")


def _of_keepalived(process: Process, is_openshift: bool) -> str:
    if is_openshift and process.runs_in.kind in (cgroups.POD, cgroups.STATIC_POD):
        return (
            f"OpenShift's own {process} and holds the cluster's VIPs: leave them to it, or install the cluster with "
            "the platform none or with a load balancer of type UserManaged."
        )
    return f"{process}, outside {KEEPALIVED}.service, and two VRRP routers on one host fight: {process.mend}."


def _of_kube_vip(process: Process, held: List[str]) -> str:
    return f"{process} and holds {', '.join(held)}, which two programs cannot hold: {process.mend}."


def _held(process: Process, vips: Collection[str]) -> List[str]:
    given = ",".join(process.environment.get(name, "") for name in KUBE_VIP_ADDRESSES)
    own = facts.vip_addresses(given.split(","))
    return [vip for vip in vips if vip in own]
