# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Everything that the VRRP process does to the network, as one object that tests can replace."""

from __future__ import annotations

from typing import Any, Callable

from . import sockets
from .announce import Announcer
from .neighbours import NeighbourProber
from .netlink import Link, Netlink


class Network:
    """The current network namespace.

    :raises OSError: without the privilege for raw sockets (EPERM)
    """

    def __init__(self) -> None:
        self.netlink = Netlink()
        self._announcer = Announcer()

    def open_socket(self, interface: str, index: int, family: int, multicast: bool) -> sockets.RawSocket:
        """Open the VRRP socket of an interface for family 4 or 6."""
        return sockets.open_socket(interface, index, family, multicast)

    def announcing(self, link: Link, address: str) -> Callable[[], Any]:
        """Return a call that announces an address, without prefix."""
        return self._announcer.announcing(link, address)

    def ask(self, link: Link, source: str, address: str) -> None:
        """Ask for the MAC of a host on the link. Raises OSError."""
        self._announcer.ask(link, source, address)

    def prober(self, link: Link, family: int) -> NeighbourProber:
        """Return what probes which hosts answer for an address. Raises OSError."""
        return NeighbourProber(link.name, family, mac_of=lambda _interface: link.mac)

    def close(self) -> None:
        self.netlink.close()
        self._announcer.close()
