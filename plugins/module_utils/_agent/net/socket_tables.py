# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel's tables of TCP sockets, ``/proc/net/tcp`` and ``/proc/net/tcp6``. Pure."""

from __future__ import annotations

import socket
import sys

TABLES = ("net/tcp", "net/tcp6")  # in /proc
ESTABLISHED, TIME_WAIT, LISTEN = "01", "06", "0A"  # states, of <net/tcp_states.h>
WORD = 4  # bytes
MAPPED = bytes(10) + b"\xff\xff"  # what an IPv4 address has before it in IPv6 (RFC 4291, 2.5.5.2)


def address(text: str) -> str:
    """Read an address that the kernel prints as 32-bit words in the host's byte order. A mapped one is one of IPv6."""
    return _printed(_bytes(text))


def unmapped_address(text: str) -> str:
    """Read an address in the same way; a mapped one is one of IPv4."""
    found = _bytes(text)
    return _printed(found[len(MAPPED) :] if found.startswith(MAPPED) else found)


def _bytes(text: str) -> bytes:
    found = bytes.fromhex(text)
    if sys.byteorder == "big":
        return found
    return b"".join(found[at : at + WORD][::-1] for at in range(0, len(found), WORD))


def _printed(found: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(found) == WORD else socket.AF_INET6, found)
