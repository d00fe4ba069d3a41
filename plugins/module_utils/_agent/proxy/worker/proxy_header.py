# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The PROXY protocol, version 2: sends a server, before any data, the addresses of the client's connection.

Its specification is doc/proxy-protocol.txt in HAProxy's sources.
"""

from __future__ import annotations

import socket
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
VERSION_2_LOCAL, VERSION_2_PROXY = 0x20, 0x21
TCP4, TCP6 = 0x11, 0x21
_HEAD = struct.Struct("!12sBBH")  # signature, version and command, family and protocol, length of what follows


def encode(family: int, source: str, source_port: int, destination: str, destination_port: int) -> bytes:
    """Return the header of a connection.

    :param family: ``socket.AF_INET`` or ``AF_INET6``, of both addresses
    """
    addresses = b"".join(socket.inet_pton(family, each.partition("%")[0]) for each in (source, destination))
    body = addresses + struct.pack("!HH", source_port, destination_port)
    return _HEAD.pack(SIGNATURE, VERSION_2_PROXY, TCP6 if family == socket.AF_INET6 else TCP4, len(body)) + body


def local() -> bytes:
    """Return the header of a connection that the proxy makes for itself, as for a check: it has no client."""
    return _HEAD.pack(SIGNATURE, VERSION_2_LOCAL, 0, 0)


def of(client: socket.SocketType) -> bytes:
    """Return the header for a client. Raises OSError if it has gone."""
    source, destination = client.getpeername(), client.getsockname()
    return encode(client.family, *source[:2], *destination[:2])


def none(_client: socket.SocketType) -> bytes:
    """Return no header, for servers without the PROXY protocol."""
    return b""
