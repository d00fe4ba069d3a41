# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The first message of a TLS client, read as it arrives: it names the server that the client wants. Pure.

A ClientHello (RFC 8446, section 4.1.2) may be spread over several records (5.1), and each record over segments. Nothing
after it is read, nothing is decrypted, and every byte is passed on as it came.
"""

from __future__ import annotations

import struct
from typing import Iterator, Optional, Tuple

LIMIT = 1 << 14  # bytes, with the records' headers
HANDSHAKE, CLIENT_HELLO, SSL_3 = 22, 1, 3
LONGEST_RECORD = 1 << 14
SERVER_NAME, HOST_NAME = 0, 0  # RFC 6066, section 3
RECORD_HEADER, MESSAGE_HEADER = 5, 4
VERSION_AND_RANDOM = 2 + 32


class NotTls(Exception):
    """What a client sends is no ClientHello, or too long for one."""


class ClientHello:
    """The bytes of one client so far. Each is looked at once, however small the pieces are."""

    def __init__(self) -> None:
        self.received = bytearray()
        self._message = bytearray()
        self._next_record = 0

    @property
    def room(self) -> int:
        """How many more bytes may come."""
        return LIMIT - len(self.received)

    def add(self, data: bytes) -> Optional[str]:
        """Return the server's name in lower case, '' if the client names none, and None until that is known.

        :raises NotTls: as soon as it is known that no ClientHello comes
        """
        self.received += data
        while self._take_record():
            end = self._end()
            if len(self._message) >= end:
                return _server_name(bytes(self._message[MESSAGE_HEADER:end]))
        if self.room <= 0:
            raise NotTls
        return None

    def _end(self) -> int:
        """Return how long the message is, or that it is longer than what is there of it."""
        if self._message[0] != CLIENT_HELLO:
            raise NotTls
        if len(self._message) < MESSAGE_HEADER:
            return MESSAGE_HEADER
        end = MESSAGE_HEADER + int.from_bytes(self._message[1:MESSAGE_HEADER], "big")
        if end > LIMIT:
            raise NotTls
        return end

    def _take_record(self) -> bool:
        """Take the next record if all of it is there; return whether it was."""
        header = bytes(self.received[self._next_record : self._next_record + RECORD_HEADER])
        if header[:1] not in (b"", bytes([HANDSHAKE])) or header[1:2] not in (b"", bytes([SSL_3])):
            raise NotTls
        if len(header) < RECORD_HEADER:
            return False
        length = int.from_bytes(header[3:], "big")
        if not 0 < length <= LONGEST_RECORD:
            raise NotTls
        start = self._next_record + RECORD_HEADER
        if len(self.received) < start + length:
            return False
        self._message += self.received[start : start + length]
        self._next_record = start + length
        return True


def _server_name(body: bytes) -> str:
    """Return the name in the body of a ClientHello."""
    try:
        rest = body[VERSION_AND_RANDOM:]
        for width in (1, 2, 1):  # session, cipher suites, compression methods
            _skipped, rest = _vector(rest, width)
        for kind, content in _extensions(_vector(rest, 2)[0] if rest else b""):
            if kind == SERVER_NAME:
                return _host_name(_vector(content, 2)[0])
    except (IndexError, struct.error, UnicodeDecodeError):
        raise NotTls from None
    return ""


def _extensions(data: bytes) -> Iterator[Tuple[int, bytes]]:
    while data:
        (kind,) = struct.unpack_from("!H", data)
        content, data = _vector(data[2:], 2)
        yield kind, content


def _host_name(names: bytes) -> str:
    while names:
        kind, (name, names) = names[0], _vector(names[1:], 2)
        if kind == HOST_NAME:
            return name.decode("ascii").lower()
    return ""


def _vector(data: bytes, width: int) -> Tuple[bytes, bytes]:
    """Return a vector's content, whose length is in the first bytes, and what follows."""
    end = width + int.from_bytes(data[:width], "big")
    if len(data) < max(width, end):
        raise IndexError
    return data[width:end], data[end:]
