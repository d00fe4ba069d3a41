# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The virtual addresses of the routers: put on an interface, taken off it, and announced to the link."""

from __future__ import annotations

import errno
from collections import deque
from functools import partial
from typing import Any, Callable, Deque, Dict, Iterable, List, Sequence, Tuple

from ..net import netlink
from ..net.addresses import Addresses
from ..runtime.loop import MILLION, Loop, Timer
from . import links, settings
from .router import ADDRESSES, Router
from .settings import VirtualAddress

# As keepalived does it: a burst of announcements at once, and another one later.
BURST, SECOND_BURST_DELAY = 5, 5 * MILLION
QUEUE_FULL, QUEUE_PAUSE = (errno.EAGAIN, errno.ENOBUFS), MILLION // 100  # 10 ms empty some 150 places at 10 Mbit/s
# Each message of a lower router asks for a burst, and there may be a flood: no more bursts on the average than one in
# MIN_PAUSE, and so many at once. A router that takes over at the same moment asks for two: with the Advertisement after
# which it announces the addresses as well, and with its last one (`machine._received_in_active`).
MIN_PAUSE, AT_ONCE = MILLION // 10, 3
Burst = Deque[Callable[[], Any]]  # calls that announce one address each


class VirtualAddresses:
    """The addresses of all routers."""

    def __init__(self, loop: Loop, network: Any, known: links.Links, log: Any) -> None:
        self.loop, self.network, self.links, self.log = loop, network, known, log
        self._kernel = Addresses(network.netlink, known, log)
        # By router, whose name may change.
        self._timers: Dict[settings.Identity, Timer] = {}
        self._spent: Dict[settings.Identity, int] = {}  # until when its bursts so far would last, MIN_PAUSE apart
        self._unsent: Dict[settings.Identity, Timer] = {}  # sends what did not fit into the interface's queue

    def missing(self, router: Router) -> List[VirtualAddress]:
        """Return which of its addresses are not on their interfaces."""
        held = self.links.held(router.addresses)
        return [address for address in router.addresses if address not in held]

    def adding(self, router: Router, addresses: Iterable[VirtualAddress]) -> Callable[[], bool]:
        """Return a call that puts addresses on their interfaces, and returns whether all of them are there."""
        adds, adding = [], self.network.netlink.adding
        for each in addresses:
            link = router.link_of(each.interface)
            if link is None:
                return lambda: False
            adds.append((link, each.address, adding(link.index, each.address)))
        return partial(self._add_all, router, adds)

    def _add_all(self, router: Router, adds: Sequence[Tuple[netlink.Link, str, Callable[[], Any]]]) -> bool:
        self._spent.pop(router.identity, None)  # the last announcement did not include these
        return all(self._add(router, link, address, add) for link, address, add in adds)

    def _add(self, router: Router, link: netlink.Link, address: str, add: Callable[[], Any]) -> bool:
        there = self._kernel.put(router.name, link, address, add)
        if not there:
            router.refused = ADDRESSES
        return there

    def remove(self, router: Router, addresses: Iterable[VirtualAddress]) -> None:
        """Take addresses off their interfaces, whatever their prefix lengths; one that is not there is no fault."""
        for link, own in _by_link(router, addresses):
            self._kernel.remove(router.name, link, own)

    def remove_strays(self, router: Router, why: str = "another program had added it") -> None:
        """Remove the addresses that are there without right: of an Active router only other prefix lengths.

        A router that was started after a crash, or that is Leaving, keeps the addresses that it has.
        """
        if router.has_addresses and not router.active:
            return
        for link, own in _by_link(router, router.addresses):
            present = self.links.present(link.index, own)
            strays = [address for address in present if address not in own] if router.active else present
            self._kernel.delete_all(router.name, link, strays, why)

    def announce(self, router: Router) -> None:
        self.announcing(router)()

    def announcing(self, router: Router) -> Callable[[], None]:
        """Return a call that sends gratuitous ARP/NA in bursts (it is unacknowledged) and refreshes it periodically."""
        return partial(self._announce, router, self._burst(router, BURST))

    def _announce(self, router: Router, burst: Burst) -> None:
        now = self.loop.now()
        spent = max(now, self._spent.get(router.identity, now))
        soonest = spent - (AT_ONCE - 1) * MIN_PAUSE
        if now < soonest:
            self._schedule(router, soonest, lambda: self.announce(router))
            return
        self._spent[router.identity] = spent + MIN_PAUSE
        self._send(router, burst, now + SECOND_BURST_DELAY)
        self._schedule(router, now + SECOND_BURST_DELAY, lambda: self._repeat(router, BURST))

    def announce_mac(self, router: Router, interface: str) -> None:
        """Announce that the addresses on an interface are at another MAC now."""
        self.log.info(f"{router.name}: interface {interface} has another MAC: the addresses are announced again")
        self.announce(router)

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
        self._send(router, self._burst(router, count), self.loop.now() + SECOND_BURST_DELAY)
        if router.instance.announce_again:
            self._schedule(router, self.loop.now() + router.instance.announce_again, lambda: self._repeat(router, 1))

    def _burst(self, router: Router, count: int) -> Burst:
        """Return the calls that announce each address once, then all of them again."""
        announcing = self.network.announcing
        located = [(router.link_of(address.interface), address.ip) for address in router.addresses]
        return deque([announcing(link, ip) for link, ip in located if link] * count)

    def _send(self, router: Router, calls: Burst, end: int) -> None:
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

    def _send_unsent(self, router: Router, calls: Burst, end: int) -> None:
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


def _by_link(router: Router, addresses: Iterable[VirtualAddress]) -> List[Tuple[netlink.Link, List[str]]]:
    """Return addresses by the interface that carries them, without those whose interface is gone."""
    found: Dict[netlink.Link, List[str]] = {}
    for each in addresses:
        link = router.link_of(each.interface)
        if link:
            found.setdefault(link, []).append(each.address)
    return list(found.items())
