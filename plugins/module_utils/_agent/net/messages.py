# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The framing of netlink messages: headers and attributes (netlink(7), RFC 3549, 2.3). Pure functions over bytes.

Everything is in the machine's byte order and aligned to 4. No message from the kernel raises here: a truncated message
is left out, and everything after it, because its length cannot be trusted.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, NamedTuple

# Kinds of message, and flags, of <linux/netlink.h>.
ERROR, DONE = 2, 3
REQUEST, ACKNOWLEDGE, DUMP_INTERRUPTED = 0x01, 0x04, 0x10
EXCLUSIVE, CREATE, DUMP = 0x200, 0x400, 0x300
ATTRIBUTE_TYPE_MASK = 0x3FFF  # NLA_TYPE_MASK: without the flags for nesting and byte order

_HEADER = struct.Struct("=IHHII")  # length, kind, flags, serial number, port
_ACKNOWLEDGEMENT = struct.Struct("=IHHIIi")  # the same, and an errno
_ATTRIBUTE = struct.Struct("=HH")  # length, kind
_NUMBER = struct.Struct("=i")


class Message(NamedTuple):
    """One message without its header."""

    kind: int
    flags: int
    serial: int
    body: bytes
    port: int = 0  # in an event: the socket that has caused it, as a rule the number of its process


def encode(message: Message) -> bytes:
    length = _HEADER.size + len(message.body)
    return _HEADER.pack(length, message.kind, message.flags, message.serial, message.port) + message.body


def decode(data: bytes) -> Iterator[Message]:
    """Yield the messages of one datagram."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, flags, serial, port = _HEADER.unpack_from(data, at)
        if length < _HEADER.size or at + length > len(data):
            return
        yield Message(kind, flags, serial, data[at + _HEADER.size : at + length], port)
        at += _aligned(length)


def acknowledges(data: bytes, serial: int) -> bool:
    """Whether a datagram acknowledges that a request succeeded."""
    if len(data) < _ACKNOWLEDGEMENT.size:
        return False
    _length, kind, _flags, number, _port, failed = _ACKNOWLEDGEMENT.unpack_from(data)
    return (kind, number, failed) == (ERROR, serial, 0)


def attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return (_ATTRIBUTE.pack(length, kind) + value).ljust(_aligned(length), b"\x00")


def attributes(data: bytes) -> Dict[int, bytes]:
    """Return kind -> value; a truncated one is left out."""
    found: Dict[int, bytes] = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or at + length > len(data):
            break
        found[kind & ATTRIBUTE_TYPE_MASK] = data[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)
    return found


def failure(message: Message) -> int:
    """Return the errno in the last message of an answer, 0 for success."""
    return -_NUMBER.unpack_from(message.body)[0] if len(message.body) >= _NUMBER.size else 0


def _aligned(length: int) -> int:
    return (length + 3) & ~3
