# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who answers for an address on the link: ARP for IPv4, neighbour solicitation for IPv6.

Building and reading packets is pure; ``Asker`` is the only part that touches a socket.

The two families are asked differently, each in the way that disturbs nobody:

- IPv4: an ARP Probe (RFC 5227, 1.1: sender address 0.0.0.0), because a request that names a sender would be
  written into the caches of everybody who hears it.
- IPv6: an ordinary solicitation from our own link-local address, answered to us alone. The look-alike of an
  ARP Probe, a solicitation from ``::``, would be answered to all nodes (RFC 4861, 7.2.4), and worse: a
  member that is just taking the address over and still checks it for duplicates would have to give it up
  for ours (RFC 4862, 5.4.3), where it ignores an ordinary one.
"""

from __future__ import annotations

import ipaddress
import json
import select
import socket
import struct
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

ETH_P_ARP = 0x0806
ARP_REQUEST, ARP_REPLY = 1, 2
ND_SOLICIT, ND_ADVERT = 135, 136
OPTION_SOURCE_MAC, OPTION_TARGET_MAC = 1, 2
NO_MAC = b"\x00" * 6
BROADCAST = b"\xff" * 6
# What <linux/icmpv6.h> and <linux/if_packet.h> call them; Python's socket module has no names for these.
ICMPV6_FILTER = 1
PACKET_OUTGOING = 4

_ARP = struct.Struct("!HHBBH6s4s6s4s")
Reply = Tuple[str, str]


class Link(NamedTuple):
    """How the kernel would send to an address: the interface, or why nobody can be asked there."""

    interface: str
    reason: str


def mac_text(mac: bytes) -> str:
    return ":".join(f"{octet:02x}" for octet in mac)


def mac_bytes(text: str) -> bytes:
    mac = bytes.fromhex(text.replace(":", "").replace("-", ""))
    if len(mac) != 6:
        raise ValueError(f"{text} is not an Ethernet address")
    return mac


def arp_frame(sender_mac: bytes, sender: str, target: str, operation: int = ARP_REQUEST) -> bytes:
    """A broadcast ARP frame (RFC 826). With sender 0.0.0.0 it is an ARP Probe; with sender = target an
    announcement, which moves the address in every cache (RFC 5227, 1.1 and 3)."""
    ethernet = BROADCAST + sender_mac + struct.pack("!H", ETH_P_ARP)
    return ethernet + _ARP.pack(
        1,
        0x0800,
        6,
        4,
        operation,
        sender_mac,
        ipaddress.IPv4Address(sender).packed,
        NO_MAC,
        ipaddress.IPv4Address(target).packed,
    )


def arp_claim(frame: bytes) -> Optional[Reply]:
    """Who says in this frame that an address is its own. Requests count as much as replies: whoever puts an
    address in the sender field uses it (RFC 5227, 2.4). A Probe claims nothing."""
    if len(frame) < 14 + _ARP.size or frame[12:14] != struct.pack("!H", ETH_P_ARP):
        return None
    hardware, protocol, mac_size, size, operation, mac, sender, _to_mac, _target = _ARP.unpack_from(frame, 14)
    if (hardware, protocol, mac_size, size) != (1, 0x0800, 6, 4) or operation not in (ARP_REQUEST, ARP_REPLY):
        return None
    if sender == b"\x00" * 4:
        return None
    return str(ipaddress.IPv4Address(sender)), mac_text(mac)


def solicited_node(address: str) -> str:
    """The group on which the holder of the address listens (RFC 4291, 2.7.1)."""
    base = int(ipaddress.IPv6Address("ff02::1:ff00:0"))
    return str(ipaddress.IPv6Address(base | int(ipaddress.IPv6Address(address)) & 0xFFFFFF))


def solicitation(target: str, own_mac: bytes) -> bytes:
    """A Neighbour Solicitation without IPv6 header (RFC 4861, 4.3). The checksum stays 0: the kernel fills
    it in on a raw ICMPv6 socket (RFC 3542, 3.1). Our own MAC must be in it, or the answer could not find
    us."""
    head = struct.pack("!BBHI", ND_SOLICIT, 0, 0, 0)
    return head + ipaddress.IPv6Address(target).packed + struct.pack("!BB", OPTION_SOURCE_MAC, 1) + own_mac


def advert(target: str, own_mac: bytes) -> bytes:
    """An unsolicited Neighbour Advertisement with Override: what a new holder sends (RFC 4861, 4.4 and
    7.2.6)."""
    head = struct.pack("!BBHI", ND_ADVERT, 0, 0, 0x20000000)
    return head + ipaddress.IPv6Address(target).packed + struct.pack("!BB", OPTION_TARGET_MAC, 1) + own_mac


def advert_claim(message: bytes, hop_limit: int) -> Optional[Reply]:
    """Who says in this Neighbour Advertisement that an address is its own (RFC 4861, 7.1.2: hop limit 255 and
    code 0, or it is not believed)."""
    if hop_limit != 255 or len(message) < 24 or message[0] != ND_ADVERT or message[1] != 0:
        return None
    target = str(ipaddress.IPv6Address(message[8:24]))
    at = 24
    while at + 2 <= len(message):
        kind, length = message[at], message[at + 1] * 8
        if length == 0 or at + length > len(message):
            return None
        if kind == OPTION_TARGET_MAC and length == 8:
            return target, mac_text(message[at + 2 : at + 8])
        at += length
    return None


def link_to(route: str) -> Link:
    """Reads ``ip -j route get ADDRESS``: only what is on the same link can be asked who it is."""
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
    """The raw socket for one family. Needs CAP_NET_RAW (PermissionError otherwise)."""
    if version == 4:
        arp = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP))
        arp.bind((interface, ETH_P_ARP))
        arp.setblocking(False)
        return arp
    icmp = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    icmp.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\x00")
    # A filter of 256 bits, one for each type to keep out (RFC 3542, 3.2): all but Neighbour Advertisements.
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


class Asker:
    """Asks on one interface, in one family, who holds an address. Never blocks."""

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

    def ask(self, address: str) -> None:
        if self.version == 4:
            self._socket.send(arp_frame(self._mac, "0.0.0.0", address))
        else:
            self._socket.sendto(solicitation(address, self._mac), (solicited_node(address), 0))

    def announce(self, address: str) -> None:
        """Tells the whole link that the address is here now: what a new holder does (and the tests, in its
        place)."""
        if self.version == 4:
            self._socket.send(arp_frame(self._mac, address, address))
        else:
            self._socket.sendto(advert(address, self._mac), ("ff02::1", 0))

    def replies(self) -> List[Reply]:
        """Every claim that has arrived, oldest first: of any address, so that the caller picks its own."""
        claims: List[Reply] = []
        while True:
            try:
                claim = self._receive()
            except BlockingIOError:
                return claims
            if claim is not None:
                claims.append(claim)

    def _receive(self) -> Optional[Reply]:
        if self.version == 4:
            frame, source = self._socket.recvfrom(256)
            return None if source[2] == PACKET_OUTGOING else arp_claim(frame)
        message, ancillary, _flags, _source = self._socket.recvmsg(1500, socket.CMSG_SPACE(4))
        hops = [struct.unpack("=i", data)[0] for _level, _kind, data in ancillary if len(data) == 4]
        return advert_claim(message, hops[0] if hops else 0)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def wait_readable(askers: Sequence[Any], seconds: float) -> None:
    select.select(list(askers), [], [], max(0.0, seconds))


def answering(
    addresses_by_interface: Mapping[str, Sequence[str]],
    wait_s: float,
    clock: Callable[[], float] = time.monotonic,
    asker_factory: Callable[[str, int], Any] = Asker,
    wait: Callable[[Sequence[Any], float], None] = wait_readable,
    early: bool = False,
) -> Dict[str, List[str]]:
    """The MACs that answer for each address: an empty list where nobody does.

    Listens for the whole ``wait_s``, because the second of two holders may be the slower one, and asks
    again half-way, because a single packet may be lost. With ``early`` it returns as soon as every address
    has been answered for.
    """
    wanted = _by_family(addresses_by_interface)
    found: Dict[str, Set[str]] = {str(a): set() for many in addresses_by_interface.values() for a in many}
    askers: Dict[Tuple[str, int], Any] = {}
    try:
        for key in wanted:
            askers[key] = asker_factory(*key)
        begin = clock()
        for until in (begin + wait_s / 2, begin + wait_s):
            if early and all(found.values()):
                break
            for key, names in wanted.items():
                for address in names:
                    askers[key].ask(address)
            _listen(askers, wanted, found, until, clock, wait, early)
    finally:
        for asker in askers.values():
            asker.close()
    return {address: sorted(macs) for address, macs in found.items()}


Wanted = Dict[Tuple[str, int], Dict[str, str]]


def _by_family(addresses_by_interface: Mapping[str, Sequence[str]]) -> Wanted:
    """(interface, version) -> {address as the kernel writes it: address as the caller wrote it}."""
    wanted: Wanted = {}
    for interface, addresses in addresses_by_interface.items():
        for written in addresses:
            address = ipaddress.ip_address(written)
            wanted.setdefault((interface, address.version), {})[str(address)] = str(written)
    return wanted


def _listen(
    askers: Mapping[Tuple[str, int], Any],
    wanted: Wanted,
    found: Dict[str, Set[str]],
    until: float,
    clock: Callable[[], float],
    wait: Callable[[Sequence[Any], float], None],
    early: bool,
) -> None:
    while not (early and all(found.values())):
        left = until - clock()
        # Even with no time left there is one look: what has arrived by then has arrived in time.
        wait(list(askers.values()), left)
        for key, asker in askers.items():
            for address, mac in asker.replies():
                if address in wanted[key]:
                    found[wanted[key][address]].add(mac)
        if left <= 0:
            return
