# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The TCP connections that this host's own programs have, from the kernel's tables of sockets."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Collection, Iterator, List, NamedTuple

from ..net.socket_tables import LISTEN, TABLES, TIME_WAIT, unmapped_address
from .rulesets import Place


class Connection(NamedTuple):
    """One of a client."""

    local: str
    port: int
    client: str
    client_port: int


def connections(places: Collection[Place], root: str = "/proc/self") -> List[Connection]:
    """Return those whose local address and port are one of these places.

    :param root: that of this process, which a unit with ``ProcSubset=pid`` has as well
    :raises OSError: if a table cannot be read; that of IPv6 is missing in a kernel without it
    """
    four, six = (os.path.join(root, name) for name in TABLES)
    with open(four, encoding="ascii") as table:
        found = list(listed(table.read(), places))
    with contextlib.suppress(FileNotFoundError), open(six, encoding="ascii") as table:
        found += listed(table.read(), places)
    return found


def listed(table: str, places: Collection[Place]) -> Iterator[Connection]:
    """Return those of a table. There may be many sockets, so a pattern leaves out those at other ports."""
    ports = "|".join(sorted({f"{port:04X}" for _address, port in places}))
    pattern = rf"^ *\d+: ([0-9A-F]+):({ports}) ([0-9A-F]+):([0-9A-F]{{4}}) (?!{TIME_WAIT}|{LISTEN})"
    for match in re.finditer(pattern, table, re.MULTILINE):
        local, port, client, client_port = match.groups()
        place = unmapped_address(local), int(port, 16)
        if place in places:
            yield Connection(*place, unmapped_address(client), int(client_port, 16))
