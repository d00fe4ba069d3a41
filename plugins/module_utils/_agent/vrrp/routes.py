# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The virtual routes of the routers: added after the addresses, because they may lead through them, and removed before.

The kernel drops some routes without an event, for example those of an interface that goes down. So to find out which
are missing, all of them are added once more: the kernel refuses those that are present.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Iterable, List, Sequence, Tuple

from ..net import routing
from .notation import Route
from .router import ROUTES, Router

Adds = Sequence[Tuple[Route, Callable[[], Any]]]


class VirtualRoutes:
    """Changes the kernel's routes."""

    def __init__(self, network: Any, log: Any) -> None:
        self.network, self.log = network, log

    def adding(self, router: Router) -> Callable[[], bool]:
        """Return a call that adds the routes of a router, and returns whether all of them are there."""
        return partial(self._add_all, router, self._adds(router), [])

    def restore(self, router: Router, why: str) -> bool:
        """Add the routes that an Active router has lost; return False if the kernel refuses one."""
        added: List[Route] = []
        good = self._add_all(router, self._adds(router), added)
        if added:
            self.log.warning(f"{router.name}: {', '.join(map(str, added))} added to the routes: {why}")
        return good

    def _adds(self, router: Router) -> Adds:
        adding = self.network.netlink.adding_route
        return [(route, adding(self._in_kernel(router, route))) for route in router.instance.virtual_routes]

    def _in_kernel(self, router: Router, route: Route) -> routing.Route:
        """Return a route with its interface's index; it is there, because without it the router is in FAULT."""
        link = router.link_of(route.dev)
        return routing.Route(route.to, route.via, link.index if link else 0, route.src, route.metric, route.table)

    def _add_all(self, router: Router, adds: Adds, added: List[Route]) -> bool:
        return all(self._add(router, route, add, added) for route, add in adds)

    def _add(self, router: Router, route: Route, add: Callable[[], Any], added: List[Route]) -> bool:
        key = f"route {router.name} {route}"
        try:
            add()
            added.append(route)
        except FileExistsError:
            pass
        except OSError as error:
            self.log.fault(key, f"{router.name}: the route {route} cannot be added: {error.strerror}")
            router.refused = ROUTES
            return False
        self.log.cured(key, f"{router.name}: the route {route} could be added")
        return True

    def remove(self, router: Router, unwanted: Iterable[Route]) -> None:
        for route in unwanted:
            self._delete(router.name, self._in_kernel(router, route), str(route))

    def _delete(self, name: str, route: routing.Route, text: str) -> None:
        key = f"delete {name} {text}"
        try:
            self.network.netlink.delete_route(route)
        except OSError as error:
            self.log.fault(key, f"{name}: the route {text} cannot be removed: {error.strerror}")
        else:
            self.log.cured(key, f"{name}: the route {text} is removed")

    def remove_leftovers(self, routers: Iterable[Router]) -> None:
        """Remove what a crash left under an older configuration: a route that a configured one has superseded."""
        wanted = [(router, route) for router in routers for route in router.instance.virtual_routes]
        present = self.network.netlink.routes() if wanted else []
        for router, route in wanted:
            for left in present:
                if routing.is_superseded(left, by=self._in_kernel(router, route)):
                    self._delete(router.name, left, f"{left.to} via {left.via}" if left.via else left.to)
                    self.log.warning(f"{router.name}: an older route to {left.to} is removed: now it is {route}")
