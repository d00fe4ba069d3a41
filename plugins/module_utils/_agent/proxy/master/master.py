# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy as a whole: who listens where, who relays, what is known of the servers, and who is told of it.

It goes from one settings to the next in two steps: ``prepare`` opens what is new and may be refused, ``go_over`` has
everybody follow. Between the two nothing has changed.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ...checks.client import Result, Run
from ...checks.outcome import lower
from ...runtime import status_socket, upgrade_state
from ...runtime.loop import Loop
from ...runtime.request_server import RequestServer
from ..settings import Place, Settings, places
from ..views import html, metrics
from . import admin, report
from .counters import Counters
from .http_endpoints import HttpEndpoints
from .listeners import Listeners, Refused, Sockets
from .server_states import Dependencies, Health, ServerUpdates
from .workers import WorkerHandle, WorkerPool

Report = Dict[str, Any]


class Prepared(NamedTuple):
    """What other settings need."""

    settings: Settings
    sockets: Sockets
    door: status_socket.UnixSocketServer


class Master:
    """To be made, prepared, started."""

    def __init__(self, loop: Loop, log: Any, describe: Callable[[], Report], gone: Callable[[], None]) -> None:
        """
        :param describe: returns what is to be said of the process itself
        :param gone: is called when it is stopping and the last worker has ended
        """
        self._loop, self._log, self._describe, self._gone = loop, log, describe, gone
        self.settings = Settings(())
        self.stopping = False
        self._listeners = Listeners({})
        self._door: Any = None  # a status_socket.Door, from the first settings on
        self.tally = Counters({})
        self.crew = WorkerPool(loop, log, self._orders, self._receive, self._process_ended)

    def start(self, checks: Any, prepared: Prepared, inherited: Optional[Dict[str, Any]]) -> None:
        """Serve. Raises OSError when there cannot be a worker.

        :param checks: a checks.client.Checks whose results come to ``take_result``, and its runs to ``take_run``
        :param inherited: what a predecessor's ``remember`` has returned
        """
        self.health = Health(Dependencies(self._loop, checks, self._log, self.crew.tell))
        self.desk = HttpEndpoints(
            self._loop,
            self.health.usable,
            {"/": lambda: html.page(self.report(), time.time()), "/metrics": lambda: metrics.page(self.report())},
        )
        self.go_over(prepared, inherited["members"] if inherited else {})

    def prepare(self, wanted: Settings) -> Prepared:
        """Open what settings want and is not open yet. Raises Refused."""
        sockets = self._listeners.prepare(wants(wanted))
        if self._door and self._door.path == wanted.status_socket:
            return Prepared(wanted, sockets, self._door)
        try:
            return Prepared(wanted, sockets, self._open_door(wanted.status_socket))
        except status_socket.Refused as refused:
            self._listeners.discard(sockets)
            raise Refused([str(refused)]) from refused

    def discard(self, prepared: Prepared) -> None:
        """Take back what was prepared."""
        self._listeners.discard(prepared.sockets)
        if prepared.door is not self._door:
            prepared.door.close()

    def go_over(self, prepared: Prepared, remembered: Optional[Dict[str, Any]] = None) -> None:
        """Have everybody follow. Raises OSError when there cannot be a worker, and then nothing has changed.

        :param remembered: what a predecessor has known of the servers
        """
        wanted, sockets, door = prepared
        before = self.health.apply(wanted.services, remembered)
        try:
            self.crew.start_generation(
                wanted, [(each.name, sockets[place]) for each in wanted.services for place in _places(each)]
            )
        except OSError:
            self.health.go_over(before)
            raise
        self.desk.apply(wanted, sockets)
        self._listeners.keep(sockets)
        if self._door and self._door is not door:
            self._door.close()
        self._door, self.settings = door, wanted

    def take_result(self, result: Result) -> None:
        self.health.take_result(result)

    def take_run(self, run: Run) -> None:
        self.health.take_run(run)

    def leave(self, duration: int) -> int:
        """Take nobody new, and give those who are there some microseconds. Return how many they are."""
        self.stopping = self.desk.stopping = True
        self._listeners.keep({place: each for place, each in self._listeners.items() if place in self.desk})
        self.crew.drain(duration)
        if not self.crew.hands:
            self._gone()
        return sum(self.tally.current(hand.pid) for hand in self.crew.hands)

    def close(self) -> None:
        self.desk.close()
        if self._door:
            self._door.close()
        self._listeners.close()

    def report(self) -> Report:
        known = report.build(self.settings, self.health, self.tally, self.crew, self.desk, self._loop.now())
        return {**self._describe(), "state": "draining" if self.stopping else "serving", **known}

    # -- from one program to the next

    def pause(self) -> None:
        """Ask those who want to know something to wait outside."""
        for visitors in self._visitors:
            visitors.pause()

    def resume(self) -> None:
        for visitors in self._visitors:
            visitors.resume()

    @property
    def asked(self) -> int:
        """How many are inside who have not heard their answer."""
        return sum(len(visitors) for visitors in self._visitors)

    @property
    def _visitors(self) -> List[RequestServer]:
        return [*self.desk.visitors, *([self._door.visitors] if self._door else [])]

    def remember(self) -> Dict[str, Any]:
        """Return in JSON's terms what a successor is to know, and the descriptors that it is to have."""
        return {
            "door": [self._door.path, self._door.socket.fileno()],
            "listeners": [[*place, each.fileno()] for place, each in self._listeners.items()],
            "hands": [hand.remember() for hand in self.crew.hands if not hand.gone],
            "gone": [hand.pid for hand in self.crew.hands if hand.gone],
            "members": self.health.remember(),
            "ended": self.tally.ended,
            "told": self.tally.by_worker(),
        }

    def inherit(self, known: Dict[str, Any]) -> None:
        """Take over what a predecessor has remembered; before ``prepare``."""
        self._listeners = Listeners(
            {Place(address, port): upgrade_state.socket_of(number) for address, port, number in known["listeners"]}
        )
        path, number = known["door"]
        self._door = self._open_door(path, number)
        self.tally = Counters(known["ended"])
        for each in known["hands"]:
            hand = WorkerHandle.recalled(each, upgrade_state.socket_of(each["connection"]))
            self.crew.adopt(hand)
        for pid, counters in known["told"].items():
            self.tally.update(int(pid), counters, self._loop.now())
        for pid in known["gone"]:
            self.tally.fold_in(pid)
            upgrade_state.reap(self._loop, pid)

    def _open_door(self, path: str, given: int = -1) -> status_socket.UnixSocketServer:
        answer = admin.answers(self.report, lambda request: admin.obey(self.health, request))
        return status_socket.UnixSocketServer(
            self._loop, path, answer, upgrade_state.socket_of(given) if given >= 0 else None
        )

    # -- the workers

    def _orders(self) -> ServerUpdates:
        return self.health.orders()

    def _receive(self, hand: WorkerHandle, message: Dict[str, Any]) -> None:
        """Take what a worker says."""
        self.tally.update(hand.pid, message.get("counters", {}), self._loop.now())
        if "failed" in message and self.crew.agrees(hand, message["failed"]):
            self.health.take_failure(message["failed"], lower(message["why"]))
        if "fault" in message:
            self._log.fault(*message["fault"])
        if "cured" in message:
            self._log.cured(*message["cured"])

    def _process_ended(self, hand: WorkerHandle) -> None:
        self.tally.fold_in(hand.pid)
        if self.stopping and not self.crew.hands:
            self._gone()


def wants(settings: Settings) -> Dict[Place, str]:
    """Return where settings want to listen, and for whom."""
    wanted: Dict[Place, List[str]] = {}
    for what, items in (("service", settings.services), ("monitor", settings.monitors)):
        for item in items:
            for place in _places(item):
                wanted.setdefault(place, []).append(f"{what} {item.name}")
    for place in _places(settings.page) if settings.page else []:
        wanted.setdefault(place, []).append("page")
    return {place: ", ".join(who) for place, who in wanted.items()}


def _places(item: Any) -> List[Place]:
    """Return where a service, a monitor or the page listens."""
    return places(item.bind, item.port)
