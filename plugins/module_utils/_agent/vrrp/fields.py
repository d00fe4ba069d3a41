# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a key of the VRRP configuration alone may hold: checks for ``schema.Field``. Pure, and none of them raises."""

from __future__ import annotations

import ipaddress
from typing import Any

from ..config.fields import SCOPED, UNREACHABLE, Checked, address, as_the_kernel_writes, reachable
from ..config.schema import one_of
from . import rules
from .core import packet

checksum = one_of(packet.RFC5798, packet.RFC9568)


def router_address(value: Any) -> Checked:
    """The address of another router, or of this one."""
    found, wrong = address(value)
    if not wrong and not reachable(ipaddress.ip_address(found)):
        return None, UNREACHABLE
    return found, wrong


def vip(value: Any) -> Checked:
    """A virtual address with its prefix length."""
    if "%" in str(value):
        return None, SCOPED
    found, wrong = rules.vip(value)
    if wrong:
        return None, wrong
    with_subnet = ipaddress.ip_interface(found)
    ip, subnet = with_subnet.ip, with_subnet.network
    if not reachable(ip):
        return None, UNREACHABLE
    if ip.version == 4 and subnet.prefixlen < 31 and ip in (subnet.network_address, subnet.broadcast_address):
        return None, "this is the subnet's own network or broadcast address."
    return f"{as_the_kernel_writes(ip)}/{subnet.prefixlen}", None
