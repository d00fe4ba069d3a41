# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Segments of TCP without data (RFC 9293, 3.1) as IP packets, and the filter that receives them. Pure functions."""

from __future__ import annotations

import socket
import struct
from typing import List, NamedTuple, Optional

from .bpf import (
    ALL_OF_IT,
    EQUAL,
    INDEX_IS,
    INDEX_IS_HEADER_LENGTH,
    LOAD_BYTE,
    LOAD_BYTE_AT_INDEX,
    RETURN,
    SHIFT_RIGHT,
    Step,
)

SYN, RST, ACK = 0x02, 0x04, 0x10
NO_OPERATION, MSS = 1, 2  # options
HOPS = 64
DO_NOT_FRAGMENT = 0x4000
WINDOW = 65535
PORTS = 16  # that one filter accepts, a power of two

_IPV4, _IPV6 = struct.Struct("!BBHHHBBH4s4s"), struct.Struct("!IHBB16s16s")
_TCP = struct.Struct("!HHIIBBHHH")
_WORDS = _TCP.size // 4 << 4  # the data offset, in the upper half of its byte


class Ends(NamedTuple):
    """The two ends of a segment."""

    source: str
    source_port: int
    destination: str
    destination_port: int


class Segment(NamedTuple):
    """What a segment says."""

    ends: Ends
    flags: int
    acknowledged: int
    sequence: int = 0
    traffic_class: int = 0
    mss: int = 0  # the longest segment that its sender takes; 0 if it does not say


def write(ends: Ends, flags: int, sequence: int, traffic_class: int, acknowledged: int = 0) -> bytes:
    """Return a segment in an IP packet."""
    tcp = _TCP.pack(ends.source_port, ends.destination_port, sequence, acknowledged, _WORDS, flags, WINDOW, 0, 0)
    addresses = _packed(ends.source) + _packed(ends.destination)
    tcp = _with_checksum(tcp, 16, addresses + struct.pack("!II", len(tcp), socket.IPPROTO_TCP))
    if ":" in ends.source:
        header = (6 << 28 | traffic_class << 20, len(tcp), socket.IPPROTO_TCP, HOPS)
        return _IPV6.pack(*header, _packed(ends.source), _packed(ends.destination)) + tcp
    header4 = (0x45, traffic_class, _IPV4.size + len(tcp), 0, DO_NOT_FRAGMENT, HOPS, socket.IPPROTO_TCP, 0)
    return _with_checksum(_IPV4.pack(*header4, _packed(ends.source), _packed(ends.destination)), 10) + tcp


def read(packet: bytes) -> Optional[Segment]:
    """Return the segment in an IP packet, None if there is none. Never raises."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= _IPV4.size and packet[9] == socket.IPPROTO_TCP:
        start, family, addresses = (packet[0] & 0x0F) * 4, socket.AF_INET, (packet[12:16], packet[16:20])
        traffic_class = packet[1]
    elif version == 6 and len(packet) >= _IPV6.size and packet[6] == socket.IPPROTO_TCP:
        start, family, addresses = _IPV6.size, socket.AF_INET6, (packet[8:24], packet[24:40])
        traffic_class = int.from_bytes(packet[:2], "big") >> 4 & 0xFF
    else:
        return None
    if len(packet) < start + _TCP.size:
        return None
    source_port, destination_port, sequence, acknowledged, offset, flags = _TCP.unpack_from(packet, start)[:6]
    source, destination = (socket.inet_ntop(family, address) for address in addresses)
    ends = Ends(source, source_port, destination, destination_port)
    options = packet[start + _TCP.size : start + (offset >> 4) * 4]
    return Segment(ends, flags, acknowledged, sequence, traffic_class, _mss(options))


def _mss(options: bytes) -> int:
    """Return the Maximum Segment Size among the options (RFC 9293, 3.2), 0 if there is none."""
    at = 0
    while at + 1 < len(options) and options[at]:
        kind, length = options[at], 1 if options[at] == NO_OPERATION else options[at + 1]
        if kind == MSS and length == 4 and at + length <= len(options):
            return int.from_bytes(options[at + 2 : at + 4], "big")
        if not length:
            return 0
        at += length
    return 0


def to_ports(version: int, first: int) -> List[Step]:
    """Return the filter that accepts the segments to some ports.

    :param version: of IP. The packets of such a socket begin with its header
    :param first: of PORTS ports, a multiple of that
    """
    protocol, header = (9, (INDEX_IS_HEADER_LENGTH, 0, 0, 0)) if version == 4 else (6, (INDEX_IS, 0, 0, _IPV6.size))
    return [
        (LOAD_BYTE, 0, 0, protocol),
        (EQUAL, 0, 7, socket.IPPROTO_TCP),
        header,
        (LOAD_BYTE_AT_INDEX, 0, 0, 2),
        (EQUAL, 0, 4, first >> 8),
        (LOAD_BYTE_AT_INDEX, 0, 0, 3),
        (SHIFT_RIGHT, 0, 0, PORTS.bit_length() - 1),
        (EQUAL, 0, 1, (first & 0xFF) // PORTS),
        (RETURN, 0, 0, ALL_OF_IT),
        (RETURN, 0, 0, 0),
    ]


def _packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def _with_checksum(header: bytes, at: int, pseudo: bytes = b"") -> bytes:
    """Return a header with its checksum, which is the complement of the sum of all its words (RFC 1071).

    :param at: where it belongs; there is 0 so far
    :param pseudo: what is summed up as well
    """
    checksum = -int.from_bytes(pseudo + header, "big") % 0xFFFF
    return header[:at] + struct.pack("!H", checksum) + header[at + 2 :]
