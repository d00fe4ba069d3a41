# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks a name server for the addresses of a name, without the host's own resolver."""

from __future__ import annotations

import random
import socket
import struct
from typing import List, NamedTuple, Optional

PORT = 53
TYPES = {"A": (1, socket.AF_INET), "AAAA": (28, socket.AF_INET6)}
RECURSION, INTERNET, RCODE = 0x0100, 1, 0x000F


class Answer(NamedTuple):
    """What a name server has said; ``rcode`` is None if it was nothing."""

    rcode: Optional[int]
    addresses: List[str]


def ask(server: str, name: str, kind: str, timeout: float = 1.0) -> Answer:
    """Return what a name server says of a name: A or AAAA."""
    number, serial = TYPES[kind][0], random.getrandbits(16)
    labels = b"".join(bytes([len(label)]) + label.encode("ascii") for label in name.split("."))
    query = struct.pack("!6H", serial, RECURSION, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", number, INTERNET)
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as client:
            client.settimeout(timeout)
            client.connect((server, PORT))
            client.send(query)
            reply = client.recv(4096)
            return _read(reply, len(query), kind) if reply[:2] == query[:2] else Answer(None, [])
    except (OSError, struct.error, IndexError):
        return Answer(None, [])


def _read(reply: bytes, at: int, kind: str) -> Answer:
    """Return the addresses in a reply whose question ends at a place."""
    _serial, flags, _questions, count = struct.unpack_from("!4H", reply)
    found = []
    for _each in range(count):
        while reply[at] and reply[at] < 0xC0:  # a label; 0xC0 begins a pointer, after which the name ends
            at += reply[at] + 1
        at += 2 if reply[at] else 1
        number, _class, _ttl, length = struct.unpack_from("!HHIH", reply, at)
        if number == TYPES[kind][0]:
            found.append(socket.inet_ntop(TYPES[kind][1], reply[at + 10 : at + 10 + length]))
        at += 10 + length
    return Answer(flags & RCODE, sorted(found))
