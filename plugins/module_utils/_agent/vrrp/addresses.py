# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The virtual addresses of the routers: put on an interface, taken off it, and announced to the link."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from ..net import netlink
from ..runtime.loop import MILLION, Loop, Timer
from . import links
from .prepared import PreparedCall, PreparedCalls
from .router import Router

# As keepalived does it: a burst of announcements at once, and another one later.
BURST, SECOND_BURST_DELAY = 5, 5 * MILLION
MIN_PAUSE = MILLION // 10  # between two bursts: each message of a lower router asks for one, and there may be a flood


class VirtualAddresses:
    """Changes the kernel's addresses, and ``links`` at once, before the kernel's own events arrive."""

    def __init__(self, loop: Loop, network: Any, known: links.Links, log: Any) -> None:
        self.loop, self.network, self.links, self.log = loop, network, known, log
        self._timers: Dict[str, Timer] = {}
        self._announced: Dict[str, int] = {}  # when, by router

    def prepare_adding(self, router: Router) -> PreparedCalls:
        """Return the calls that ``add`` makes for all addresses."""
        link, adding = router.egress.link, self.network.netlink.adding
        if link is None:
            return {}
        return {
            (router.name, address): PreparedCall(adding(link.index, address), required=True)
            for address in router.instance.addresses
        }

    def prepare_announcing(self, router: Router) -> PreparedCalls:
        """Return the calls that ``announce`` makes first."""
        try:
            return {(router.name, address): PreparedCall(call) for address, call in self._announcements(router)}
        except OSError:  # ``announce`` will report it
            return {}

    def _announcements(self, router: Router) -> List[Tuple[str, Callable[[], Any]]]:
        """Return the call that announces each address. Raises OSError."""
        link = router.egress.link
        return [(address, self.network.announcing(link, address)) for address in router.advertisement.addresses]

    def missing(self, router: Router) -> List[str]:
        """Return which of its addresses are not on the interface."""
        held = self.links.held(router.instance.interface, router.instance.addresses)
        return [address for address in router.instance.addresses if address not in held]

    def add(self, router: Router, addresses: Iterable[str], prepared: Optional[PreparedCalls] = None) -> bool:
        """Put addresses on the interface; return whether all of them are there."""
        self._announced.pop(router.name, None)  # the last announcement did not include these
        return all(self._add(router, address, prepared) for address in addresses)

    def _add(self, router: Router, address: str, prepared: Optional[PreparedCalls]) -> bool:
        link, key = router.egress.link, f"address {router.name} {address}"
        if link is None:
            return False
        try:
            call = prepared.pop((router.name, address), None) if prepared else None
            (call or self.network.netlink.adding(link.index, address))()
        except OSError as error:
            self.log.fault(key, f"{router.name}: {address} cannot be put on {link.name}: {error.strerror}")
            return False
        self.log.cured(key, f"{router.name}: {address} could be put on {link.name}")
        self.links.update(netlink.AddressUpdated(_as_netlink(link.index, address)))
        return True

    def remove(self, router: Router, addresses: Iterable[str]) -> None:
        """Take addresses off the interface; one that is not there is no fault."""
        link = router.egress.link
        if link is None:
            return
        for address in addresses:
            try:
                self.network.netlink.delete(link.index, address)
            except OSError as error:
                self.log.warning(f"{router.name}: {address} cannot be taken off {link.name}: {error.strerror}")
            else:
                self.links.update(netlink.AddressGone(_as_netlink(link.index, address)))

    def announce(self, router: Router, prepared: Optional[PreparedCalls] = None) -> None:
        """Send gratuitous ARP/NA in bursts (it is unacknowledged) and refresh it periodically."""
        now = self.loop.now()
        soonest = self._announced.get(router.name, now - MIN_PAUSE) + MIN_PAUSE
        if now < soonest:
            self._schedule(router, soonest, lambda: self.announce(router))
            return
        self._announced[router.name] = now
        self._send_burst(router, BURST, prepared)
        self._schedule(router, now + SECOND_BURST_DELAY, lambda: self._repeat(router, BURST))

    def resume(self, router: Router) -> None:
        """Announce the addresses again after an upgrade: the old process may not have sent its second burst."""
        self._schedule(router, self.loop.now() + SECOND_BURST_DELAY, lambda: self._repeat(router, BURST))

    def reschedule_announcement(self, router: Router) -> None:
        """Make the next announcement no later than the new settings want it."""
        planned, again = self._timers.get(router.name), self.loop.now() + router.instance.announce_again
        if router.instance.announce_again and not (planned and planned.at <= again):
            self._schedule(router, again, lambda: self._repeat(router, 1))

    def _schedule(self, router: Router, moment: int, what: Callable[[], None]) -> None:
        """Schedule the next announcement in place of the one that was scheduled."""
        planned = self._timers.get(router.name)
        if planned and planned.at == moment:
            return
        if planned:
            planned.cancel()
        self._timers[router.name] = self.loop.at(moment, lambda: self._run_scheduled(router, what))

    def _run_scheduled(self, router: Router, what: Callable[[], None]) -> None:
        del self._timers[router.name]
        if router.active:
            what()

    def _repeat(self, router: Router, count: int) -> None:
        self._send_burst(router, count)
        if router.instance.announce_again:
            self._schedule(router, self.loop.now() + router.instance.announce_again, lambda: self._repeat(router, 1))

    def _send_burst(self, router: Router, count: int, prepared: Optional[PreparedCalls] = None) -> None:
        key = f"announce {router.name}"
        try:
            announcements = self._announcements(router)
            for address, announce in announcements:
                (prepared.pop((router.name, address), announce) if prepared else announce)()
            for _address, announce in announcements * (count - 1):
                announce()
        except OSError as error:
            self.log.fault(key, f"{router.name}: its addresses cannot be announced: {error.strerror}")
        else:
            self.log.cured(key, f"{router.name}: its addresses could be announced")


def _as_netlink(index: int, address: str) -> netlink.Address:
    text, _slash, prefix = address.partition("/")
    return netlink.Address(index, text, int(prefix), usable=True)
