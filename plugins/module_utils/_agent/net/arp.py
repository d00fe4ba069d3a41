# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ARP for IPv4 over Ethernet (RFC 826, RFC 5227): frames as bytes. Pure functions."""

from __future__ import annotations

import socket
import struct
from typing import Optional, Tuple

ETH_P_ARP = 0x0806
ARP_REQUEST, ARP_REPLY = 1, 2
NO_MAC = b"\x00" * 6
BROADCAST = b"\xff" * 6

_ETHERNET_SIZE = 14
_ARP = struct.Struct("!HHBBH6s4s6s4s")
Claim = Tuple[str, str]  # an address and the MAC that claims it, both as text


def mac_text(mac: bytes) -> str:
    return ":".join(f"{octet:02x}" for octet in mac)


def mac_bytes(text: str) -> bytes:
    mac = bytes.fromhex(text.replace(":", "").replace("-", ""))
    if len(mac) != 6:
        raise ValueError(f"{text} is not an Ethernet address")
    return mac


def arp_frame(sender_mac: bytes, sender: str, target: str, operation: int = ARP_REQUEST) -> bytes:
    """Return a broadcast ARP frame (RFC 826).

    With sender 0.0.0.0 it is an ARP Probe; with sender = target an announcement, which moves the address in every
    cache (RFC 5227, 1.1 and 3).
    """
    ethernet = BROADCAST + sender_mac + struct.pack("!H", ETH_P_ARP)
    ends = sender_mac, socket.inet_aton(sender), NO_MAC, socket.inet_aton(target)
    return ethernet + _ARP.pack(1, 0x0800, 6, 4, operation, *ends)


def arp_claim(frame: bytes) -> Optional[Claim]:
    """Return the claim in a frame, None if there is none.

    Requests count as much as replies: a host that puts an address in the sender field uses it (RFC 5227, 2.4). A
    Probe claims nothing.
    """
    if len(frame) < _ETHERNET_SIZE + _ARP.size or frame[12:14] != struct.pack("!H", ETH_P_ARP):
        return None
    hardware, protocol, mac_size, size, operation, mac, sender, _to, _target = _ARP.unpack_from(frame, _ETHERNET_SIZE)
    if (hardware, protocol, mac_size, size) != (1, 0x0800, 6, 4) or operation not in (ARP_REQUEST, ARP_REPLY):
        return None
    if sender == b"\x00" * 4:
        return None
    return socket.inet_ntoa(sender), mac_text(mac)
