# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The virtual addresses of the routers: put on an interface, taken off it, and announced to the link."""

from __future__ import annotations

from typing import Any, Dict, Iterable

from ..loop import MILLION, Loop, Timer
from ..net import netlink
from . import links
from .router import Router

ROUNDS, LATER = 5, 5 * MILLION  # so many announcements at once, and so many a little later: what keepalived does


class Holding:
    """What the kernel is told, and ``links`` with it, before the kernel's own events say so."""

    def __init__(self, loop: Loop, network: Any, known: links.Links, log: Any) -> None:
        self.loop, self.network, self.links, self.log = loop, network, known, log
        self._later: Dict[str, Timer] = {}

    def take(self, router: Router) -> bool:
        """Put the addresses on the interface; return whether all of them are there."""
        return all(self._add(router, address) for address in router.instance.addresses)

    def _add(self, router: Router, address: str) -> bool:
        link, key = router.place.link, f"address {router.name} {address}"
        if link is None:
            return False
        try:
            self.network.netlink.add(link.index, address)
        except OSError as error:
            self.log.fault(key, f"{router.name}: {address} cannot be put on {link.name}: {error.strerror}")
            return False
        self.log.cured(key, f"{router.name}: {address} could be put on {link.name}")
        self.links.update(netlink.AddressIs(_as_known(link.index, address)))
        return True

    def drop(self, router: Router, addresses: Iterable[str]) -> None:
        """Take addresses off again; what is not there is no fault."""
        link = router.place.link
        if link is None:
            return
        for address in addresses:
            try:
                self.network.netlink.delete(link.index, address)
            except OSError as error:
                self.log.warning(f"{router.name}: {address} cannot be taken off {link.name}: {error.strerror}")
            else:
                self.links.update(netlink.AddressGone(_as_known(link.index, address)))

    def announce(self, router: Router) -> None:
        """Tell the link, several times because nobody confirms it, and again now and then."""
        self._say(router, ROUNDS)
        self._plan(router, LATER, ROUNDS)

    def _plan(self, router: Router, delay: int, rounds: int) -> None:
        planned = self._later.pop(router.name, None)
        if planned:
            planned.cancel()
        if delay:
            self._later[router.name] = self.loop.after(delay, lambda: self._repeat(router, rounds))

    def _repeat(self, router: Router, rounds: int) -> None:
        if router.active:
            self._say(router, rounds)
            self._plan(router, router.instance.announce_again, 1)

    def _say(self, router: Router, rounds: int) -> None:
        key, link = f"announce {router.name}", router.place.link
        try:
            for address in [address.partition("/")[0] for address in router.instance.addresses] * rounds:
                self.network.announce(link, address)
        except OSError as error:
            self.log.fault(key, f"{router.name}: its addresses cannot be announced: {error.strerror}")
        else:
            self.log.cured(key, f"{router.name}: its addresses could be announced")

    def put_back(self, router: Router) -> None:
        """Somebody else, an administrator or NetworkManager, may have taken addresses away."""
        wanted = router.instance.addresses
        missing = set(wanted) - set(self.links.held(router.instance.interface, wanted))
        if missing and all(self._add(router, address) for address in missing):
            self.log.warning(f"{router.name}: somebody took {', '.join(sorted(missing))} away: put back")
            self.announce(router)


def _as_known(index: int, address: str) -> netlink.Address:
    text, _slash, prefix = address.partition("/")
    return netlink.Address(index, text, int(prefix), usable=True, deprecated=False, secondary=False)
