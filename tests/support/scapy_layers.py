# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests use of scapy. Imported by itself it reads all routes of the machine, which takes longer than the rest."""

from scapy.config import conf

__all__ = [
    "IP",
    "ICMPv6ND_NA",
    "ICMPv6ND_NS",
    "ICMPv6NDOptDstLLAddr",
    "ICMPv6NDOptSrcLLAddr",
    "IPv6",
    "Ether",
    "Raw",
    "VRRP",
    "VRRPv3",
    "scapy_checksum",
]

conf.route_autoload = conf.route6_autoload = False

from scapy.layers.inet import IP  # noqa: E402
from scapy.layers.inet6 import (  # noqa: E402
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
)
from scapy.layers.l2 import Ether  # noqa: E402
from scapy.layers.vrrp import VRRP, VRRPv3  # noqa: E402
from scapy.packet import Raw  # noqa: E402
from scapy.utils import checksum as scapy_checksum  # noqa: E402
