# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compares what one member sees of itself and of the link with the plan. Pure."""

from __future__ import annotations

from typing import Any, Dict, List

from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import NATIVE, PROGRAMS, UNITS


def faults(plan: Dict[str, Any], seen: Dict[str, Any]) -> List[str]:
    """Return a sentence for each thing that is not as planned, as one member sees it.

    :param plan: as ``Expected`` of the plan has it
    :param seen: ``{addresses, answering, active_units, listeners, stale}`` as `host_info` returns them, and
        ``reached``, the targets that accepted a connection
    """
    found = []
    for vip in plan["vips"]:
        count = holders(vip["address"], seen)
        if count != 1:
            found.append(f"VIP {vip['address']} has {count} holders as seen from here, exactly one is right.")
    for unit in units(plan):
        if unit not in seen["active_units"]:
            found.append(f"{unit} is not active, so this member cannot take over.")
    for path in seen["stale"]:
        found.append(
            f"haproxy still runs what it had before {path} was written: its log says why it refuses the new file."
        )
    programs = plan.get("programs", PROGRAMS[NATIVE])
    served = {item["port"] for item in seen["listeners"] if item["program"] in programs}
    for service in plan["services"]:
        if service["port"] not in served:
            found.append(f"{programs[0]} does not listen on port {service['port']} for service {service['name']}.")
    for address, port in plan["targets"]:
        if f"{address} {port}" not in seen["reached"]:
            found.append(f"nothing answers through the VIP at {address} port {port}.")
    return found


def units(plan: Dict[str, Any]) -> List[str]:
    """Return the units that must run on this member."""
    return list(plan.get("units", UNITS[NATIVE]))


def holders(vip: str, seen: Dict[str, Any]) -> int:
    """Return how many hosts hold the VIP: this one, and every other that answers for it."""
    own = any(info["address"] == vip for info in seen["addresses"])
    return int(own) + len(seen["answering"].get(vip, []))
