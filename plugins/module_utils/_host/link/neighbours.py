# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts answer for an address on the link: ARP for IPv4, neighbour solicitation for IPv6.

The packets are the agent's; only ``NeighbourProber`` touches a socket.

Each family is probed in the way that disturbs no other host:

- IPv4: an ARP Probe (RFC 5227, 1.1: sender address 0.0.0.0). A request that names a sender would be written into the
  caches of all hosts that receive it.
- IPv6: an ordinary solicitation from our own link-local address, answered to us alone. The counterpart of an ARP Probe,
  a solicitation from ``::``, would be answered to all nodes (RFC 4861, 7.2.4). Worse, a member that is taking the
  address over and still checks it for duplicates would have to give it up (RFC 4862, 5.4.3); it ignores an ordinary
  one.
"""

from __future__ import annotations

import ipaddress
import json
import select
import socket
import struct
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.net.arp import (
    ETH_P_ARP,
    Claim,
    arp_claim,
    arp_frame,
    mac_bytes,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.linux import ICMPV6_FILTER, PACKET_OUTGOING
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.ndisc import (
    ND_ADVERT,
    advert_claim,
    solicitation,
    solicited_node,
)


class Link(NamedTuple):
    """How the kernel would send to an address: the interface, or why it cannot be probed from here."""

    interface: str
    reason: str


def link_to(route: str) -> Link:
    """Read ``ip -j route get ADDRESS``: only an address on the same link can be probed."""
    try:
        found: Dict[str, Any] = (json.loads(route or "[]") or [{}])[0]
    except ValueError:
        found = {}
    device = str(found.get("dev", ""))
    if not device:
        return Link("", "there is no route to it from here")
    if found.get("type") == "local" or device == "lo":
        return Link("", "this host holds the address itself")
    via = found.get("gateway") or (found.get("via") or {}).get("host")
    if via:
        return Link("", f"it is not on a link of this host, but behind the router {via}")
    return Link(device, "")


def open_socket(interface: str, version: int) -> socket.socket:
    """Return the raw socket of one family. Needs CAP_NET_RAW (PermissionError otherwise)."""
    if version == 4:
        arp = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP))
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


def wait_readable(probers: Sequence[Any], seconds: float) -> None:
    select.select(list(probers), [], [], max(0.0, seconds))


def holders_on_link(
    addresses_by_interface: Mapping[str, Sequence[str]],
    wait_s: float,
    clock: Callable[[], float] = time.monotonic,
    make: Callable[[str, int], Any] = NeighbourProber,
    wait: Callable[[Sequence[Any], float], None] = wait_readable,
) -> Dict[str, List[str]]:
    """Return the MACs that answer for each address; an empty list where none does.

    Listens for the whole ``wait_s``, because a second holder may be slower, and probes again half-way, because a packet
    may be lost.
    """
    targets = _by_family(addresses_by_interface)
    found: Dict[str, Set[str]] = {str(a): set() for many in addresses_by_interface.values() for a in many}
    probers: Dict[Tuple[str, int], Any] = {}
    try:
        for key in targets:
            probers[key] = make(*key)
        begin = clock()
        for until in (begin + wait_s / 2, begin + wait_s):
            for key, names in targets.items():
                for address in names:
                    probers[key].probe(address)
            _listen(probers, targets, found, until, clock, wait)
    finally:
        for prober in probers.values():
            prober.close()
    return {address: sorted(macs) for address, macs in found.items()}


Targets = Dict[Tuple[str, int], Dict[str, str]]


def _by_family(addresses_by_interface: Mapping[str, Sequence[str]]) -> Targets:
    """Return (interface, version) -> {address as the kernel writes it: address as the caller wrote it}."""
    targets: Targets = {}
    for interface, addresses in addresses_by_interface.items():
        for written in addresses:
            address = ipaddress.ip_address(written)
            targets.setdefault((interface, address.version), {})[str(address)] = str(written)
    return targets


def _listen(
    probers: Mapping[Tuple[str, int], Any],
    targets: Targets,
    found: Dict[str, Set[str]],
    until: float,
    clock: Callable[[], float],
    wait: Callable[[Sequence[Any], float], None],
) -> None:
    while True:
        left = until - clock()
        # Even with no time left it looks once: a reply that is there already came in time.
        wait(list(probers.values()), left)
        for key, prober in probers.items():
            for address, mac in prober.replies():
                if address in targets[key]:
                    found[targets[key][address]].add(mac)
        if left <= 0:
            return
