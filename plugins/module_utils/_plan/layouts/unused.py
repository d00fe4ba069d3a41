# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an earlier run has set up on a node, and its plan does not need any more. Pure.

A router that is only stopped would start at the next boot, and take the VIPs of the others, which no longer send to it.
"""

from __future__ import annotations

from typing import Any, Dict, List

from ..._shared.engines import AGENT, NATIVE, UNITS


def unused(host: Dict[str, Any], engine: str, replaces: str, serves: bool, routes: bool) -> List[str]:
    """Return the component roles to remove, the router's before the balancer's.

    :param host: as `host_info` returns it
    :param replaces: the engine that goes, which its migration removes; or nothing
    :param serves: whether the node has a balancer in the plan
    :param routes: whether it has a VRRP router
    """
    ours = {*host.get("own_units", [])}
    native = {"keepalived": (UNITS[NATIVE].router, routes), "haproxy": (UNITS[NATIVE].balancer, serves)}
    migrated = replaces if routes else ""
    found = [
        role
        for role, (unit, is_needed) in native.items()
        if unit in ours and migrated != NATIVE and not (engine == NATIVE and is_needed)
    ]
    needs_agent = migrated == AGENT or (engine == AGENT and routes)
    return [*found, *(["agent"] if ours & {*UNITS[AGENT]} and not needs_agent else [])]
