# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Offers what a router holds whose balancer does not answer to the others: see `core.offers`."""

from __future__ import annotations

from typing import Callable, Dict, Iterable

from ..checks.results import CheckResults
from ..runtime.loop import Loop
from .core import machine, offers
from .router import Router
from .transport import Transport


class Offering:
    """Makes offers for as long as a check that asks for them fails."""

    def __init__(
        self, loop: Loop, results: CheckResults, routers: Callable[[], Iterable[Router]], transport: Transport
    ) -> None:
        self._loop, self._results, self._routers, self._transport = loop, results, routers, transport
        self._numbers: Dict[Router, int] = {}  # how often a router's balancer was asked since it does not answer

    def update(self) -> None:
        """Begin with routers whose check has failed, and end with the others."""
        failing = [router for router in self._routers() if self._fails(router)]
        new = [router for router in failing if router not in self._numbers]
        self._numbers = {router: self._numbers.get(router, 0) for router in failing}
        if new:
            self._ask(new)

    def _fails(self, router: Router) -> bool:
        names = [item.name for item in router.instance.track if item.offers]
        return any(name in self._results and not self._results[name].result.up for name in names)

    def _ask(self, routers: Iterable[Router]) -> None:
        """Do what follows from a question that was not answered, and from the next ones."""
        asked = [router for router in routers if router in self._numbers]
        for router in asked:
            number = self._numbers[router] = self._numbers[router] + 1
            if offers.is_due(number):
                delay = offers.delay(number, router.machine.interval)
                self._loop.after(delay, lambda router=router: self._offer(router))  # type: ignore[misc]
        if asked:
            self._loop.after(offers.EVERY, lambda: self._ask(asked))

    def _offer(self, router: Router) -> None:
        if router in self._numbers and router.active:
            self._transport.sending(router, 0)()
            unit = router.machine.interval if router.machine.version == 3 else machine.SECOND
            self._loop.after(offers.patience(router.machine.priority, unit), lambda: self._keep(router))

    def _keep(self, router: Router) -> None:
        if router.active:
            self._transport.sending(router, router.priority)()
