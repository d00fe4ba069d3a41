# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host's interfaces and their addresses, as the kernel last reported them. It makes no requests itself.

An interface is known to users by its name and to the kernel by its index, and both may change under a running
program: so everything here is looked up by the name that is in force now.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..net import netlink
from .settings import VirtualAddress


class Egress(NamedTuple):
    """The interface and the source address of Advertisements; None where there is none."""

    link: Optional[netlink.Link] = None
    source: Optional[str] = None

    @property
    def up(self) -> bool:
        return self.link is not None and self.link.up

    def follows(self, before: Egress) -> bool:
        """Whether it is on the same interface as before, by the kernel's index, or there was none before."""
        return before.link is None or (self.link is not None and self.link.index == before.link.index)

    def has_another_mac(self, before: Egress) -> bool:
        """Whether the MAC of the interface has changed, as on a bridge that loses the port with the lowest one."""
        return self.link is not None and before.link is not None and self.link.mac != before.link.mac


class Links:
    """All links and addresses, kept up to date by the kernel's events."""

    def __init__(self) -> None:
        self._links: Dict[int, netlink.Link] = {}
        # By interface and address, and then by prefix length: an IPv4 address may have several.
        self._addresses: Dict[Tuple[int, str], Dict[int, netlink.Address]] = {}

    def learn(self, links: Iterable[netlink.Link], addresses: Iterable[netlink.Address]) -> None:
        """Replace everything by what the kernel has now."""
        self._links = {link.index: link for link in links}
        self._addresses = {}
        for address in addresses:
            self._learn_address(address)

    def _learn_address(self, address: netlink.Address) -> None:
        self._addresses.setdefault((address.index, address.address), {})[address.prefix] = address

    def update(self, event: netlink.Event) -> None:
        if isinstance(event, netlink.LinkUpdated):
            self._links[event.link.index] = event.link
        elif isinstance(event, netlink.LinkGone):
            self._links.pop(event.link.index, None)
            for key in [key for key in self._addresses if key[0] == event.link.index]:
                del self._addresses[key]
        elif isinstance(event, netlink.AddressUpdated):
            self._learn_address(event.address)
        elif isinstance(event, netlink.AddressGone):
            key = event.address.index, event.address.address
            self._addresses.get(key, {}).pop(event.address.prefix, None)
            if not self._addresses.get(key):
                self._addresses.pop(key, None)

    def named(self, interface: str) -> Optional[netlink.Link]:
        return next((link for link in self._links.values() if link.name == interface), None)

    def macs(self) -> Set[bytes]:
        """Return the MACs of all interfaces."""
        return {link.mac for link in self._links.values()}

    def held(self, addresses: Iterable[VirtualAddress]) -> List[VirtualAddress]:
        """Return which of the addresses are on their interfaces, see ``present``."""
        by_interface: Dict[str, List[str]] = {}
        for each in addresses:
            by_interface.setdefault(each.interface, []).append(each.address)
        return [
            VirtualAddress(found, link.name)
            for link, wanted in ((self.named(name), wanted) for name, wanted in by_interface.items())
            if link
            for found in self.present(link.index, wanted)
        ]

    def present(self, index: int, addresses: Iterable[str]) -> List[str]:
        """Return which of the addresses are on an interface, each with the prefix lengths that it has there."""
        return [
            f"{address}/{prefix}"
            for address in dict.fromkeys(address.partition("/")[0] for address in addresses)
            for prefix in self._addresses.get((index, address), ())
        ]

    def usable(self, index: int, address: str) -> bool:
        """Return whether an address is on an interface with this prefix length, and can be used."""
        text, _slash, prefix = address.partition("/")
        found = self._addresses.get((index, text), {}).get(int(prefix))
        return found is not None and found.usable

    def egress(self, interface: str, family: int, source: Optional[str], virtual: Set[str]) -> Egress:
        """Return where a Virtual Router sends from.

        It is the primary address of the interface. A source that the user names may be on any interface, for VIPs that
        are routed to.

        :param virtual: the virtual addresses, without prefix length, which come and go
        """
        link = self.named(interface)
        if link is None:
            return Egress()
        if source:
            there = any(found.address == source and found.usable for found in self._every_address())
            return Egress(link, source if there else None)
        return Egress(link, netlink.primary_address(self._every_address(), link.index, family, virtual))

    def _every_address(self) -> Iterator[netlink.Address]:
        for by_prefix in self._addresses.values():
            yield from by_prefix.values()
