# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A process that relays, and knows of the world what its master tells it. Messages are JSON, one in each packet.

From the master::

    {"servers": {"SERVICE/SERVER": {"state": "up|down|drain|maint", "weight": 0 to 256, "shutdown": true|false}}}
    {"drain": SECONDS}      take nobody new, let the others finish within that time, and end; again: within less

To the master::

    {"counters": {"SERVICE": {...}, "SERVICE/SERVER": {...}}}   every second those that have changed, since its start
    {"failed": "SERVICE/SERVER", "why": TEXT}                   a server could not be reached
    {"fault": [KEY, TEXT]}, {"cured": [KEY, TEXT]}              for the log, once each
    {"drained": true}                                           the last message

The end of the channel means that there is no master any more: nobody new is taken then, and the others may finish.
"""

from __future__ import annotations

import gc
import json
import socket
from collections import deque
from itertools import islice
from time import monotonic
from typing import Any, Deque, Dict, Iterator, List, Sequence, Tuple

from .. import settings
from .endpoint import RELAYING
from .event_loop import IN, EventLoop, Handler
from .frontend import Acceptor, Frontend, Limits, Timeouts, WorkerContext
from .servers import Counts, Table
from .session import Session

TICK = 0.1  # seconds between two looks at sessions
LAP = 1.0  # seconds until all of them were looked at, however many there are
AT_LEAST = 1000  # parties that are looked at in a tick
LONGEST = 1 << 16  # bytes of a message
PORTION = 100  # entries of one message with counters
LAST_WORDS = 1.0  # seconds for them to be taken
UNSENT = 1000  # messages that may wait for the master


class Channel(Handler):
    """The connection to the master, which may be slow without slowing anybody here."""

    __slots__ = ("_end", "_unsent", "_worker")

    def __init__(self, end: socket.socket, worker: Worker) -> None:
        self._end, self._worker = end, worker
        self._unsent: Deque[bytes] = deque(maxlen=UNSENT)
        end.setblocking(False)

    def fileno(self) -> int:
        return self._end.fileno()

    def tell(self, message: Any) -> None:
        self._unsent.append(json.dumps(message).encode())
        self.flush()

    def flush(self) -> bool:
        """Send what waits; return whether nothing waits any more."""
        try:
            while self._unsent:
                self._end.send(self._unsent[0])
                self._unsent.popleft()
        except (BlockingIOError, socket.timeout):
            return False
        except OSError:
            self._unsent.clear()  # there is nobody any more, which is found out by receiving
        return True

    def finish(self, message: Any) -> None:
        """Send what is left, and a last message, waiting a little if need be."""
        self._end.settimeout(LAST_WORDS)
        self.tell(message)

    def ready(self, events: int) -> None:
        try:
            message = self._end.recv(LONGEST)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if message:
            self._worker.obey(json.loads(message))
        else:
            self._worker.abandoned()


class Worker:
    """Made in the process that is to be it, or, for tests, in any other."""

    def __init__(
        self, given: settings.Settings, doors: Sequence[Tuple[str, socket.socket]], channel: socket.socket
    ) -> None:
        """
        :param doors: listening sockets, non-blocking, each with the name of its service
        :param channel: our end of a SOCK_SEQPACKET pair
        """
        self.relay = EventLoop()
        self.table = Table(given.services)
        self.channel = Channel(channel, self)
        limits = Limits(given.maxconn, given.workers)
        self.house = WorkerContext(self.relay, limits, Timeouts.of(given.timeouts), self.channel.tell)
        fronts = {each.name: Frontend(each, self.table.pools[each.name], self.house) for each in given.services}
        for name, listener in doors:
            self.house.add(Acceptor(fronts[name], listener))
        self._hard_stop_after = given.hard_stop_after / settings.MILLION
        self._deadline = 0.0  # by when it must be empty; 0: it is not draining
        self._reported: Dict[str, Counts] = {}
        self._next_tick = self._next_report = 0.0
        self._looked = 0  # how many of the parties, in this lap
        self.relay.watch(self.channel.fileno(), self.channel, IN)

    def run(self) -> None:
        """Relay until told to end."""
        # Sessions leave no circles behind, and to look for some among thousands would take its time.
        gc.disable()
        try:
            self.relay.run(self._keep_house)
        finally:
            gc.enable()
        self._report()
        self.channel.finish({"drained": True})
        self.relay.close()

    # -- the master

    def obey(self, message: Any) -> None:
        for key, change in message.get("servers", {}).items():
            server = self.table.change(key, change["state"], change["weight"])
            if server and change.get("shutdown"):
                for session in _sessions(list(self.relay.parties.values())):
                    if session.target is server and session.state == RELAYING:
                        session.reset()
        if "drain" in message:
            self._drain(message["drain"])

    def abandoned(self) -> None:
        self.relay.ignore(self.channel.fileno())
        self._drain(self._hard_stop_after)

    def _drain(self, seconds: float) -> None:
        self.house.leave()
        self._deadline = min(self._deadline or float("inf"), monotonic() + seconds)
        self._next_tick = 0.0

    # -- time

    def _keep_house(self) -> float:
        """Do what is due; return how many seconds the next round may wait."""
        now = monotonic()
        if now >= self._next_tick:
            self._next_tick = now + TICK
            self._tick(now)
        return self._next_tick - now if self.house.current else max(self._next_tick, self._next_report) - now

    def _tick(self, now: float) -> None:
        self._look_round(now)
        self.table.forgive(now)
        self.house.try_again()
        if now >= self._next_report:
            self._next_report = now + LAP
            self._report()
        if self._deadline:
            self._finish(now)

    def _look_round(self, now: float) -> None:
        """Have a part of the sessions look at the time; like the hand of a clock this comes to all of them in a lap.

        Nothing need be done for it when a session begins, ends, or has something to relay.
        """
        parties = self.relay.parties
        portion = max(AT_LEAST, int(len(parties) * TICK / LAP) + 1)
        for session in _sessions(list(islice(parties.values(), self._looked, self._looked + portion))):
            session.look(now)
        self._looked += portion
        if self._looked >= len(parties):
            self._looked = 0

    def _report(self) -> None:
        """Tell what has changed; what the channel has no room for now is told next time."""
        changed = {key: counts for key, counts in self.table.counts() if self._reported.get(key) != counts}
        keys = list(changed)
        for at in range(0, max(1, len(keys)), PORTION):  # even if there is nothing to tell: it is alive
            if not self.channel.flush():
                return
            part = {key: changed[key] for key in keys[at : at + PORTION]}
            self.channel.tell({"counters": part})
            self._reported.update(part)

    def _finish(self, now: float) -> None:
        if now >= self._deadline:
            for session in _sessions(list(self.relay.parties.values())):
                session.reset()
        if not self.house.current:
            self.relay.stop()


def _sessions(parties: List[Handler]) -> Iterator[Session]:
    """Yield the sessions among them, each once."""
    for party in parties:
        session = party.session
        if session is not None and session.client is party:
            yield session
