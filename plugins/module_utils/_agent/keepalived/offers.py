# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Offers the VIPs of a keepalived whose balancer does not answer to the other members: see `vrrp.core.offers`."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, List, NamedTuple, Optional

from ..runtime.log import Log
from ..runtime.loop import MILLION, Loop
from ..vrrp.core import offers
from . import conf
from .resignation import destinations, left_by
from .senders import LOWEST, OpenSocket, reason, senders

RESIGNS = 0


class Offer(NamedTuple):
    """A Virtual Router of which this host holds addresses."""

    router: conf.Router
    lowered: int  # the priority that it has now

    @property
    def patience(self) -> int:
        """How long to wait for a taker, in microseconds."""
        unit = MILLION if self.router.version == 2 else round(self.router.interval * MILLION)
        return offers.patience(self.router.priority, unit)


class Offers:
    """Offers what this host holds of the Virtual Routers that track one file with a weight."""

    def __init__(
        self,
        loop: Loop,
        log: Log,
        config: Callable[[], str],
        tracked: str,
        kernel: Callable[[], Any],
        open_socket: OpenSocket,
    ) -> None:
        """
        :param config: returns the text of keepalived's configuration
        :param tracked: the name of the track file
        :param kernel: returns a `netlink.Netlink`
        :param open_socket: `sockets.open_socket`
        """
        self._loop, self._log, self._config, self._tracked = loop, log, config, tracked
        self._kernel, self._open_socket = kernel, open_socket
        self._number = 0

    def make(self, number: int) -> None:
        """Offer it, if an offer is due.

        :param number: of the question that was not answered; 0 where the last one was: then no offer follows any more
        """
        self._number = number
        if not offers.is_due(number):
            return
        try:
            for offer in self._held(self._kernel()):
                delay = offers.delay(number, round(offer.router.interval * MILLION))
                self._loop.after(delay, lambda name=offer.router.name: self._offer(name, number == 1))  # type: ignore[misc]
        except OSError as error:
            self._log.warning(f"What is held cannot be read: {reason(error)}.")

    def _offer(self, name: str, is_first: bool) -> None:
        if not self._number:
            return
        try:
            offer = self._send(name, lambda _offer: RESIGNS)
        except (OSError, ValueError) as error:
            if is_first:  # the next ones will fail like this one
                self._log.warning(f"{name} cannot be offered to the other members: {reason(error)}.")
            return
        if offer and is_first:
            self._log.info(f"{name} is offered to the other members.")
        if offer:
            self._loop.after(offer.patience, lambda: self._keep(name))

    def _keep(self, name: str) -> None:
        """Say that this host is still there, unless somebody has taken over."""
        with contextlib.suppress(OSError, ValueError):  # keepalived says it itself with its next Advertisement
            self._send(name, lambda offer: offer.lowered)

    def _held(self, kernel: Any) -> List[Offer]:
        text = self._config()
        weights = {name: weight for name, weight in conf.weights(text, self._tracked).items() if weight}
        routers = [router for router in conf.routers(text) if router.name in weights]
        held = [left.router for left in left_by(routers, kernel.links(), kernel.addresses())]
        return [Offer(router, max(LOWEST, router.priority + weights[router.name])) for router in held]

    def _send(self, name: str, priority: Callable[[Offer], int]) -> Optional[Offer]:
        """Send an Advertisement for what is held; return it, None if it is held no more."""
        kernel = self._kernel()
        found = next((offer for offer in self._held(kernel) if offer.router.name == name), None)
        if found:
            to, there = destinations(found.router), (kernel.links(), kernel.addresses())
            for _to, send in senders(found.router, priority(found), to, there, self._open_socket):
                send()
        return found
