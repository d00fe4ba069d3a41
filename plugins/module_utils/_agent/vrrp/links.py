# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What VRRP routers ask of the host's interfaces: where their addresses are, and where they can send from."""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Set

from ..net import links, netlink
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


class Links(links.Links):
    """All links and addresses, kept up to date by the kernel's events."""

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
            there = any(found.address == source and found.usable for found in self.every_address())
            return Egress(link, source if there else None)
        return Egress(link, netlink.primary_address(self.every_address(), link.index, family, virtual))
