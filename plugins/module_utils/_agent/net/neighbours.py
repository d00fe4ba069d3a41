# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Probes which hosts answer for an address on the link: ARP for IPv4, neighbour solicitation for IPv6.

Each family is probed in the way that disturbs no other host:

- IPv4: an ARP Probe (RFC 5227, 1.1: sender address 0.0.0.0). A request that names a sender would be written into the
  caches of all hosts that receive it.
- IPv6: an ordinary solicitation from our own link-local address, answered to us alone. The counterpart of an ARP Probe,
  a solicitation from ``::``, would be answered to all nodes (RFC 4861, 7.2.4). Worse, a member that is taking the
  address over and still checks it for duplicates would have to give it up (RFC 4862, 5.4.3); it ignores an ordinary
  one.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Callable, List, Optional

from .arp import ETH_P_ARP, Claim, arp_claim, arp_frame, mac_bytes
from .linux import ICMPV6_FILTER, PACKET_OUTGOING
from .ndisc import ND_ADVERT, advert_claim, solicitation, solicited_node


def open_socket(interface: str, version: int) -> socket.socket:
    """Return the raw socket of one family. Needs CAP_NET_RAW (PermissionError otherwise)."""
    if version == 4:
        arp = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # it receives nothing until it is bound
        arp.bind((interface, ETH_P_ARP))
        arp.setblocking(False)
        return arp
    icmp = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    icmp.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\x00")
    # A filter of 256 bits, one for each type to block (RFC 3542, 3.2): all but Neighbour Advertisements.
    blocked = bytearray(b"\xff" * 32)
    word = ND_ADVERT // 32 * 4
    bits = struct.unpack_from("=I", blocked, word)[0] & ~(1 << (ND_ADVERT % 32))
    struct.pack_into("=I", blocked, word, bits)
    icmp.setsockopt(socket.IPPROTO_ICMPV6, ICMPV6_FILTER, bytes(blocked))
    icmp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    icmp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
    icmp.setblocking(False)
    return icmp


def own_mac(interface: str) -> bytes:
    with open(f"/sys/class/net/{interface}/address", encoding="utf-8") as handle:
        return mac_bytes(handle.read().strip())


class NeighbourProber:
    """Probes on one interface, in one family, who holds an address. Never blocks."""

    def __init__(
        self,
        interface: str,
        version: int = 4,
        opener: Callable[[str, int], Any] = open_socket,
        mac_of: Callable[[str], bytes] = own_mac,
    ) -> None:
        self.interface = interface
        self.version = version
        self._mac = mac_of(interface)
        self._socket = opener(interface, version)

    def fileno(self) -> int:
        return int(self._socket.fileno())

    def probe(self, address: str) -> None:
        if self.version == 4:
            self._socket.send(arp_frame(self._mac, "0.0.0.0", address))
        else:
            self._socket.sendto(solicitation(address, self._mac), (solicited_node(address), 0))

    def replies(self) -> List[Claim]:
        """Return every claim that has arrived, oldest first and for any address: the caller selects its own."""
        claims: List[Claim] = []
        while True:
            try:
                claim = self._receive()
            except BlockingIOError:
                return claims
            if claim is not None:
                claims.append(claim)

    def _receive(self) -> Optional[Claim]:
        if self.version == 4:
            frame, source = self._socket.recvfrom(256)
            return None if source[2] == PACKET_OUTGOING else arp_claim(frame)
        message, ancillary, _flags, _source = self._socket.recvmsg(1500, socket.CMSG_SPACE(4))
        hops = [struct.unpack("=i", data)[0] for _level, _kind, data in ancillary if len(data) == 4]
        return advert_claim(message, hops[0] if hops else 0)

    def close(self) -> None:
        self._socket.close()
