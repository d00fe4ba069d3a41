# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stick table of a backend as `sticky` of a service, where that does the same. Pure.

A cookie is none of it: the servers' values would be others, and each client would lose its server.
"""

from __future__ import annotations

import re
from typing import Any, Collection, Dict, List, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults, read
from ..model.stick import OF_ANSWER, OF_REQUEST, SOURCE, STICKY, STICKY_TABLE, name_of
from .sections import Line
from .servers import Server, timed

TABLE = re.compile(r"stick-table type (ip|ipv6|string)(?: len (\d+))? size (\w+) expire (\w+)")
USUAL_LEN = "32"  # HAProxy's
STICKS = ("stick", "stick-table")


def sticky(
    lines: Sequence[Line], servers: Sequence[Server], name: str, hosts: Collection[str], taken: Collection[str]
) -> Tuple[Optional[Dict[str, Any]], List[Line]]:
    """Return the key, and the lines that it says; None where the lines have to stay as they are.

    :param lines: of the backend
    :param hosts: at which the service listens
    :param taken: the names of all sections
    """
    mine = [line for line in lines if line.keyword in STICKS]
    tables = [TABLE.fullmatch(" ".join(line.words)) for line in mine if line.keyword == "stick-table"]
    if len(tables) != 1 or not tables[0] or any("backup" in server.options for server in servers):
        return None, []
    if name_of(name, STICKY_TABLE) in taken:
        return None, []
    kind, length, size, expire = tables[0].groups()
    on = [" ".join(line.words) for line in mine if line.keyword == "stick"]
    by = on[0][len("stick on ") :] if on and on[0].startswith("stick on ") else ""
    found: Dict[str, Any] = {"by": SOURCE if by == "src" else by, "size": size, "expire": timed(expire)}
    found.update({} if by == "src" else {"len": int(length or USUAL_LEN)})
    if on[1:] != _given(by) or not _fits(kind, by, hosts) or _faults(found):
        return None, []
    return found, mine


def _given(by: str) -> List[str]:
    """Return the line that the role writes besides for a cookie of the application."""
    return [f"stick store-response {by.replace(OF_REQUEST, OF_ANSWER, 1)}"] if by.startswith(OF_REQUEST) else []


def _fits(kind: str, by: str, hosts: Collection[str]) -> bool:
    """Return whether the table of the role, which is for IPv6 as well, has the same keys."""
    if by != "src":
        return kind == "string" and by != ""
    return kind == "ipv6" or (kind == "ip" and not any(":" in host for host in hosts))


def _faults(found: Dict[str, Any]) -> Faults:
    faults: Faults = []
    read(STICKY, found, "sticky", faults)
    return faults
