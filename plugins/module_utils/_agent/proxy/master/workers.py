# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The worker processes: a generation that serves, and earlier ones whose last sessions may still finish.

All of them have the same listening sockets, so between two generations there is always somebody who accepts.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...checks.outcome import in_words
from ...runtime.forked import Forked
from ...runtime.ipc import LONGEST, Channel
from ...runtime.loop import MILLION, Loop, Timer
from ..settings import WORKER, Server, Settings
from ..worker.worker import Worker
from . import privileges
from .server_states import ServerUpdates, key_of

SOONEST, LATEST = MILLION // 20, MILLION  # until a worker that does not live is replaced
LIVES = 10 * MILLION  # after this its death is the first one again
REAPING = MILLION // 100  # it closes the connection a moment before it is dead
GRACE = 2 * MILLION  # after the time that it has to drain

Doors = Sequence[Tuple[str, socket.socket]]  # a service's name and a socket that listens for it
Servers = Dict[str, Server]  # by SERVICE/SERVER


class Generation(NamedTuple):
    """What workers have in common that were started by the same configuration."""

    number: int
    servers: Servers
    settings: Optional[Settings] = None  # None: there will be no more workers of it
    doors: Doors = ()


class WorkerHandle:
    """One worker, as its master sees it."""

    def __init__(self, generation: Generation, process: Forked, since: float) -> None:
        self.generation, self.process, self.since = generation, process, since
        self.born = 0
        self.ready = False  # whether it has said anything yet
        self.draining = False
        self.deadline: Optional[int] = None  # by when it has ended, or is killed; of the loop's clock
        self.channel: Any = None  # a Channel
        self.reaper: Optional[Timer] = None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def gone(self) -> bool:
        """Its connection has ended, and it is about to."""
        return self.process.connection.fileno() < 0

    def remember(self) -> Dict[str, Any]:
        """Return in JSON's terms what a successor of this program is to know, for ``recalled``."""
        return {
            "pid": self.pid,
            "connection": self.process.connection.fileno(),
            "generation": self.generation.number,
            "servers": self.generation.servers,
            "since": self.since,
            "draining": self.draining,
            "deadline": self.deadline,
        }

    @classmethod
    def recalled(cls, known: Dict[str, Any], connection: socket.socket) -> WorkerHandle:
        servers = {key: Server(*server) for key, server in known["servers"].items()}
        hand = cls(Generation(known["generation"], servers), Forked.inherited(known["pid"], connection), known["since"])
        hand.draining, hand.deadline = known["draining"], known["deadline"]
        return hand


