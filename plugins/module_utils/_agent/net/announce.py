# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Announces to a link that this host now holds an address, and asks there for the MAC of another host."""

from __future__ import annotations

import errno
import socket
from functools import partial
from typing import Any, Callable

from . import linux
from .arp import arp_frame
from .ndisc import advert_frame, solicitation_frame
from .netlink import Link

ETHERNET_SIZE = 6


def forwards(interface: str) -> bool:
    """Whether it routes IPv6, which its Neighbour Advertisements must say (RFC 4861, 4.4)."""
    try:
        with open(f"/proc/sys/net/ipv6/conf/{interface}/forwarding", encoding="ascii") as handle:
            return handle.read().strip() != "0"
    except OSError:
        return False


def open_packet_socket() -> socket.socket:
    """Open it with protocol 0, which sends and receives nothing."""
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)


def _refuse(interface: str) -> None:
    raise OSError(errno.EOPNOTSUPP, "no Ethernet, so nothing can be announced", interface)


def question(link: Link, source: str, address: str) -> bytes:
    """Return the frame that asks for the MAC of a host.

    It is sent past the kernel, which takes the answer all the same: it ends a search of its own that goes on.

    :param source: an address of this host, which only IPv6 needs. In ARP other hosts would learn our MAC from it.
    """
    return solicitation_frame(address, link.mac, source) if ":" in address else arp_frame(link.mac, "0.0.0.0", address)


class Announcer:
    """Sends gratuitous ARP and unsolicited Neighbour Advertisements, on any interface. Never blocks.

    :raises OSError: without the privilege (EPERM)
    """

    def __init__(
        self, opener: Callable[[], Any] = open_packet_socket, forwarding: Callable[[str], bool] = forwards
    ) -> None:
        self._forwards = forwarding
        self._socket = opener()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, linux.TC_PRIO_INTERACTIVE)

    def announcing(self, link: Link, address: str) -> Callable[[], Any]:
        """Return a call that sends one announcement of an address, without prefix.

        ARP: a request with sender = target, which is what keepalived sends and RFC 5227, 3 recommends.

        It raises OSError when the interface is gone (ENODEV) or down (ENETDOWN), or is no Ethernet (EOPNOTSUPP).
        """
        if len(link.mac) != ETHERNET_SIZE:
            return partial(_refuse, link.name)
        if ":" in address:
            frame = advert_frame(address, link.mac, self._forwards(link.name))
        else:
            frame = arp_frame(link.mac, address, address)
        return partial(self._socket.sendto, frame, (link.name, 0))

    def ask(self, link: Link, source: str, address: str) -> None:
        """Ask for the MAC of a host, as `question` does. Raises OSError, as the calls of `announcing` do."""
        if len(link.mac) != ETHERNET_SIZE:
            _refuse(link.name)
        self._socket.sendto(question(link, source, address), (link.name, 0))

    def close(self) -> None:
        self._socket.close()
