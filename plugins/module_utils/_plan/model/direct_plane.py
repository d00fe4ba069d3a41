# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The services of a member's direct plane, as its plan has them: their servers answer the clients themselves. Pure."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping

PROXY, DIRECT, DRAINING = PLANES = ("proxy", "direct", "draining")
# To whom the plane leaves new connections. Of a plane that drains, the older ones live on.
NEW_CONNECTIONS = {DIRECT: "servers", DRAINING: "host"}

Service = Dict[str, Any]


def services(direct: Mapping[str, Any]) -> List[Service]:
    """Return the services of a plane.

    :param direct: a member's plan of it; empty without one
    """
    found: List[Service] = json.loads(direct["content"])["services"] if direct else []
    return found


def drains(service: Service) -> bool:
    return bool(service.get("new_connections") == NEW_CONNECTIONS[DRAINING])


def kept_ports(direct: Mapping[str, Any], vip: str) -> List[int]:
    """Return the ports of a VIP whose connections the servers keep, whichever member they come by."""
    return [service["port"] for service in services(direct) if vip in service["bind"] and not drains(service)]
