# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy as a whole: listeners, workers, server states, endpoints and the report.

It switches settings in two steps: ``prepare`` opens what is new, and may be refused; ``switch_to`` puts them in force.
Between the two nothing has changed.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...checks.checks_process import Result, Run
from ...runtime import status_socket, upgrade_state
from ...runtime.loop import Loop
from ...runtime.request_server import RequestServer
from ..settings import Place, Service, Settings, places
from ..views import html, http, metrics
from . import admin, report, workers
from .counters import Counters
from .http_endpoints import HttpEndpoints
from .listeners import Listeners, Refused, Sockets, sockets_of
from .rendering import Renderer
from .server_states import Dependencies, Health, ServerUpdates
from .workers import WorkerHandle, WorkerPool

Report = Dict[str, Any]


class Prepared(NamedTuple):
    """New settings, and the sockets that they need."""

    settings: Settings
    sockets: Sockets
    status_socket: status_socket.UnixSocketServer


class Events(NamedTuple):
    """What the owner of a master is told."""

    serves: Callable[[], None]  # a worker serves, and none did before
    failed: Callable[[str], None]  # no worker can serve, and why
    gone: Callable[[], None]  # the last worker has ended after ``drain``
    reload: admin.Reload = admin.no_reload  # a client of the status socket wants it


