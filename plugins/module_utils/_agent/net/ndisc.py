# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Neighbour Discovery for IPv6 over Ethernet (RFC 4861): messages and frames as bytes. Pure functions."""

from __future__ import annotations

import socket
import struct
from typing import Optional

from .arp import Claim, mac_text
from .ip import IPV6, ipv6_header

ND_SOLICIT, ND_ADVERT = 135, 136
OPTION_SOURCE_MAC, OPTION_TARGET_MAC = 1, 2
# RFC 4861, 4.4; the third one, Solicited, is only for an answer.
ROUTER, OVERRIDE = 0x80000000, 0x20000000
ALL_NODES, GROUP_MAC = "ff02::1", bytes.fromhex("3333")


def solicited_node(address: str) -> str:
    """Return the group on which the holder of the address listens (RFC 4291, 2.7.1)."""
    group = bytes.fromhex("ff0200000000000000000001ff") + _packed(address)[-3:]
    return socket.inet_ntop(socket.AF_INET6, group)


def solicitation(target: str, own_mac: bytes) -> bytes:
    """Return a Neighbour Solicitation without IPv6 header (RFC 4861, 4.3).

    The checksum stays 0: the kernel fills it in on a raw ICMPv6 socket (RFC 3542, 3.1). It must contain our
    own MAC, for the answer.
    """
    head = struct.pack("!BBHI", ND_SOLICIT, 0, 0, 0)
    return head + _packed(target) + struct.pack("!BB", OPTION_SOURCE_MAC, 1) + own_mac


def advert(target: str, own_mac: bytes, router: bool = False) -> bytes:
    """Return an unsolicited Neighbour Advertisement with Override: what a new holder sends (RFC 4861, 4.4 and 7.2.6).

    Without IPv6 header, and with checksum 0, for a raw ICMPv6 socket.
    """
    head = struct.pack("!BBHI", ND_ADVERT, 0, 0, OVERRIDE | (ROUTER if router else 0))
    return head + _packed(target) + struct.pack("!BB", OPTION_TARGET_MAC, 1) + own_mac


def advert_frame(target: str, own_mac: bytes, router: bool = False) -> bytes:
    """Return the same as a whole Ethernet frame to all nodes, from the address that it is about."""
    return _frame(advert(target, own_mac, router), own_mac, target, ALL_NODES)


def solicitation_frame(target: str, own_mac: bytes, source: str) -> bytes:
    """Return a Neighbour Solicitation as a whole Ethernet frame, from one of our addresses."""
    return _frame(solicitation(target, own_mac), own_mac, source, solicited_node(target))


def _frame(message: bytes, own_mac: bytes, source: str, group: str) -> bytes:
    """Return a message with its checksum, in a frame to a group (RFC 2464, 7)."""
    pseudo = _packed(source) + _packed(group) + struct.pack("!II", len(message), socket.IPPROTO_ICMPV6)  # RFC 8200, 8.1
    # One's complement: the words' sum modulo 0xFFFF is the remainder of one big number, as in vrrp/core/packet.py.
    checksum = -int.from_bytes(pseudo + message, "big") % 0xFFFF
    message = message[:2] + struct.pack("!H", checksum) + message[4:]
    ethernet = GROUP_MAC + _packed(group)[-4:] + own_mac + struct.pack("!H", IPV6)
    return ethernet + ipv6_header(source, group, socket.IPPROTO_ICMPV6, len(message)) + message


def advert_claim(message: bytes, hop_limit: int) -> Optional[Claim]:
    """Return the claim in a Neighbour Advertisement, None if there is none.

    RFC 4861, 7.1.2: it is valid only with hop limit 255 and code 0.
    """
    if hop_limit != 255 or len(message) < 24 or message[0] != ND_ADVERT or message[1] != 0:
        return None
    target = socket.inet_ntop(socket.AF_INET6, message[8:24])
    at = 24
    while at + 2 <= len(message):
        kind, length = message[at], message[at + 1] * 8
        if length == 0 or at + length > len(message):
            return None
        if kind == OPTION_TARGET_MAC and length == 8:
            return target, mac_text(message[at + 2 : at + 8])
        at += length
    return None


def _packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6, address)
