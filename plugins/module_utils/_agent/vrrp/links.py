# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host's interfaces and their addresses, as the kernel last reported them. It makes no requests itself.

An interface is known to users by its name and to the kernel by its index, and both may change under a running
program: so everything here is looked up by the name that is in force now.
"""

from __future__ import annotations

import ipaddress
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ..net import netlink


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


class Links:
    """All links and addresses, kept up to date by the kernel's events."""

    def __init__(self) -> None:
        self._links: Dict[int, netlink.Link] = {}
        # An address may be present with two prefix lengths.
        self._addresses: Dict[Tuple[int, str, int], netlink.Address] = {}

    def learn(self, links: Iterable[netlink.Link], addresses: Iterable[netlink.Address]) -> None:
        """Replace everything by what the kernel has now."""
        self._links = {link.index: link for link in links}
        self._addresses = {_key(address): address for address in addresses}

    def update(self, event: netlink.Event) -> None:
        if isinstance(event, netlink.LinkUpdated):
            self._links[event.link.index] = event.link
        elif isinstance(event, netlink.LinkGone):
            self._links.pop(event.link.index, None)
            for key in [key for key in self._addresses if key[0] == event.link.index]:
                del self._addresses[key]
        elif isinstance(event, netlink.AddressUpdated):
            self._addresses[_key(event.address)] = event.address
        elif isinstance(event, netlink.AddressGone):
            self._addresses.pop(_key(event.address), None)

    def named(self, interface: str) -> Optional[netlink.Link]:
        return next((link for link in self._links.values() if link.name == interface), None)

    def held(self, interface: str, addresses: Iterable[str]) -> List[str]:
        """Return which of the addresses, each with its prefix length, are on the interface."""
        link = self.named(interface)
        if link is None:
            return []
        split = [(address, *address.split("/")) for address in addresses]
        return [whole for whole, address, prefix in split if (link.index, address, int(prefix)) in self._addresses]

    def egress(self, interface: str, family: int, source: Optional[str], virtual: Set[str]) -> Egress:
        """Return where a Virtual Router sends from.

        RFC 9568 section 6.1 requires the primary address: the first one for IPv4, the link-local one for IPv6.
        A source that the user names may be on any interface, for VIPs that are routed to.

        :param virtual: the virtual addresses, without prefix length, which come and go
        """
        link = self.named(interface)
        if link is None:
            return Egress()
        if source:
            there = any(found.address == source and found.usable for found in self._addresses.values())
            return Egress(link, source if there else None)
        own = [
            found.address
            for found in self._addresses.values()
            if found.index == link.index
            and found.usable
            and found.address not in virtual
            and _fits(found.address, family)
        ]
        return Egress(link, own[0] if own else None)


def _key(address: netlink.Address) -> Tuple[int, str, int]:
    return address.index, address.address, address.prefix


def _fits(address: str, family: int) -> bool:
    number = ipaddress.ip_address(address)
    return number.version == family and (family == 4 or number.is_link_local)