class Master:
    """Created, then prepared, then started."""

    def __init__(self, loop: Loop, log: Any, describe: Callable[[], Report], events: Events) -> None:
        """``describe`` returns the part of the report that is about the process."""
        self._loop, self._log, self._describe, self._gone = loop, log, describe, events.gone
        self._reload = events.reload
        self.settings = Settings(())
        self.stopping = False
        self._listeners = Listeners({})
        self._status_socket: Any = None  # a UnixSocketServer, from the first settings on
        self.counters = Counters({})
        told = workers.Events(self._receive, self._worker_ended, events.serves, events.failed)
        self.pool = WorkerPool(loop, log, self._updates, told)
        self._renderer = Renderer(loop)
        self._ending: Set[int] = set()  # children of versions before, which have not been reaped yet

    def start(self, checks: Any, prepared: Prepared, inherited: Optional[Dict[str, Any]]) -> None:
        """Serve. Raises OSError if no worker can be started.

        :param checks: a `ChecksProcess` that calls ``take_result`` and ``take_run``
        :param inherited: the state of the previous version, from ``to_json``
        """
        self.health = Health(Dependencies(self._loop, checks, self._log, self.pool.send_updates))
        self.endpoints = HttpEndpoints(
            self._loop,
            self.health.usable,
            lambda: self.serves,
            {
                "/": http.Route(lambda: html.page(self.report(), time.time()), slow=True),
                "/metrics": http.Route(lambda: metrics.page(self.report()), slow=True),
            },
            self._renderer.answer,
        )
        self.switch_to(prepared, inherited["members"] if inherited else {})

    def prepare(self, settings: Settings) -> Prepared:
        """Open the sockets that settings want and are not open yet. Raises Refused."""
        sockets = self._listeners.prepare(listeners_of(settings))
        if self._status_socket and self._status_socket.path == settings.status_socket:
            return Prepared(settings, sockets, self._status_socket)
        try:
            return Prepared(settings, sockets, self._open_status_socket(settings.status_socket))
        except status_socket.Refused as refused:
            self._listeners.discard(sockets)
            raise Refused([str(refused)]) from refused

    def discard(self, prepared: Prepared) -> None:
        """Close what was prepared."""
        self._listeners.discard(prepared.sockets)
        if prepared.status_socket is not self._status_socket:
            prepared.status_socket.close()

    def switch_to(self, prepared: Prepared, inherited: Optional[Dict[str, Any]] = None) -> None:
        """Put prepared settings in force. Raises OSError if no worker can be started, and then nothing has changed.

        :param inherited: server states of the previous version
        """
        settings, sockets, status = prepared
        before = self.health.apply(settings.services, inherited)
        try:
            self.pool.start_generation(settings, _listening(settings.services, sockets))
        except OSError:
            self.health.switch_to(before)
            raise
        self.endpoints.apply(settings, sockets)
        self._listeners.keep(sockets)
        if self._status_socket and self._status_socket is not status:
            self._status_socket.close()
        self._status_socket, self.settings = status, settings
        self._renderer.servers = sum(len(service.servers) for service in settings.services)

    @property
    def serves(self) -> bool:
        """Whether any worker takes connections."""
        return self.pool.availability.serves

    def take_result(self, result: Result) -> None:
        self.health.take_result(result)

    def take_run(self, run: Run) -> None:
        self.health.take_run(run)

    def drain(self, duration: int) -> int:
        """Stop accepting; let open sessions finish within ``duration`` microseconds. Returns their number."""
        self.stopping = self.endpoints.stopping = True
        self._listeners.keep({place: each for place, each in self._listeners.items() if place in self.endpoints})
        self.pool.drain(duration)
        if not self.pool.workers:
            self._gone()
        return sum(self.counters.current(worker.pid) for worker in self.pool.workers)

    def close(self) -> None:
        self.endpoints.close()
        if self._status_socket:
            self._status_socket.close()
        self._listeners.close()

    def report(self) -> Report:
        known = report.build(self.settings, self.health, self.counters, self.pool, self.endpoints, self._loop.now())
        return {**self._describe(), "state": "draining" if self.stopping else "serving", **known}

    # -- upgrades

    def pause(self) -> None:
        """Stop accepting requests; the accepted ones are answered."""
        for server in self._request_servers:
            server.pause()

    def resume(self) -> None:
        for server in self._request_servers:
            server.resume()

    @property
    def open_requests(self) -> int:
        """How many requests are not answered yet."""
        return sum(len(server) for server in self._request_servers)

    @property
    def _request_servers(self) -> List[RequestServer]:
        own = [self._status_socket.server] if self._status_socket else []
        return [*self.endpoints.request_servers, *own]

    def to_json(self) -> Dict[str, Any]:
        """Return the state for the next version, with the descriptors that it inherits."""
        return {
            "door": [self._status_socket.path, self._status_socket.socket.fileno()],
            "listeners": [[*place, each.fileno()] for place, each in self._listeners.items()],
            "hands": [worker.to_json() for worker in self.pool.workers if not worker.gone],
            "gone": [*self._ending, *(worker.pid for worker in self.pool.workers if worker.gone), *self._renderer.pids],
            "members": self.health.to_json(),
            "ended": self.counters.ended,
            "told": self.counters.by_worker(),
        }

    def inherit(self, known: Dict[str, Any]) -> None:
        """Take over the state of the previous version; before ``prepare``."""
        self._listeners = Listeners(
            {Place(address, port): upgrade_state.socket_of(number) for address, port, number in known["listeners"]}
        )
        path, number = known["door"]
        self._status_socket = self._open_status_socket(path, number)
        self.counters = Counters(known["ended"])
        for each in known["hands"]:
            worker = WorkerHandle.from_json(each, upgrade_state.socket_of(each["connection"]))
            self.pool.adopt(worker)
        for pid, counters in known["told"].items():
            self.counters.update(int(pid), counters, self._loop.now())
        for pid in known["gone"]:
            self.counters.fold_in(pid)
            self.reap(pid)

    def reap(self, pid: int) -> None:
        """Reap a child of the version before, or have the next version do so."""
        self._ending.add(pid)
        upgrade_state.reap(self._loop, pid, lambda: self._ending.discard(pid))

    def _open_status_socket(self, path: str, inherited: int = -1) -> status_socket.UnixSocketServer:
        answer = admin.answers(
            lambda: self._renderer.answer(lambda: status_socket.document(self.report())),
            lambda request: admin.execute(self.health, request),
            self.pool.when_executed,
            self._reload,
        )
        return status_socket.UnixSocketServer(
            self._loop, path, answer, upgrade_state.socket_of(inherited) if inherited >= 0 else None
        )

    # -- the workers

    def _updates(self) -> ServerUpdates:
        return self.health.updates()

    def _receive(self, worker: WorkerHandle, message: Dict[str, Any]) -> None:
        """Process a worker's message."""
        self.counters.update(worker.pid, message.get("counters", {}), self._loop.now())
        if "failed" in message and self.pool.agrees(worker, message["failed"]):
            self.health.suspect(message["failed"])
        if "fault" in message:
            self._log.fault(*message["fault"])
        if "cured" in message:
            self._log.cured(*message["cured"])

    def _worker_ended(self, worker: WorkerHandle) -> None:
        self.counters.fold_in(worker.pid)
        if not self.pool.has_old_workers:
            self._listeners.forget_dropped()
        if self.stopping and not self.pool.workers:
            self._gone()


def listeners_of(settings: Settings) -> Dict[Place, str]:
    """Return the places that settings want to listen on, each with what it is for."""
    found: Dict[Place, List[str]] = {}
    for what, items in (("service", settings.services), ("monitor", settings.monitors)):
        for item in items:
            for place in _places(item):
                found.setdefault(place, []).append(f"{what} {item.name}")
    for place in _places(settings.page) if settings.page else []:
        found.setdefault(place, []).append("page")
    return {place: ", ".join(users) for place, users in found.items()}


def _listening(services: Sequence[Service], sockets: Sockets) -> List[Tuple[str, socket.socket]]:
    """Return each service's name with each of its sockets."""
    return [
        (service.name, each)
        for service in services
        for place in _places(service)
        for _other, each in sockets_of(place, sockets)
    ]


def _places(item: Any) -> List[Place]:
    """Return where a service, a monitor or the page listens."""
    return places(item.bind, item.port)
