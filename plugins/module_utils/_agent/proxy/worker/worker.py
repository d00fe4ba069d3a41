# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker process: relays connections as its master orders. Messages are JSON, one per packet.

From the master::

    {"servers": {"SERVICE/SERVER": {"state": "up|late|down|drain|maint", "weight": 0 to 256, "shutdown": true|false}}}
    {"drain": SECONDS}      stop accepting, let sessions finish within that time, and end; again: within less
    {"confirm": NUMBER}     say when everything before it was executed

To the master::

    {"counters": {"SERVICE": {...}, "SERVICE/SERVER": {...}}}   every second those that have changed, since its start
    {"failed": "SERVICE/SERVER"}                                a server could not be reached
    {"confirmed": NUMBER}                                       everything before "confirm" was executed
    {"fault": [KEY, TEXT]}, {"cured": [KEY, TEXT]}              for the log, once each
    {"drained": true}                                           the last message

The end of the channel means that the master is gone: the worker stops accepting, and its sessions may finish.
"""

from __future__ import annotations

import gc
import json
import socket
from collections import deque
from itertools import islice
from time import monotonic
from typing import Any, Deque, Dict, Iterator, List, Sequence, Tuple

from ..settings import MILLION, Settings
from .endpoint import RELAYING
from .event_loop import IN, EventLoop, Handler
from .frontend import Acceptor, Frontend, Limits, WorkerContext
from .servers import Counts, Table
from .session import Session

TICK = 0.1  # seconds between two checks of sessions
REPORT_INTERVAL = 1.0  # seconds in which each of them is checked once, however many there are
MIN_CHECKED = 1000  # handlers that are checked in a tick, at least
MAX_MESSAGE = 1 << 16  # bytes of a message
COUNTERS_PER_MESSAGE = 100  # entries of one message with counters
FINISH_TIMEOUT = 1.0  # seconds for them to be taken
MAX_UNSENT = 1000  # messages that may wait for the master


class Channel(Handler):
    """The connection to the master. A slow master does not delay the worker."""

    __slots__ = ("_end", "_unsent", "_worker")

    def __init__(self, end: socket.socket, worker: Worker) -> None:
        self._end, self._worker = end, worker
        self._unsent: Deque[bytes] = deque(maxlen=MAX_UNSENT)
        end.setblocking(False)

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: Any) -> None:
        self._unsent.append(json.dumps(message).encode())
        self.flush()

    def flush(self) -> bool:
        """Send the queued messages; return whether all were sent."""
        try:
            while self._unsent:
                self._end.send(self._unsent[0])
                self._unsent.popleft()
        except (BlockingIOError, socket.timeout):
            return False
        except OSError:
            self._unsent.clear()  # the master is gone, which receiving will report
        return True

    def finish(self, message: Any) -> None:
        """Send the queued messages and a last one, blocking a little if necessary."""
        self._end.settimeout(FINISH_TIMEOUT)
        self.send(message)

    def ready(self, events: int) -> None:
        try:
            message = self._end.recv(MAX_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if message:
            self._worker.execute(json.loads(message))
        else:
            self._worker.master_gone()


class Worker:
    """Runs in a process of its own; tests run it in theirs."""

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[Tuple[str, socket.socket]],
        channel: socket.socket,
        number: int = 0,
    ) -> None:
        """
        :param number: of this worker, from 0
        :param listeners: listening sockets, non-blocking, each with the name of its service
        :param channel: the worker's end of a SOCK_SEQPACKET pair
        """
        self.loop = EventLoop()
        self.channel = Channel(channel, self)
        limits = Limits(settings.maxconn, settings.workers, number)
        self.table = Table(settings.services, limits.share)
        self.context = WorkerContext(self.loop, limits, settings.timeouts, settings.retries, self.channel.send)
        frontends = {each.name: Frontend(each, self.table.pools[each.name], self.context) for each in settings.services}
        for each in settings.services:
            if each.route_of:
                frontends[each.route_of].add_route(each.hosts, frontends[each.name])
        for name, listener in listeners:
            self.context.add(Acceptor(frontends[name], listener))
        self._hard_stop_after = settings.hard_stop_after / MILLION
        self._deadline = 0.0  # of draining; 0: not draining
        self._reported: Dict[str, Counts] = {}
        self._next_tick = self._next_report = self._next_due = 0.0
        self._checked = 0  # handlers, in this REPORT_INTERVAL
        self.loop.watch(self.channel.fileno(), self.channel, IN)

    def run(self) -> None:
        """Relay until the master ends it."""
        # Sessions leave no reference cycles, and a collection would have to visit thousands of them.
        gc.disable()
        try:
            self.loop.run(self._on_tick)
        finally:
            gc.enable()
        self._report()
        self.channel.finish({"drained": True})
        self.loop.close()

    # -- the master

    def execute(self, message: Any) -> None:
        for key, change in message.get("servers", {}).items():
            server = self.table.change(key, change["state"], change["weight"])
            if server and change.get("shutdown"):
                for session in _sessions(list(self.loop.handlers.values())):
                    if session.target is server and session.state == RELAYING:
                        session.reset()
        if "drain" in message:
            self._drain(message["drain"])
        if "confirm" in message:
            self.channel.send({"confirmed": message["confirm"]})

    def master_gone(self) -> None:
        self.loop.ignore(self.channel.fileno())
        self._drain(self._hard_stop_after)

    def _drain(self, seconds: float) -> None:
        self.context.stop_accepting()
        self._deadline = min(self._deadline or float("inf"), monotonic() + seconds)
        self._next_tick = 0.0

    # -- time

    def _on_tick(self) -> float:
        """Do periodic work; return how many seconds the next round may wait."""
        now = monotonic()
        if now >= self._next_tick:
            self._next_tick = now + TICK
            self._tick(now)
        if now >= self._next_due:
            self._next_due = self.context.end_attempts(now)
        if not self.context.current:
            return max(self._next_tick, self._next_report) - now
        return min(self._next_tick, self._next_due) - now

    def _tick(self, now: float) -> None:
        self._check_sessions(now)
        self.table.restore(now)
        self.context.try_again()
        if now >= self._next_report:
            self._next_report = now + REPORT_INTERVAL
            self._report()
        if self._deadline:
            self._finish(now)

    def _check_sessions(self, now: float) -> None:
        """Check the time-outs of a part of the sessions, so that each is checked once per REPORT_INTERVAL.

        A session costs nothing for this when it begins, ends, or relays.
        """
        handlers = self.loop.handlers
        portion = max(MIN_CHECKED, int(len(handlers) * TICK / REPORT_INTERVAL) + 1)
        for session in _sessions(list(islice(handlers.values(), self._checked, self._checked + portion))):
            session.check_timeouts(now)
        self._checked += portion
        if self._checked >= len(handlers):
            self._checked = 0

    def _report(self) -> None:
        """Report changed counters; what the channel cannot take now is reported next time."""
        changed = {key: counts for key, counts in self.table.counts() if self._reported.get(key) != counts}
        keys = list(changed)
        for at in range(0, max(1, len(keys)), COUNTERS_PER_MESSAGE):  # even without changes, as a heartbeat
            if not self.channel.flush():
                return
            part = {key: changed[key] for key in keys[at : at + COUNTERS_PER_MESSAGE]}
            self.channel.send({"counters": part})
            self._reported.update(part)

    def _finish(self, now: float) -> None:
        if now >= self._deadline:
            for session in _sessions(list(self.loop.handlers.values())):
                session.reset()
        if not self.context.current:
            self.loop.stop()


def _sessions(handlers: List[Handler]) -> Iterator[Session]:
    """Yield the sessions among the handlers, each once."""
    for handler in handlers:
        session = handler.session
        if session is not None and session.client is handler:
            yield session
