# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The worker processes: a generation that serves, and earlier ones whose last sessions may still finish.

All of them have the same listening sockets, so between two generations connections are always accepted.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...checks.outcome import in_words
from ...runtime import privileges
from ...runtime.forked import MAX_DELAY, Forked, RestartDelay
from ...runtime.ipc import MAX_MESSAGE, Channel
from ...runtime.loop import MILLION, Loop, Timer
from ...runtime.watchdog import MAX_SILENCE, Watchdog
from ..settings import DRAINING, HUNG, SERVING, STARTING, WORKER, Server, Settings
from ..worker.worker import Worker
from .availability import Availability
from .confirmation import Confirmation
from .server_states import ServerUpdates, key_of

KILL_DELAY = 2 * MILLION  # after the time that a worker has to drain
MAX_START = 20 * MILLION  # until a new worker serves

Listeners = Sequence[Tuple[str, socket.socket]]  # a service's name and a socket that listens for it
Servers = Dict[str, Server]  # by SERVICE/SERVER


class Generation(NamedTuple):
    """What the workers of one configuration have in common."""

    number: int
    servers: Servers
    settings: Optional[Settings] = None  # None: no more workers of it are started
    listeners: Listeners = ()


class WorkerHandle:
    """The master's view of a worker."""

    def __init__(self, generation: Generation, process: Forked, since: float, number: int = 0) -> None:
        """``number`` is its own among those that serve by one configuration, from 0."""
        self.generation, self.process, self.since, self.number = generation, process, since, number
        self.started = 0  # of the loop's clock
        self.ready = False  # whether it has sent anything yet
        self.draining = False
        self.hung = False  # whether it has stopped reporting, and was killed
        self.fault = ""  # why it cannot serve
        self.deadline: Optional[int] = None  # when it is killed; of the loop's clock
        self.channel: Any = None  # a Channel
        self.reaper: Optional[Timer] = None
        self.watchdog: Any = None  # a Watchdog

    @property
    def state(self) -> str:
        """Return one of settings.WORKER_STATES."""
        if self.hung:
            return HUNG
        if self.draining:
            return DRAINING
        return SERVING if self.ready else STARTING

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def gone(self) -> bool:
        """Whether its connection has ended, which it does just before the process."""
        return self.process.connection.fileno() < 0

    def to_json(self) -> Dict[str, Any]:
        """Return the state for ``from_json`` in the next version."""
        return {
            "pid": self.pid,
            "connection": self.process.connection.fileno(),
            "generation": self.generation.number,
            "servers": self.generation.servers,
            "since": self.since,
            "ready": self.ready,
            "draining": self.draining,
            "deadline": self.deadline,
        }

    @classmethod
    def from_json(cls, known: Dict[str, Any], connection: socket.socket) -> WorkerHandle:
        servers = {key: Server(*server) for key, server in known["servers"].items()}
        process = Forked.inherited(known["pid"], connection)
        worker = cls(Generation(known["generation"], servers), process, known["since"])
        worker.ready, worker.draining, worker.deadline = known["ready"], known["draining"], known["deadline"]
        return worker


class Events(NamedTuple):
    """What the owner of a pool is told."""

    received: Callable[[WorkerHandle, Dict[str, Any]], None]  # a message of a worker
    ended: Callable[[WorkerHandle], None]  # a worker
    serves: Callable[[], None]  # a worker serves, and none did before
    failed: Callable[[str], None]  # no worker can serve, and why


