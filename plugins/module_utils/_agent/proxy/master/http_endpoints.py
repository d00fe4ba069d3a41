# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The master's HTTP endpoints: monitors for external health checks, the status page and the metrics."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional

from ...runtime.loop import Loop
from ...runtime.request_server import RequestServer
from ..settings import Monitor, Place, Settings, places
from ..views import http
from .listeners import Sockets, sockets_of

Usable = Callable[[str], int]  # how many servers of a service get new connections
Routes = Dict[str, http.Route]  # by path


class HttpEndpoints:
    """Serves the monitors and the page, each at its sockets."""

    def __init__(
        self, loop: Loop, usable: Usable, serves: Callable[[], bool], pages: Routes, render_slow: http.RenderSlow
    ) -> None:
        """
        :param serves: returns whether any worker takes connections
        :param pages: the routes of the status page
        :param render_slow: see ``http.answers``
        """
        self._loop, self._usable, self._serves, self._pages = loop, usable, serves, pages
        self._render_slow = render_slow
        self._routes: Dict[Place, Routes] = {}
        self._request_servers: Dict[Place, RequestServer] = {}
        self.stopping = False

    def apply(self, settings: Settings, sockets: Sockets) -> None:
        """Serve what the settings want. Sockets that stay are not interrupted.

        Call this while sockets that are no longer wanted are still open.
        """
        routes: Dict[Place, Routes] = {}
        for monitor in settings.monitors:
            for place in places(monitor.bind, monitor.port):
                routes.setdefault(place, {})[monitor.path] = http.Route(self._monitor_page(monitor))
        if settings.page:
            for place in places(settings.page.bind, settings.page.port):
                routes[place] = self._pages
        wanted = {place: (routes[owner], each) for owner in routes for place, each in sockets_of(owner, sockets)}
        self._routes = {place: found for place, (found, _socket) in wanted.items()}
        for place in [place for place in self._request_servers if place not in wanted]:
            self._request_servers.pop(place).close()
        for place, (_routes, each) in wanted.items():
            if place not in self._request_servers:
                answer = http.answers(self._finder(place), self._render_slow)
                self._request_servers[place] = RequestServer(self._loop, each, answer)

    def __contains__(self, place: Place) -> bool:
        return place in self._routes

    @property
    def request_servers(self) -> List[RequestServer]:
        return list(self._request_servers.values())

    def close(self) -> None:
        for server in self._request_servers.values():
            server.close()
        self._request_servers.clear()

    def failing_conditions(self, monitor: Monitor) -> List[str]:
        """Return why a monitor fails; empty if it does not."""
        if self.stopping:
            return ["the proxy is stopping"]
        if not self._serves():
            return ["no worker serves"]
        counted = [(each.service, self._usable(each.service), each.servers) for each in monitor.at_least]
        return [f"{service} has {up} of {required} servers" for service, up, required in counted if up < required]

    def _monitor_page(self, monitor: Monitor) -> Callable[[], http.Page]:
        def page() -> http.Page:
            failing = self.failing_conditions(monitor)
            return http.Page(f"{monitor.name}: {', '.join(failing) or 'good'}\n", 503 if failing else 200)

        return page

    def _finder(self, place: Place) -> http.Find:
        def find(path: str) -> Optional[http.Route]:
            return self._routes[place].get(path)

        return find
