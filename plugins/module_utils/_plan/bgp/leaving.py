# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What FRR is told when a member leaves, and when it is back. Pure.

It forgets this when it starts anew, and when it runs its file again.
"""

from __future__ import annotations

from typing import Dict, List, Sequence

ROUTE_MAP = "onprem-lo"  # of the role `frr`, through which the VIPs on lo are announced
SHUTDOWN = "bgp graceful-shutdown"
VTYSH = ("/usr/bin/timeout", "20", "/usr/bin/vtysh")  # which waits for a bgpd that hangs


def commands(asn: int, families: Sequence[str]) -> Dict[str, List[str]]:
    """Return the commands that have FRR ask routers to prefer others, withdraw the VIPs, and run its file again.

    They are empty where FRR has no BGP that could be told: it announces nothing.

    :param families: those of its sessions
    """
    if not asn:
        return {"prefer_others": [], "withdraw": [], "as_before": []}
    return {
        "prefer_others": _vtysh(asn, [SHUTDOWN]),
        "withdraw": _vtysh(asn, _redistribution(families, "no redistribute connected")),
        "as_before": _vtysh(
            asn, [*_redistribution(families, f"redistribute connected route-map {ROUTE_MAP}"), f"no {SHUTDOWN}"]
        ),
    }


def _redistribution(families: Sequence[str], line: str) -> List[str]:
    return [each for family in families for each in (f"address-family {family} unicast", line, "exit-address-family")]


def _vtysh(asn: int, configuration: Sequence[str]) -> List[str]:
    every = ["configure terminal", f"router bgp {asn}", *configuration]
    return [*VTYSH, *(word for line in every for word in ("-c", line))]
