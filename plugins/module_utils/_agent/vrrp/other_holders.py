# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Probes now and then whether another host answers for an address that an Active router holds.

VRRP knows of routers only. A host that was given the address by hand, or whose router ended without removing it, sends
no Advertisement, and answers ARP or Neighbour Solicitations all the same.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, NamedTuple, Optional, Set, Tuple

from ..net.arp import mac_text
from ..net.netlink import Link
from ..runtime.loop import MILLION, Loop, Timer
from . import links
from .router import Router

INTERVAL = 60 * MILLION  # between two rounds
LISTEN = MILLION  # after the last probe of a round
MAX_CLAIMS = 16  # hosts that are named for an address: a reply may be forged
BATCH, PAUSE = 16, MILLION // 100  # probes in one callback, some 0.5 ms, and the pause until the next ones
ETHERNET_SIZE = 6

Key = Tuple[Link, int]  # an interface as it is now, and a family


class Target(NamedTuple):
    """An address that is probed in a round."""

    router: Router
    transitions: int  # of the router when the round began: when it yields, another host is to answer
    key: Key
    address: str

    @property
    def is_valid(self) -> bool:
        return self.router.active and self.router.transitions == self.transitions


class OtherHolders:
    """A round of probes each minute, while any router is Active."""

    def __init__(
        self, loop: Loop, network: Any, known: links.Links, log: Any, routers: Callable[[], Iterable[Router]]
    ) -> None:
        self.loop, self.network, self.links, self.log, self._routers = loop, network, known, log, routers
        self._timer: Optional[Timer] = None
        # They stay open between rounds, because the kernel takes milliseconds to close one, but nothing reads them.
        self._probers: Dict[Key, Any] = {}
        self._claims: Dict[Tuple[Key, str], Set[str]] = {}

    def expect(self) -> None:
        """Begin with rounds, if none is due."""
        if not self._timer:
            self._after(INTERVAL, self._begin)

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None
        for key in list(self._probers):
            self._close(key)

    def _after(self, delay: int, callback: Callable[[], None]) -> None:
        self._timer = self.loop.after(delay, callback)

    def _begin(self) -> None:
        targets = [target for router in self._routers() if router.active for target in self._targets(router)]
        self._claims = {(target.key, target.address): set() for target in targets}
        keys = {target.key for target in targets}
        for key in self._probers.keys() - keys:
            self._close(key)
        for key in keys:
            self._listen(key)
        self._probe(targets, deque(targets))

    def _targets(self, router: Router) -> Iterable[Target]:
        for address in router.addresses:
            link = router.link_of(address.interface)
            if link and len(link.mac) == ETHERNET_SIZE:
                yield Target(router, router.transitions, (link, address.family), address.ip)

    def _listen(self, key: Key) -> None:
        try:
            prober = self._probers.get(key) or self.network.prober(*key)
            self._probers[key] = prober
            prober.replies()  # of hosts that spoke since the last round
        except OSError:  # the interface has just gone
            self._close(key)
        else:
            self.loop.watch(prober.fileno(), lambda _events: self._receive(key))

    def _probe(self, targets: Iterable[Target], waiting: Deque[Target]) -> None:
        for _count in range(min(BATCH, len(waiting))):
            target = waiting.popleft()
            if target.key in self._probers:
                self._send(target)
        if waiting:
            self._after(PAUSE, lambda: self._probe(targets, waiting))
        else:
            self._after(LISTEN, lambda: self._end(targets))

    def _send(self, target: Target) -> None:
        try:
            self._probers[target.key].probe(target.address)
        except BlockingIOError:  # the queue is full; there is another round
            return
        except OSError:
            self._close(target.key)

    def _receive(self, key: Key) -> None:
        try:
            for address, mac in self._probers[key].replies():
                claims = self._claims.get((key, address))
                if claims is not None and len(claims) < MAX_CLAIMS:
                    claims.add(mac)
        except OSError:
            self._close(key)

    def _end(self, targets: Iterable[Target]) -> None:
        for prober in self._probers.values():
            self.loop.forget(prober.fileno())
        own = {mac_text(mac) for mac in self.links.macs()}  # with two interfaces on one link each may answer
        for target in targets:
            if target.is_valid:
                self._report(target, self._claims[target.key, target.address] - own)
        self._timer = None
        if any(router.active for router in self._routers()):
            self.expect()

    def _report(self, target: Target, others: Set[str]) -> None:
        router, address = target.router, target.address
        before, found = router.other_holders.pop(address, []), sorted(others)
        if found:
            router.other_holders[address] = found
        if found and found != before:
            macs = ", ".join(found)
            self.log.warning(f"{router.name}: another host has {address} as well ({macs}): take it off there")
        elif before and not found:
            self.log.info(f"{router.name}: no other host has {address} any more")

    def _close(self, key: Key) -> None:
        prober = self._probers.pop(key, None)
        if prober:
            self.loop.forget(prober.fileno())
            prober.close()
