# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host's interfaces and their addresses, as the kernel last reported them. It makes no requests itself.

An interface is known to users by its name and to the kernel by its index, and both may change under a running
program: so everything here is looked up by the name that is in force now.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple

from . import netlink


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

    def carrying(self, address: str) -> List[str]:
        """Return the interfaces that have an address, with whatever prefix length."""
        indexes = [index for index, found in self._addresses if found == address]
        return sorted(self._links[index].name for index in indexes if index in self._links)

    def every_address(self) -> Iterator[netlink.Address]:
        for by_prefix in self._addresses.values():
            yield from by_prefix.values()
