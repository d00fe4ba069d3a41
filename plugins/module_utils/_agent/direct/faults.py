# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with the direct plane, by its report. Pure."""

from __future__ import annotations

from typing import Any, Dict, List

from .settings import HOST

Report = Dict[str, Any]


def faults(report: Report) -> List[str]:
    """Return a sentence for each reason why clients may get no answer, or fewer servers than there are."""
    table = report["table"]
    why = f": {table['fault']}" if table["fault"] else "."
    missing = [] if table["in_force"] else [f"the table on {report['interface']} is not there{why}"]
    idle = [
        f"{service['name']}/{each['name']} ({each['state']})"
        for service in report["services"]
        if service["new_connections"] != HOST
        for each in service["servers"]
        if not each["owner"]
    ]
    mtu = [report["mtu_fault"]] if report.get("mtu_fault") else []  # a plane that runs may be an older one
    without = [f"these servers get no new connections: {', '.join(idle)}."] if idle else []
    return [*missing, *mtu, *without, *paths(report)]


def paths(report: Report) -> List[str]:
    """Return why the packets of clients do not get through to some servers."""
    return [
        f"{service['name']}/{each['path_fault']}"
        for service in report["services"]
        for each in service["servers"]
        if each["path_fault"]
    ]
