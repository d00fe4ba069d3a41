# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The TCP connections that this host's own programs have, from the kernel's tables of sockets."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from typing import Collection, Iterator, List, NamedTuple

from .rulesets import Place

TABLES = ("net/tcp", "net/tcp6")
TIME_WAIT, LISTEN = "06", "0A"  # <net/tcp_states.h>: these are no connections
MAPPED = bytes(10) + b"\xff\xff"  # what an IPv4 address has before it in IPv6
WORD = 4


class Connection(NamedTuple):
    """One of a client."""

    local: str
    port: int
    client: str
    client_port: int


def connections(places: Collection[Place], root: str = "/proc") -> List[Connection]:
    """Return those whose local address and port are one of these places."""
    found: List[Connection] = []
    for name in TABLES:
        with contextlib.suppress(FileNotFoundError), open(os.path.join(root, name), encoding="ascii") as table:
            found += listed(table.read(), places)
    return found


def listed(table: str, places: Collection[Place]) -> Iterator[Connection]:
    """Return those of a table. There may be many sockets, so a pattern leaves out those at other ports."""
    ports = "|".join(sorted({f"{port:04X}" for _address, port in places}))
    pattern = rf"^ *\d+: ([0-9A-F]+):({ports}) ([0-9A-F]+):([0-9A-F]{{4}}) (?!{TIME_WAIT}|{LISTEN})"
    for match in re.finditer(pattern, table, re.MULTILINE):
        local, port, client, client_port = match.groups()
        place = _address(local), int(port, 16)
        if place in places:
            yield Connection(*place, _address(client), int(client_port, 16))


def _address(text: str) -> str:
    """Read an address that the kernel prints as 32-bit words in the host's byte order."""
    found = bytes.fromhex(text)
    if sys.byteorder == "little":
        found = b"".join(found[at : at + WORD][::-1] for at in range(0, len(found), WORD))
    if found.startswith(MAPPED):
        found = found[len(MAPPED) :]
    return socket.inet_ntop(socket.AF_INET if len(found) == WORD else socket.AF_INET6, found)
