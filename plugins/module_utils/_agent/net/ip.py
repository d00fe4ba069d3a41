# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""IP headers: reads those of received VRRP packets, and writes those of sent ones. Pure functions."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple, Optional

from ..vrrp.core.packet import PROTOCOL, REQUIRED_HOP_LIMIT

IPV4, IPV6 = 0x0800, 0x86DD
# Internetwork control, Class Selector 6 (RFC 4594, 3.2): what keepalived and routers give VRRP.
TRAFFIC_CLASS = 0xC0

_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_IPV6 = struct.Struct("!IHBB16s16s")


class Datagram(NamedTuple):
    """A VRRP message and what its IP header says. Addresses are text as ``inet_ntop`` writes it, without a scope."""

    source: str
    destination: str
    hop_limit: int
    message: bytes
    whole: bool  # False for a fragment
    age: int = 0  # how long ago it arrived, in microseconds, if known


def read(data: bytes, protocol: int) -> Optional[Datagram]:
    """Return the VRRP message in an IP packet, None if there is none. Never raises.

    :param protocol: the EtherType, IPV4 or IPV6
    """
    if protocol == IPV4:
        return _read_ipv4(data)
    return _read_ipv6(data) if protocol == IPV6 else None


def _read_ipv4(data: bytes) -> Optional[Datagram]:
    """RFC 791, 3.1. The total length tells where the message ends: short frames are padded."""
    if len(data) < 20 or data[0] >> 4 != 4 or data[9] != PROTOCOL:
        return None
    header, total = (data[0] & 0x0F) * 4, int.from_bytes(data[2:4], "big")
    # "Don't fragment" aside, both the flag "more fragments" and the offset must be 0.
    whole = not int.from_bytes(data[6:8], "big") & 0x3FFF
    if header < 20:
        return None
    source, destination = socket.inet_ntoa(data[12:16]), socket.inet_ntoa(data[16:20])
    return Datagram(source, destination, data[8], data[header:total], whole)


def _read_ipv6(data: bytes) -> Optional[Datagram]:
    """RFC 8200, 3. VRRP comes right behind the header (RFC 9568, 5.1.2)."""
    if len(data) < 40 or data[0] >> 4 != 6 or data[6] != PROTOCOL:
        return None
    end = 40 + int.from_bytes(data[4:6], "big")
    source, destination = (socket.inet_ntop(socket.AF_INET6, data[at : at + 16]) for at in (8, 24))
    return Datagram(source, destination, data[7], data[40:end], whole=True)


def ipv4_header(source: str, destination: str, size: int) -> bytes:
    """Return the header for a VRRP message of so many bytes (RFC 9568, 5.1.1).

    Identification and checksum stay 0: the kernel fills them in for a socket with IP_HDRINCL (raw(7)).
    """
    ends = socket.inet_aton(source), socket.inet_aton(destination)
    return _IPV4.pack(0x45, TRAFFIC_CLASS, _IPV4.size + size, 0, 0, REQUIRED_HOP_LIMIT, PROTOCOL, 0, *ends)


def ipv6_header(source: str, destination: str, following: int, size: int) -> bytes:
    """Return the header for so many bytes of the protocol that follows, with a hop limit of 255 (RFC 8200, 3)."""
    ends = (socket.inet_pton(socket.AF_INET6, address) for address in (source, destination))
    return _IPV6.pack(6 << 28, size, following, 255, *ends)
