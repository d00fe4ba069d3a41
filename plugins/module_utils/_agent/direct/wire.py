# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sockets of the proof: segments go out to a MAC address, past the kernel's routes, and answers are seen before it.

The kernel sees the answers as well. It knows no connection to which they belong, so it resets that connection, or drops
them, because they come from an address that it has itself. Both are as good: the ports are no other connection's.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import socket
import struct
from typing import Dict, List, Optional, Tuple

from ..net import bpf, segments
from ..net.arp import mac_bytes, mac_text
from ..net.ip import IPV4, IPV6
from ..net.netlink import Link

VERSIONS = {IPV4: 4, IPV6: 6}
PACKET_SIZE = 256  # a segment without data, with options
SIOCGIFMTU = 0x8921  # netdevice(7)
BATCH = 256  # packets read in one callback
TRIES = 64  # to find ports that are free

Answer = Tuple[segments.Segment, str]  # with the MAC address from which it came


class Wire:
    """Both families on one link. Raises OSError without CAP_NET_RAW."""

    def __init__(self) -> None:
        self._reserved = _reserve()
        self.ports = [int(each.getsockname()[1]) for each in self._reserved]
        self._link: Optional[Link] = None
        self._sockets: Dict[int, socket.socket] = {}
        for protocol, version in VERSIONS.items():
            # With protocol 0 it receives nothing until it has its filter and its link.
            opened = self._sockets[protocol] = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
            opened.setblocking(False)
            bpf.attach(opened, segments.to_ports(version, self.ports[0]))

    def descriptors(self) -> List[int]:
        return [each.fileno() for each in self._sockets.values()]

    def use(self, link: Link) -> None:
        """Receive from this link, and send to it. It may be down, or gone again: then what is sent gets no answer."""
        if self._link and (link.index, link.name) == (self._link.index, self._link.name):
            return
        self._link = link
        for protocol, opened in self._sockets.items():
            with contextlib.suppress(OSError):
                opened.bind((link.name, protocol))

    def mtu(self) -> int:
        """Return the MTU of the link, 0 if it is gone."""
        name = self._link.name.encode() if self._link else b""
        try:
            found = fcntl.ioctl(self._reserved[0], SIOCGIFMTU, struct.pack("16si12x", name, 0))
        except OSError:
            return 0
        return int(struct.unpack("16si12x", found)[1])

    def send(self, packet: bytes, mac: str) -> None:
        """Send a packet. One that cannot be sent is lost, as on any link."""
        protocol = IPV6 if packet[0] >> 4 == 6 else IPV4
        with contextlib.suppress(OSError):
            place = (self._link.name if self._link else "", protocol, 0, 0, mac_bytes(mac))
            self._sockets[protocol].sendto(packet, place)

    def receive(self) -> List[Answer]:
        """Return the answers that are there."""
        found = []
        for opened in self._sockets.values():
            for _each in range(BATCH):
                try:
                    packet, place = opened.recvfrom(PACKET_SIZE)
                except OSError:  # none is there, or the link went down
                    break
                segment = segments.read(packet)
                if segment:
                    found.append((segment, mac_text(place[4])))
        return found

    def close(self) -> None:
        for opened in (*self._reserved, *self._sockets.values()):
            opened.close()


def _reserve() -> List[socket.socket]:
    """Take TCP ports of both families that one filter accepts, so that no connection of this host gets them."""
    for _try in range(TRIES):
        with _unbound() as free:
            free.bind(("", 0))
            first = int(free.getsockname()[1]) // segments.PORTS * segments.PORTS
        with contextlib.suppress(OSError), contextlib.ExitStack() as taken:
            found = [taken.enter_context(_unbound()) for _each in range(segments.PORTS)]
            for number, each in enumerate(found):
                each.bind(("", first + number))
            taken.pop_all()
            return found
    raise OSError(errno.EADDRINUSE, f"no {segments.PORTS} TCP ports in a row are free")


def _unbound() -> socket.socket:
    if not socket.has_dualstack_ipv6():
        return socket.socket(socket.AF_INET)
    opened = socket.socket(socket.AF_INET6)
    opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    return opened
