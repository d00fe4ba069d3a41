# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""VRRP messages in IP packets, built without the code under test. test_ip.py compares them with scapy's."""

from __future__ import annotations

import ipaddress
import struct

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet

A, GROUP = "192.0.2.1", "224.0.0.18"
A6, GROUP6 = "fe80::1", "ff02::12"
V2 = packet.Advertisement(2, 51, 100, 1_000_000, ("192.0.2.100",), 1, b"secret")
V3 = packet.Advertisement(3, 51, 100, 1_000_000, ("192.0.2.100",))
V6 = packet.Advertisement(3, 51, 100, 1_000_000, ("fe80::64",))


def ipv4(advertisement=V2, ttl=255, options=b"", fragment=0, protocol=112, destination=GROUP):
    message = packet.encode(advertisement, A, destination)
    first, total = 0x45 + len(options) // 4, 20 + len(options) + len(message)
    ends = ipaddress.ip_address(A).packed + ipaddress.ip_address(destination).packed
    return struct.pack("!BBHHHBBH", first, 0xC0, total, 1, fragment, ttl, protocol, 0) + ends + options + message


def ipv6(advertisement=V6, hop_limit=255, following=112, destination=GROUP6):
    message = packet.encode(advertisement, A6, destination)
    ends = ipaddress.ip_address(A6).packed + ipaddress.ip_address(destination).packed
    return struct.pack("!IHBB", 0x6C000000, len(message), following, hop_limit) + ends + message


def flip(message):
    """Return a message with its last bit inverted."""
    return message[:-1] + bytes([message[-1] ^ 1])
