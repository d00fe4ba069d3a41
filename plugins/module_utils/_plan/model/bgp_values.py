# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks for ``schema.Field`` of values of BGP that FRR or a router would refuse, misread or ignore."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, Mapping

from ..._agent.config.schema import Field, address, integer, read
from .values import Checked

RESERVED = {
    23456: "stands for AS numbers of four bytes (RFC 6793)",
    65535: "is reserved (RFC 7300)",
    4294967295: "is reserved (RFC 7300)",
}
LONGEST_PASSWORD = 80  # characters: what the kernel takes
PASSWORD = re.compile(r"[!-~]+")  # without blanks, which vtysh joins
HOST_BITS = {4: 32, 6: 128}
COMMUNITY = re.compile(r"([0-9]{1,5}):([0-9]{1,5})")
LARGE_COMMUNITY = re.compile(r"([0-9]{1,10}):([0-9]{1,10}):([0-9]{1,10})")
# As FRR writes them.
WELL_KNOWN = {
    "graceful-shutdown": (65535, 0),
    "blackhole": (65535, 666),
    "no-export": (65535, 65281),
    "no-advertise": (65535, 65282),
    "local-AS": (65535, 65283),
    "no-peer": (65535, 65284),
}
BFD_DEFAULTS = {"interval": 50, "multiplier": 3, "router_interval": 10}
BFD = {
    "interval": Field(integer(10, 60000, "milliseconds"), BFD_DEFAULTS["interval"]),
    "multiplier": Field(integer(2, 255), BFD_DEFAULTS["multiplier"]),
    # How often the routers accept a packet at most (Required Min RX Interval). The forecast needs it; FRR is not told.
    "router_interval": Field(integer(10, 60000, "milliseconds"), BFD_DEFAULTS["router_interval"]),
}


def asn(value: Any) -> Checked:
    """An AS number that a router may have; RFC 7607 excludes 0."""
    found, wrong = integer(1, 4294967295, "an AS number")(value)
    if found in RESERVED:
        return None, f"this AS number {RESERVED[found]}: name the one of that router."
    return found, wrong


def optional_asn(value: Any) -> Checked:
    """An AS number, or 0 for none."""
    return (0, None) if str(value) == "0" else asn(value)


def _usable(value: Any) -> Checked:
    """An address that a host on a network can have, and another one can reach through routers."""
    found, wrong = address(value)
    if wrong:
        return None, wrong
    of = ipaddress.ip_address(found)
    if of.is_unspecified or of.is_loopback or of.is_multicast or found == "255.255.255.255":
        return None, "the address of one host on the network is required."
    return found, None


def peer_address(value: Any) -> Checked:
    """The address of a router. A link-local one would need its interface."""
    found, wrong = _usable(value)
    if found and ipaddress.ip_address(found).is_link_local:
        return None, "a link-local address is not enough to reach a router: name its global or its unique local one."
    return found, wrong


def vip(value: Any) -> Checked:
    """A VIP, with or without the length of its prefix, which is that of one address."""
    text, _slash, length = str(value).partition("/")
    found, wrong = _usable(text)
    if wrong:
        return None, wrong
    of = ipaddress.ip_address(found)
    if of.is_link_local:
        return None, "no router passes a link-local address on: name a global or a unique local one."
    if length and length != str(HOST_BITS[of.version]) or str(value).endswith("/"):
        return None, f"only single addresses are announced: write {found}/{HOST_BITS[of.version]}."
    return found, None


def router_id(value: Any) -> Checked:
    """A router ID, which is written like an IPv4 address, or nothing."""
    if value == "":
        return value, None
    found, wrong = _usable(value)
    if wrong or ":" in found:
        return None, "four numbers like an IPv4 address of this host are required."
    return found, None


def password(value: Any) -> Checked:
    """A password for TCP's MD5 (RFC 2385), as FRR reads it to the end of the line."""
    if not isinstance(value, str):
        return None, "a string is required."
    if len(value) > LONGEST_PASSWORD:
        return None, f"it has more than {LONGEST_PASSWORD} characters, which is all that the kernel takes: shorten it."
    if value and not PASSWORD.fullmatch(value):
        return None, "frr.conf can have only letters, digits and signs of ASCII in it, and no blank."
    return value, None


def community(value: Any) -> Checked:
    """A community, a large one, or the name of a well-known one, as FRR writes it."""
    if isinstance(value, str) and value in WELL_KNOWN:
        return value, None
    parts = _numbers(value)
    limit = 65535 if len(parts) == 2 else 4294967295
    if not parts or any(part > limit for part in parts) or parts == (0, 0):
        return None, f"a community such as 64512:100 or 64512:1:100, or one of {', '.join(WELL_KNOWN)} is required."
    names = {numbers: name for name, numbers in WELL_KNOWN.items()}
    return names.get(parts) or ":".join(map(str, parts)), None


def _numbers(value: Any) -> Any:
    text = value if isinstance(value, str) else ""
    found = COMMUNITY.fullmatch(text) or LARGE_COMMUNITY.fullmatch(text)
    return tuple(int(part) for part in found.groups()) if found else ()


def community_number(value: str) -> int:
    """Return the number by which FRR sorts communities."""
    high, low = WELL_KNOWN.get(value) or _numbers(value)
    return int(high) * 65536 + int(low)


def bfd_interval(bfd: Mapping[str, Any]) -> int:
    """Return in how many milliseconds a router expects a packet: the slower one of both decides (RFC 5880, 6.8.2)."""
    return max(bfd["interval"], bfd["router_interval"])


def bfd(value: Any) -> Checked:
    """How fast BFD notices a peer that is cut off."""
    if not isinstance(value, dict):
        return None, f"a mapping with {' and '.join(BFD)} is required."
    faults: Any = []
    found: Dict[str, Any] = read(BFD, value, "it", faults)
    return (None, faults[0].replace("it.", "its ", 1)) if faults else (found, None)
