# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Puts a daemon's addresses on interfaces and takes them off. An owner is what the log says they are for."""

from __future__ import annotations

import errno
from typing import Any, Callable, Optional, Sequence

from . import links, netlink

REPLACED = "the one with the configured prefix length takes its place"  # why an address is removed


class Addresses:
    """Changes the kernel's addresses, and ``links`` at once, before the kernel's own events arrive."""

    def __init__(self, kernel: Any, known: links.Links, log: Any) -> None:
        """
        :param kernel: a `netlink.Netlink`
        :param log: a `runtime.log.Log`
        """
        self._kernel, self._links, self._log = kernel, known, log

    def put(self, owner: str, link: netlink.Link, address: str, add: Optional[Callable[[], Any]] = None) -> bool:
        """Put an address with its prefix length on an interface; return whether it is there.

        :param add: the call that does it, if it is prepared
        """
        key = f"address {owner} {address}"
        try:
            self._put(owner, link, address, add or self._kernel.adding(link.index, address))
        except OSError as error:
            self._log.fault(key, f"{owner}: {address} cannot be put on {link.name}: {error.strerror}")
            return False
        self._log.cured(key, f"{owner}: {address} could be put on {link.name}")
        self._links.update(netlink.AddressUpdated(_as_netlink(link.index, address)))
        return True

    def _put(self, owner: str, link: netlink.Link, address: str, add: Callable[[], Any]) -> None:
        """Add an address, unless it is there. IPv6 has it once, so one with another prefix length must go first."""
        try:
            add()
        except FileExistsError:
            if not self._is_there(link, address):
                self.delete_all(owner, link, self._links.present(link.index, [address]), REPLACED)
                add()

    def _is_there(self, link: netlink.Link, address: str) -> bool:
        if not self._links.usable(link.index, address):
            self.learn()
        return self._links.usable(link.index, address)

    def learn(self) -> None:
        """Read what is there: the kernel's answer contradicts what is known."""
        self._links.learn(self._kernel.links(), self._kernel.addresses())

    def remove(self, owner: str, link: netlink.Link, addresses: Sequence[str]) -> None:
        """Take addresses off an interface, whatever their prefix lengths; one that is not there is no fault."""
        removed = [address for address in addresses if self.delete(owner, link, address)]
        if len(removed) < len(addresses):
            self.learn()
        for address in self._links.present(link.index, addresses):
            self.delete(owner, link, address)

    def delete_all(self, owner: str, link: netlink.Link, addresses: Sequence[str], why: str) -> None:
        removed = [address for address in addresses if self.delete(owner, link, address)]
        if removed:
            self._log.warning(f"{owner}: {', '.join(removed)} taken off {link.name}: {why}")

    def delete(self, owner: str, link: netlink.Link, address: str) -> bool:
        """Return whether the address was there and is gone."""
        key = f"delete {owner} {address}"
        try:
            self._kernel.delete(link.index, address)
            there = True
        except OSError as error:
            there = False
            if error.errno != errno.EADDRNOTAVAIL:
                self._log.fault(key, f"{owner}: {address} cannot be taken off {link.name}: {error.strerror}")
                return False
        self._log.cured(key, f"{owner}: {address} is taken off {link.name}")
        self._links.update(netlink.AddressGone(_as_netlink(link.index, address)))
        return there


def _as_netlink(index: int, address: str) -> netlink.Address:
    text, _slash, prefix = address.partition("/")
    return netlink.Address(index, text, int(prefix), usable=True)
