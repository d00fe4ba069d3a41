# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Other programs on this host that move VIPs. None can be adopted: what started it would start it again. Pure."""

from __future__ import annotations

from typing import Collection, List, Sequence

from .._shared.engines import KEEPALIVED
from . import cgroups, facts
from .processes import Process

KUBE_VIP = "kube-vip"
PROGRAMS = (KEEPALIVED, KUBE_VIP)
KUBE_VIP_ADDRESSES = ("address", "vip_address")  # its environment; the second is the older one
OPENSHIFT_KEEPALIVED = "/etc/kubernetes/static-pod-resources/keepalived"  # exists where the node brings its own


def problems(processes: Sequence[Process], vips: Collection[str], is_openshift: bool) -> List[str]:
    """Return a sentence for each of them that is in the way.

    :param processes: those of PROGRAMS
    :param vips: the addresses that this host is to hold
    :param is_openshift: whether OPENSHIFT_KEEPALIVED exists
    """
    here = [process for process in processes if process.on_this_network]
    keepaliveds = [process for process in here if process.program == KEEPALIVED and _is_foreign(process)]
    kube_vips = [process for process in here if process.program == KUBE_VIP]
    return [
        *(_of_keepalived(process, is_openshift) for process in keepaliveds),
        *(_of_kube_vip(process, held) for process in kube_vips for held in [_held(process, vips)] if held),
    ]


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