class WorkerPool:
    """All workers: starts generations, replaces workers that end or hang, drains old ones."""

    def __init__(self, loop: Loop, log: Any, updates: Callable[[], ServerUpdates], events: Events) -> None:
        """``updates`` returns the state of all servers, for a new worker."""
        self._loop, self._log, self._updates, self._events = loop, log, updates, events
        self.workers: List[WorkerHandle] = []
        self.generation = Generation(0, {})
        self.availability = Availability(loop, events.serves, events.failed)
        self._restart_delay = RestartDelay()
        self._confirmations: Dict[int, Confirmation] = {}
        self._serial = 0  # of the latest

    def start_generation(self, settings: Settings, listeners: Listeners) -> None:
        """Start a generation, and then drain the one before. Raises OSError, and then nothing is changed."""
        before, old = self.generation, list(self.workers)
        self.generation = Generation(before.number + 1, servers_of(settings), settings, listeners)
        try:
            for _each in range(settings.workers):
                self._start(settings)
        except OSError:
            self.generation = before
            self._end([worker for worker in self.workers if worker not in old], 0)
            raise
        self._update_availability()  # workers of the previous version may serve already

    def _update_availability(self) -> None:
        if self.generation.settings:
            self.availability.update(any(worker.state == SERVING for worker in self.workers))

    def _retire_old_generations(self) -> None:
        """Drain older generations once every worker of this one is ready.

        Until then a new worker still has every inherited socket: if it were the last to close one of them, the clients
        waiting there would be reset. The old workers accept these clients before they close it.
        """
        settings, serving = self.generation.settings, self._serving()
        if settings and all(worker.ready for worker in serving):
            old = [worker for worker in self.workers if worker not in serving and not worker.draining]
            self._end(old, settings.hard_stop_after)

    def _serving(self) -> List[WorkerHandle]:
        """Return the workers of this generation."""
        return [
            worker
            for worker in self.workers
            if worker.generation is self.generation and worker.state in (STARTING, SERVING)
        ]

    @property
    def has_old_workers(self) -> bool:
        return any(worker.generation.number != self.generation.number for worker in self.workers)

    def _message_received(self, worker: WorkerHandle, message: Dict[str, Any]) -> None:
        if "unfit" in message:
            worker.fault = message["unfit"]
            return
        worker.watchdog.feed(MAX_SILENCE)
        if not worker.ready:
            worker.ready = True
            self._retire_old_generations()
            self._update_availability()
        if message.get("confirmed") in self._confirmations:
            self._confirmations[message["confirmed"]].discard(worker)
        self._events.received(worker, message)

    def drain(self, duration: int) -> None:
        """Drain all workers within some microseconds, and start no others."""
        self.generation = self.generation._replace(settings=None)
        self.availability.stop()
        self._end(self.workers, duration)

    def adopt(self, worker: WorkerHandle) -> None:
        """Take over a worker of the previous version; the newest comes last."""
        self._watch(worker)
        self.generation = worker.generation
        if worker.deadline is not None:
            self._reap_at(worker, worker.deadline)

    def send_updates(self, updates: ServerUpdates) -> None:
        """Send updates to all workers; old ones get only those of servers that they know the same way."""
        for worker in self.workers:
            for part in portions({key: updates[key] for key in updates if self.agrees(worker, key)}):
                worker.channel.post({"servers": part})

    def when_executed(self, call: Callable[[int], None]) -> None:
        """Call once all workers have executed what they were sent so far, with how many have not said so in time."""
        self._serial += 1
        workers = [worker for worker in self.workers if not worker.gone]
        for worker in workers:
            worker.channel.post({"confirm": self._serial})
        self._confirmations = {number: each for number, each in self._confirmations.items() if not each.over}
        self._confirmations[self._serial] = Confirmation(self._loop, workers, call)

    def agrees(self, worker: WorkerHandle, key: str) -> bool:
        """Whether a server's key means the same server to a worker as to this generation."""
        return worker.generation.servers.get(key) == self.generation.servers.get(key)

    def _start(self, settings: Settings) -> None:
        """Fork a worker of this generation. Raises OSError."""
        generation, listeners = self.generation, self.generation.listeners
        number = min({*range(settings.workers)} - {worker.number for worker in self._serving()})

        def serve(end: socket.socket) -> None:
            try:
                privileges.drop_capabilities()
                worker = Worker(settings, listeners, end, number)
                worker.execute({"servers": self._updates()})  # as of the fork
            except Exception as fault:
                end.send(json.dumps({"unfit": in_words(fault)}).encode())
                raise
            worker.run()

        process = Forked(WORKER, serve, [listener.fileno() for _service, listener in listeners])
        self._watch(WorkerHandle(generation, process, time.time(), number))

    def _watch(self, worker: WorkerHandle) -> None:
        worker.started = self._loop.now()
        worker.channel = Channel(
            self._loop,
            worker.process.connection,
            lambda message: self._message_received(worker, message),
            lambda: self._gone(worker),
        )
        worker.watchdog = Watchdog(self._loop, lambda: self._silent(worker), MAX_SILENCE if worker.ready else MAX_START)
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

    def _silent(self, worker: WorkerHandle) -> None:
        """A worker hangs. It is replaced at once, although the kernel may not let it end yet."""
        waited = "has not reported for 3 s" if worker.ready else "has not started within 20 s"
        consequence = "is killed" if worker.draining else "is replaced"
        self._log.warning(f"Worker {worker.pid} {waited} and {consequence}; its sessions are lost.")
        worker.hung, worker.fault = True, f"it {waited}"
        worker.process.kill()
        if not worker.draining:
            self._replace(worker)

    def _gone(self, worker: WorkerHandle) -> None:
        """The connection has ended, and the process is about to."""
        worker.process.kill()
        worker.watchdog.stop()
        for confirmation in list(self._confirmations.values()):
            confirmation.discard(worker)
        if worker.reaper:
            worker.reaper.cancel()
        worker.process.when_ended(self._loop, lambda ending: self._ended(worker, ending))

    def _ended(self, worker: WorkerHandle, ending: str) -> None:
        self.workers.remove(worker)
        self._events.ended(worker)
        if not worker.draining and not worker.hung:
            self._log.warning(f"Worker {worker.pid} has ended ({ending}) and is replaced; its sessions are lost.")
            worker.fault = worker.fault or f"it has ended ({ending})"
            self._replace(worker)

    def _replace(self, worker: WorkerHandle) -> None:
        self._update_availability()
        self.availability.worker_failed(worker.fault)
        delay = self._restart_delay.after(self._loop.now() - worker.started)
        self._loop.after(delay, self._start_if_needed)

    def _start_if_needed(self) -> None:
        """Start a worker, unless there are enough by now or the pool is draining."""
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
    """Yield updates in parts that fit into a message."""
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