class WorkerPool:
    """All of them."""

    def __init__(
        self,
        loop: Loop,
        log: Any,
        orders: Callable[[], ServerUpdates],
        hear: Callable[[WorkerHandle, Dict[str, Any]], None],
        lose: Callable[[WorkerHandle], None],
    ) -> None:
        """
        :param orders: what a new worker is to know of the servers
        :param hear: takes each message
        :param lose: is told of each one that has ended
        """
        self._loop, self._log, self._orders, self._receive, self._process_ended = loop, log, orders, hear, lose
        self.hands: List[WorkerHandle] = []
        self.generation = Generation(0, {})
        self._pause = 0

    def start_generation(self, settings: Settings, doors: Doors) -> None:
        """Have a new generation serve, and then the one before finish. Raises OSError, and then nothing is changed."""
        before, old = self.generation, list(self.hands)
        self.generation = Generation(before.number + 1, servers_of(settings), settings, doors)
        try:
            for _each in range(settings.workers):
                self._start(settings)
        except OSError:
            self.generation = before
            self._end([hand for hand in self.hands if hand not in old], 0)
            raise

    def _retire_old_generations(self) -> None:
        """Have those of earlier generations finish, once all of this one serve.

        Until then a new one has every socket still, also those that are not its own: if it were the last to close one
        of them, then whoever waits there would be reset. The old ones take them along.
        """
        settings, serving = self.generation.settings, self._serving()
        if settings and all(hand.ready for hand in serving):
            old = [hand for hand in self.hands if hand not in serving and not hand.draining]
            self._end(old, settings.hard_stop_after)

    def _serving(self) -> List[WorkerHandle]:
        """Return those of this generation."""
        return [hand for hand in self.hands if hand.generation is self.generation and not hand.draining]

    def _heard(self, hand: WorkerHandle, message: Dict[str, Any]) -> None:
        if not hand.ready:
            hand.ready = True
            self._retire_old_generations()
        self._receive(hand, message)

    def drain(self, duration: int) -> None:
        """Have all of them finish within some microseconds, and start no others."""
        self.generation = self.generation._replace(settings=None)
        self._end(self.hands, duration)

    def adopt(self, hand: WorkerHandle) -> None:
        """Take over one from the program that this process was before; the youngest comes last."""
        self._attach(hand)
        self.generation = hand.generation
        if hand.deadline is not None:
            self._reap_at(hand, hand.deadline)

    def tell(self, orders: ServerUpdates) -> None:
        """Tell all workers of servers; the old ones only of those that are the same to them."""
        for hand in self.hands:
            for part in portions({key: orders[key] for key in orders if self.agrees(hand, key)}):
                hand.channel.post({"servers": part})

    def agrees(self, hand: WorkerHandle, key: str) -> bool:
        """Whether a worker means the same as this generation by the name of a server."""
        return hand.generation.servers.get(key) == self.generation.servers.get(key)

    def _start(self, settings: Settings) -> None:
        """Fork a worker of this generation. Raises OSError."""
        generation, orders, doors = self.generation, self._orders(), self.generation.doors

        def serve(end: socket.socket) -> None:
            privileges.drop_capabilities()
            worker = Worker(settings, doors, end)
            worker.obey({"servers": orders})
            worker.run()

        process = Forked(WORKER, serve, [door.fileno() for _service, door in doors])
        self._attach(WorkerHandle(generation, process, time.time()))

    def _attach(self, hand: WorkerHandle) -> None:
        hand.born = self._loop.now()
        hand.channel = Channel(
            self._loop, hand.process.connection, lambda message: self._heard(hand, message), lambda: self._gone(hand)
        )
        self.hands.append(hand)

    def _end(self, hands: Sequence[WorkerHandle], duration: int) -> None:
        for hand in hands:
            hand.draining = True
            hand.channel.post({"drain": duration / MILLION})
            deadline = self._loop.now() + duration + GRACE
            if hand.deadline is None or deadline < hand.deadline:
                self._reap_at(hand, deadline)

    def _reap_at(self, hand: WorkerHandle, deadline: int) -> None:
        if hand.reaper:
            hand.reaper.cancel()
        hand.deadline = deadline
        hand.reaper = self._loop.at(deadline, hand.process.kill)

    def _gone(self, hand: WorkerHandle) -> None:
        """Its connection has ended, and so will it."""
        hand.process.kill()
        if hand.reaper:
            hand.reaper.cancel()
        self._reap(hand)

    def _reap(self, hand: WorkerHandle) -> None:
        ending = hand.process.ending()
        if ending is None:
            self._loop.after(REAPING, lambda: self._reap(hand))
            return
        self.hands.remove(hand)
        self._process_ended(hand)
        if not hand.draining:
            self._log.warning(f"Worker {hand.pid} has ended ({ending}) and is replaced; its sessions are lost.")
            self._replace(hand)

    def _replace(self, hand: WorkerHandle) -> None:
        """At once, but if they die again and again then less and less often."""
        if self._loop.now() - hand.born > LIVES:
            self._pause = 0
        self._loop.after(self._pause, self._start_if_wanted)
        self._pause = min(LATEST, max(SOONEST, 2 * self._pause))

    def _start_if_wanted(self) -> None:
        """There may be others meanwhile, or none wanted any more."""
        settings = self.generation.settings
        if settings is None or len(self._serving()) >= settings.workers:
            return
        try:
            self._start(settings)
        except OSError as fault:
            self._log.warning(f"A worker cannot be started: {in_words(fault)}.")
            self._loop.after(LATEST, self._start_if_wanted)


def servers_of(settings: Settings) -> Servers:
    return {key_of(service, server): server for service in settings.services for server in service.servers}


def portions(orders: ServerUpdates) -> Iterator[ServerUpdates]:
    """Yield them in parts that a message has room for."""
    part: ServerUpdates = {}
    size = 0
    for key, order in orders.items():
        length = len(json.dumps({key: order}))
        if part and size + length > LONGEST // 2:
            yield part
            part, size = {}, 0
        part[key] = order
        size += length
    if part:
        yield part
