# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The virtual addresses of the routers: put on an interface, taken off it, and announced to the link."""

from __future__ import annotations

import errno
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Sequence, Tuple

from ..net import netlink
from ..runtime.loop import MILLION, Loop, Timer
from . import links, settings
from .prepared import PreparedCall, PreparedCalls
from .router import Router

# As keepalived does it: a burst of announcements at once, and another one later.
BURST, SECOND_BURST_DELAY = 5, 5 * MILLION
QUEUE_FULL, QUEUE_PAUSE = (errno.EAGAIN, errno.ENOBUFS), MILLION // 100  # 10 ms empty some 150 places at 10 Mbit/s
MIN_PAUSE = MILLION // 10  # between two bursts: each message of a lower router asks for one, and there may be a flood
REPLACED = "the one with the configured prefix length takes its place"  # why an address is removed


class VirtualAddresses:
    """Changes the kernel's addresses, and ``links`` at once, before the kernel's own events arrive."""

    def __init__(self, loop: Loop, network: Any, known: links.Links, log: Any) -> None:
        self.loop, self.network, self.links, self.log = loop, network, known, log
        # By router, whose name may change.
        self._timers: Dict[settings.Identity, Timer] = {}
        self._announced: Dict[settings.Identity, int] = {}  # when
        self._unsent: Dict[settings.Identity, Timer] = {}  # sends what did not fit into the interface's queue

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
        self._announced.pop(router.identity, None)  # the last announcement did not include these
        link = router.egress.link
        if link is None or not all(self._add(router, link, address, prepared) for address in addresses):
            return False
        self._delete_all(router, link, self._other_prefixes(router, link), REPLACED)
        return True

    def _add(self, router: Router, link: netlink.Link, address: str, prepared: Optional[PreparedCalls]) -> bool:
        key = f"address {router.name} {address}"
        try:
            call = prepared.pop((router.name, address), None) if prepared else None
            self._put(router, link, address, call or self.network.netlink.adding(link.index, address))
        except OSError as error:
            self.log.fault(key, f"{router.name}: {address} cannot be put on {link.name}: {error.strerror}")
            return False
        self.log.cured(key, f"{router.name}: {address} could be put on {link.name}")
        self.links.update(netlink.AddressUpdated(_as_netlink(link.index, address)))
        return True

    def _put(self, router: Router, link: netlink.Link, address: str, add: Callable[[], Any]) -> None:
        """Add an address, unless it is there. IPv6 has it once, so one with another prefix length must go first."""
        try:
            add()
        except FileExistsError:
            if not self._is_there(link, address):
                self._delete_all(router, link, self.links.present(link.index, [address]), REPLACED)
                self.network.netlink.adding(link.index, address)()

    def _is_there(self, link: netlink.Link, address: str) -> bool:
        if not self.links.usable(link.index, address):
            self._learn()
        return self.links.usable(link.index, address)

    def _learn(self) -> None:
        """Read what is there: the kernel's answer contradicts what is known."""
        self.links.learn(self.network.netlink.links(), self.network.netlink.addresses())

    def remove(self, router: Router, addresses: Sequence[str]) -> None:
        """Take addresses off the interface, whatever their prefix lengths; one that is not there is no fault."""
        link = router.egress.link
        if link is None:
            return
        removed = [address for address in addresses if self._delete(router, link, address)]
        if len(removed) < len(addresses):
            self._learn()
        for address in self.links.present(link.index, addresses):
            self._delete(router, link, address)

    def remove_strays(self, router: Router) -> None:
        """Remove the addresses that another program has added: of an Active router only other prefix lengths.

        A router that was started after a crash, or that resigns, keeps the addresses that it has.
        """
        link = router.egress.link
        if link and not router.state.holding:
            present = self.links.present(link.index, router.instance.addresses)
            strays = self._other_prefixes(router, link) if router.active else present
            self._delete_all(router, link, strays, "another program had added it")

    def _other_prefixes(self, router: Router, link: netlink.Link) -> List[str]:
        """Return which of the addresses are there with another prefix length than the configured one."""
        own = router.instance.addresses
        return [address for address in self.links.present(link.index, own) if address not in own]

    def _delete_all(self, router: Router, link: netlink.Link, addresses: Sequence[str], why: str) -> None:
        removed = [address for address in addresses if self._delete(router, link, address)]
        if removed:
            self.log.warning(f"{router.name}: {', '.join(removed)} taken off {link.name}: {why}")

    def _delete(self, router: Router, link: netlink.Link, address: str) -> bool:
        """Return whether the address was there and is gone."""
        key = f"delete {router.name} {address}"
        try:
            self.network.netlink.delete(link.index, address)
            there = True
        except OSError as error:
            there = False
            if error.errno != errno.EADDRNOTAVAIL:
                self.log.fault(key, f"{router.name}: {address} cannot be taken off {link.name}: {error.strerror}")
                return False
        self.log.cured(key, f"{router.name}: {address} is taken off {link.name}")
        self.links.update(netlink.AddressGone(_as_netlink(link.index, address)))
        return there

    def announce(self, router: Router, prepared: Optional[PreparedCalls] = None) -> None:
        """Send gratuitous ARP/NA in bursts (it is unacknowledged) and refresh it periodically."""
        now = self.loop.now()
        soonest = self._announced.get(router.identity, now - MIN_PAUSE) + MIN_PAUSE
        if now < soonest:
            self._schedule(router, soonest, lambda: self.announce(router))
            return
        self._announced[router.identity] = now
        self._send_burst(router, BURST, prepared)
        self._schedule(router, now + SECOND_BURST_DELAY, lambda: self._repeat(router, BURST))

    def announce_mac(self, router: Router) -> None:
        """Announce that the addresses are at another MAC now."""
        self.log.info(f"{router.name}: {router.link_reading} has another MAC: the addresses are announced again")
        self.announce(router)

    def resume(self, router: Router) -> None:
        """Announce the addresses again after an upgrade: the old process may not have sent its second burst."""
        self._schedule(router, self.loop.now() + SECOND_BURST_DELAY, lambda: self._repeat(router, BURST))

    def reschedule_announcement(self, router: Router) -> None:
        """Make the next announcement no later than the new settings want it."""
        planned, again = self._timers.get(router.identity), self.loop.now() + router.instance.announce_again
        if router.instance.announce_again and not (planned and planned.at <= again):
            self._schedule(router, again, lambda: self._repeat(router, 1))

    def _schedule(self, router: Router, moment: int, what: Callable[[], None]) -> None:
        """Schedule the next announcement in place of the one that was scheduled."""
        planned = self._timers.get(router.identity)
        if planned and planned.at == moment:
            return
        if planned:
            planned.cancel()
        self._timers[router.identity] = self.loop.at(moment, lambda: self._run_scheduled(router, what))

    def _run_scheduled(self, router: Router, what: Callable[[], None]) -> None:
        del self._timers[router.identity]
        if router.active:
            what()

    def _repeat(self, router: Router, count: int) -> None:
        self._send_burst(router, count)
        if router.instance.announce_again:
            self._schedule(router, self.loop.now() + router.instance.announce_again, lambda: self._repeat(router, 1))

    def _send_burst(self, router: Router, count: int, prepared: Optional[PreparedCalls] = None) -> None:
        """Announce each address once, then all of them again."""
        try:
            announcements = self._announcements(router)
        except OSError as error:
            self._not_announced(router, error)
            return
        first = [
            prepared.pop((router.name, address), announce) if prepared else announce
            for address, announce in announcements
        ]
        again = [announce for _address, announce in announcements] * (count - 1)
        self._send(router, deque([*first, *again]), self.loop.now() + SECOND_BURST_DELAY)

    def _send(self, router: Router, calls: Deque[Callable[[], Any]], end: int) -> None:
        """Make the calls; what does not fit into the interface's queue follows when it has room, until the end."""
        self._cancel_unsent(router)
        try:
            while calls:
                calls[0]()
                calls.popleft()
        except OSError as error:
            if error.errno in QUEUE_FULL and self.loop.now() + QUEUE_PAUSE < end:
                self._unsent[router.identity] = self.loop.after(
                    QUEUE_PAUSE, lambda: self._send_unsent(router, calls, end)
                )
            else:
                self._not_announced(router, error)
        else:
            self.log.cured(f"announce {router.name}", f"{router.name}: its addresses could be announced")

    def _send_unsent(self, router: Router, calls: Deque[Callable[[], Any]], end: int) -> None:
        if router.active:
            self._send(router, calls, end)

    def _cancel_unsent(self, router: Router) -> None:
        timer = self._unsent.pop(router.identity, None)
        if timer:
            timer.cancel()

    def _not_announced(self, router: Router, error: OSError) -> None:
        self._cancel_unsent(router)
        reason = f"its addresses cannot be announced: {error.strerror}"
        self.log.fault(f"announce {router.name}", f"{router.name}: {reason}")


def _as_netlink(index: int, address: str) -> netlink.Address:
    text, _slash, prefix = address.partition("/")
    return netlink.Address(index, text, int(prefix), usable=True)
