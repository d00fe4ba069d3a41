# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The MAC addresses of the servers, as the kernel knows them. One that was known stays until there is another."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Collection, Dict, List, Optional, Set, Tuple

from ..net.arp import mac_text
from ..net.netlink import Address, AddressGone, AddressUpdated, Event, Link, LinkGone, LinkUpdated, Lost, NeighbourKnown
from ..runtime.loop import MILLION, Loop, Timer

UNKNOWN_INTERVAL = MILLION  # how often the kernel is asked while a MAC is unknown
KNOWN_INTERVAL = 10 * MILLION  # and otherwise, so that it notices that another host has the address


class Macs:
    """Those of the servers on one link. A server that is this host has the link's own."""

    def __init__(self, loop: Loop, log: Any, netlink: Any, changed: Callable[[bool], None]) -> None:
        """
        :param netlink: a net.netlink.Netlink
        :param changed: called when a MAC, an own address or the link have changed, with whether it is another link
        """
        self._loop, self._log, self._netlink, self._changed = loop, log, netlink, changed
        self._interface = ""
        self._wanted: Set[str] = set()
        self._own: Dict[Tuple[int, str], Address] = {}  # this host's addresses, by their interface
        self._found: Dict[str, str] = {}
        self._timer: Optional[Timer] = None
        self.link: Optional[Link] = None
        netlink.follow_neighbours()
        loop.watch(netlink.fileno(), self._take)

    @property
    def known(self) -> Dict[str, str]:
        """The MAC of each server of which there is one, by its address."""
        own = {address: mac_text(self.link.mac) for address in self._wanted & self._here} if self.link else {}
        return {**{address: mac for address, mac in self._found.items() if address in self._wanted}, **own}

    @property
    def unknown(self) -> List[str]:
        return sorted(self._wanted - self.known.keys())

    @property
    def addresses(self) -> List[Address]:
        """This host's own addresses on the link."""
        return [each for each in self._own.values() if self.link and each.index == self.link.index]

    @property
    def _here(self) -> Set[str]:
        return {address for _index, address in self._own}

    def want(self, interface: str, addresses: Collection[str]) -> None:
        """Find the MACs of these servers on the link of an interface."""
        if interface != self._interface:
            self._found, self._interface = {}, interface
        self._wanted = set(addresses)
        self._read()
        self._ask()

    def close(self) -> None:
        self._loop.forget(self._netlink.fileno())
        self._netlink.close()
        if self._timer:
            self._timer.cancel()

    def _read(self) -> None:
        links = self._netlink.links()
        self.link = next((link for link in links if link.name == self._interface and link.mac), None)
        self._own = {(each.index, each.address): each for each in self._netlink.addresses()}
        for neighbour in self._netlink.neighbours() if self.link else ():
            self._learn(neighbour)

    def _ask(self) -> None:
        """Make the kernel ask for the MACs: it knows best how often to ask, and when to believe an answer."""
        if self._timer:
            self._timer.cancel()
        for address in sorted(self._wanted - self._here) if self.link else ():
            with contextlib.suppress(OSError):  # the link is down, or there is no IPv6: the next one may do better
                self._netlink.ask(self.link.index if self.link else 0, address)
        self._timer = self._loop.after(UNKNOWN_INTERVAL if self.unknown else KNOWN_INTERVAL, self._ask)

    def _take(self, _events: int) -> None:
        before, link = (self.known, self.addresses), self.link
        for event in self._netlink.events():
            self._apply(event)
        other = (link and (link.index, link.mac)) != (self.link and (self.link.index, self.link.mac))
        if other:
            self._ask()
        if other or (self.known, self.addresses) != before:
            self._changed(other)

    def _apply(self, event: Event) -> None:
        if isinstance(event, Lost):
            self._read()
        elif isinstance(event, LinkUpdated) and event.link.name == self._interface and event.link.mac:
            self.link = event.link
        elif isinstance(event, LinkGone) and self.link and event.link.index == self.link.index:
            self.link = None
        elif isinstance(event, AddressUpdated):
            self._own[event.address.index, event.address.address] = event.address
        elif isinstance(event, AddressGone):
            self._own.pop((event.address.index, event.address.address), None)
        elif isinstance(event, NeighbourKnown):
            self._learn(event.neighbour)

    def _learn(self, neighbour: Any) -> None:
        address, mac = neighbour.address, neighbour.mac
        if not self.link or neighbour.index != self.link.index or address not in self._wanted:
            return
        before = self._found.get(address)
        if before and before != mac:
            self._log.warning(f"{address} has the MAC address {mac} now, and had {before}.")
        self._found[address] = mac
