# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an earlier run has set up on a node, and its plan does not need any more; and what it needs. Pure.

A router that is only stopped would start at the next boot, and take the VIPs of the others, which no longer send to it.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Set

from ..._agent.config.schema import Faults
from ..._shared.engines import AGENT, HAPROXY, KEEPALIVED, NATIVE, UNITS
from ..._shared.paths import GATE

FRR, FRR_UNIT = "frr", "frr.service"


def unused(host: Dict[str, Any], engine: str, serves: bool, routes: bool, announces: bool) -> List[str]:
    """Return the component roles to remove, the router's before the balancer's.

    On a node with a router the other engine goes by its migration, and the agent's module removes a balancer.

    :param host: as `host_info` returns it
    :param serves: whether the node has a balancer in the plan
    :param routes: whether it has a VRRP router
    :param announces: whether it announces VIPs by BGP
    """
    ours = {*host.get("own_units", [])}
    left = FRR_UNIT in ours or GATE in host.get("existing_units", [])
    return [*([FRR] if left and not announces else []), *_of_vrrp(ours, engine, serves, routes)]


def _of_vrrp(ours: Set[str], engine: str, serves: bool, routes: bool) -> List[str]:
    haproxy = [HAPROXY] if UNITS[NATIVE].balancer in ours else []
    if routes:
        return haproxy if engine == NATIVE and not serves else []
    keepalived = [KEEPALIVED] if UNITS[NATIVE].router in ours else []
    if serves:  # its VIPs are announced by BGP
        return keepalived if engine == NATIVE else []
    return [*keepalived, *haproxy, *([AGENT] if ours & {*UNITS[AGENT]} else [])]


def needed(packages: Collection[str], components: Collection[str]) -> List[str]:
    """Return those packages of a layout that a node needs: what was removed stays away.

    Those that are named like no component are for what HAProxy and keepalived call.

    :param components: the component roles that set the node up
    """
    idle = {HAPROXY, KEEPALIVED} - {*components}
    return [name for name in packages if components and name not in idle]


def without_unneeded(host: Mapping[str, Any], components: Collection[str]) -> Dict[str, Any]:
    """Return a host without the missing packages that its plan does not need. Before the plan nobody knows them.

    :param host: as `host_info` returns it
    """
    return {**host, "missing_packages": needed(host["missing_packages"], components)}


def faults(host: Dict[str, Any], roles: List[str]) -> Faults:
    """Return why packages of these roles could not be removed, before anything is changed."""
    unremovable = host.get("unremovable", {})
    return [unremovable[name] for name in roles if name in unremovable]
