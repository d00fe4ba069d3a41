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
from ...runtime.forked import MAX_DELAY, Forked, RestartDelay
from ...runtime.ipc import MAX_MESSAGE, Channel
from ...runtime.loop import MILLION, Loop, Timer
from ..settings import WORKER, Server, Settings
from ..worker.worker import Worker
from . import privileges
from .server_states import ServerUpdates, key_of

KILL_DELAY = 2 * MILLION  # after the time that a worker has to drain

Listeners = Sequence[Tuple[str, socket.socket]]  # a service's name and a socket that listens for it
Servers = Dict[str, Server]  # by SERVICE/SERVER


class Generation(NamedTuple):
    """What workers have in common that were started by the same configuration."""

    number: int
    servers: Servers
    settings: Optional[Settings] = None  # None: there will be no more workers of it
    listeners: Listeners = ()


class WorkerHandle:
    """One worker, as its master sees it."""

    def __init__(self, generation: Generation, process: Forked, since: float) -> None:
        self.generation, self.process, self.since = generation, process, since
        self.started = 0  # of the loop's clock
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

    def to_json(self) -> Dict[str, Any]:
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
    def from_json(cls, known: Dict[str, Any], connection: socket.socket) -> WorkerHandle:
        servers = {key: Server(*server) for key, server in known["servers"].items()}
        process = Forked.inherited(known["pid"], connection)
        worker = cls(Generation(known["generation"], servers), process, known["since"])
        worker.draining, worker.deadline = known["draining"], known["deadline"]
        return worker


class WorkerPool:
    """All of them."""

    def __init__(
        self,
        loop: Loop,
        log: Any,
        updates: Callable[[], ServerUpdates],
        hear: Callable[[WorkerHandle, Dict[str, Any]], None],
        lose: Callable[[WorkerHandle], None],
    ) -> None:
        """
        :param updates: what a new worker is to know of the servers
        :param hear: takes each message
        :param lose: is told of each one that has ended
        """
        self._loop, self._log, self._updates, self._receive, self._worker_ended = loop, log, updates, hear, lose
        self.workers: List[WorkerHandle] = []
        self.generation = Generation(0, {})
        self._restart_delay = RestartDelay()

    def start_generation(self, settings: Settings, listeners: Listeners) -> None:
        """Have a new generation serve, and then the one before finish. Raises OSError, and then nothing is changed."""
        before, old = self.generation, list(self.workers)
        self.generation = Generation(before.number + 1, servers_of(settings), settings, listeners)
        try:
            for _each in range(settings.workers):
                self._start(settings)
        except OSError:
            self.generation = before
            self._end([worker for worker in self.workers if worker not in old], 0)
            raise

    def _retire_old_generations(self) -> None:
        """Have those of earlier generations finish, once all of this one serve.

        Until then a new one has every socket still, also those that are not its own: if it were the last to close one
        of them, then whoever waits there would be reset. The old ones take them along.
        """
        settings, serving = self.generation.settings, self._serving()
        if settings and all(worker.ready for worker in serving):
            old = [worker for worker in self.workers if worker not in serving and not worker.draining]
            self._end(old, settings.hard_stop_after)

    def _serving(self) -> List[WorkerHandle]:
        """Return those of this generation."""
        return [worker for worker in self.workers if worker.generation is self.generation and not worker.draining]

    def _message_received(self, worker: WorkerHandle, message: Dict[str, Any]) -> None:
        if not worker.ready:
            worker.ready = True
            self._retire_old_generations()
        self._receive(worker, message)

    def drain(self, duration: int) -> None:
        """Have all of them finish within some microseconds, and start no others."""
        self.generation = self.generation._replace(settings=None)
        self._end(self.workers, duration)

    def adopt(self, worker: WorkerHandle) -> None:
        """Take over one from the program that this process was before; the youngest comes last."""
        self._watch(worker)
        self.generation = worker.generation
        if worker.deadline is not None:
            self._reap_at(worker, worker.deadline)

    def tell(self, updates: ServerUpdates) -> None:
        """Tell all workers of servers; the old ones only of those that are the same to them."""
        for worker in self.workers:
            for part in portions({key: updates[key] for key in updates if self.agrees(worker, key)}):
                worker.channel.post({"servers": part})

    def agrees(self, worker: WorkerHandle, key: str) -> bool:
        """Whether a worker means the same as this generation by the name of a server."""
        return worker.generation.servers.get(key) == self.generation.servers.get(key)

    def _start(self, settings: Settings) -> None:
        """Fork a worker of this generation. Raises OSError."""
        generation, updates, listeners = self.generation, self._updates(), self.generation.listeners

        def serve(end: socket.socket) -> None:
            privileges.drop_capabilities()
            worker = Worker(settings, listeners, end)
            worker.execute({"servers": updates})
            worker.run()

        process = Forked(WORKER, serve, [listener.fileno() for _service, listener in listeners])
        self._watch(WorkerHandle(generation, process, time.time()))

    def _watch(self, worker: WorkerHandle) -> None:
        worker.started = self._loop.now()
        worker.channel = Channel(
            self._loop,
            worker.process.connection,
            lambda message: self._message_received(worker, message),
            lambda: self._gone(worker),
        )
        self.workers.append(worker)

    def _end(self, workers: Sequence[WorkerHandle], duration: int) -> None:
        for worker in workers:
            worker.draining = True
            worker.channel.post({"drain": duration / MILLION})
            deadline = self._loop.now() + duration + KILL_DELAY
            if worker.deadline is None or deadline < worker.deadline:
                self._reap_at(worker, deadline)

    def _reap_at(self, worker: WorkerHandle, deadline: int) -> None:
        if worker.reaper:
            worker.reaper.cancel()
        worker.deadline = deadline
        worker.reaper = self._loop.at(deadline, worker.process.kill)

    def _gone(self, worker: WorkerHandle) -> None:
        """Its connection has ended, and so will it."""
        worker.process.kill()
        if worker.reaper:
            worker.reaper.cancel()
        worker.process.when_ended(self._loop, lambda ending: self._ended(worker, ending))

    def _ended(self, worker: WorkerHandle, ending: str) -> None:
        self.workers.remove(worker)
        self._worker_ended(worker)
        if not worker.draining:
            self._log.warning(f"Worker {worker.pid} has ended ({ending}) and is replaced; its sessions are lost.")
            self._replace(worker)

    def _replace(self, worker: WorkerHandle) -> None:
        delay = self._restart_delay.after(self._loop.now() - worker.started)
        self._loop.after(delay, self._start_if_needed)

    def _start_if_needed(self) -> None:
        """There may be others meanwhile, or none wanted any more."""
        settings = self.generation.settings
        if settings is None or len(self._serving()) >= settings.workers:
            return
        try:
            self._start(settings)
        except OSError as fault:
            self._log.warning(f"A worker cannot be started: {in_words(fault)}.")
            self._loop.after(MAX_DELAY, self._start_if_needed)


def servers_of(settings: Settings) -> Servers:
    return {key_of(service, server): server for service in settings.services for server in service.servers}


def portions(updates: ServerUpdates) -> Iterator[ServerUpdates]:
    """Yield them in parts that a message has room for."""
    part: ServerUpdates = {}
    size = 0
    for key, order in updates.items():
        length = len(json.dumps({key: order}))
        if part and size + length > MAX_MESSAGE // 2:
            yield part
            part, size = {}, 0
        part[key] = order
        size += length
    if part:
        yield part
