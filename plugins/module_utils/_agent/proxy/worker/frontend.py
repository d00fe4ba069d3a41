# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where clients come in: the doors of the services, each of which is closed while there is no room behind it.

A closed door is one that nobody looks at: clients wait in the kernel's queue, and it costs nothing that they do.
"""

from __future__ import annotations

import errno
import os
import socket
from socket import SocketType
from time import monotonic
from typing import Any, Callable, List, NamedTuple

from .. import settings
from . import proxy_header, servers
from .event_loop import IN, EventLoop, Handler
from .session import Session

ACCEPTS = 32  # connections from one door in one round
AVOIDED = 1.0  # seconds for which a server is avoided when it could not be reached
STREAM = int(socket.SOCK_STREAM)
LACK = "descriptors"  # the key of this fault in the log

Tell = Callable[[Any], None]


class Timeouts(NamedTuple):
    """Those of the settings, in seconds."""

    connect: float
    client: float
    server: float
    tunnel: float
    fin: float

    @classmethod
    def of(cls, given: settings.Timeouts) -> Timeouts:
        return cls(*(each / settings.MILLION for each in given))


class Limits(NamedTuple):
    """How many sessions there may be at once, of all workers together."""

    maxconn: int
    workers: int

    def share(self, maxconn: int = 0) -> int:
        """Return how many of them one worker may have, of those of a service, or, where it has no limit, of all."""
        return max(1, (maxconn or self.maxconn) // self.workers)


class WorkerContext:
    """What all services of a worker share: the loop, the room, and whom to tell."""

    def __init__(self, relay: EventLoop, limits: Limits, timeouts: Timeouts, tell: Tell) -> None:
        """
        :param tell: sends a message to the master
        """
        self.relay, self.limits, self.timeouts, self.tell = relay, limits, timeouts, tell
        self.limit = limits.share()
        self.current = 0
        self.crowded = False  # whether a door is closed
        self._doors: List[Acceptor] = []
        self._short = False  # of something that the system gives
        self._complained = False

    def add(self, door: Acceptor) -> None:
        self._doors.append(door)
        self.judge()

    def judge(self) -> None:
        """Open the doors that have room behind them, and close the others."""
        self.crowded = False
        for door in self._doors:
            if self._short or self.current >= self.limit or door.front.current >= door.front.limit:
                self.crowded = True
                door.close()
            else:
                door.open()

    def short_of(self, fault: int) -> None:
        """The system gives no more of something. Those who are in stay; new ones are let in when there may be more."""
        self._short = True
        self.relay.pipes.close()  # those that nobody uses now
        self.judge()
        if not self._complained:
            self._complained = True
            self.tell({"fault": [LACK, f"No more connections can be taken: {os.strerror(fault)}."]})

    def try_again(self) -> None:
        """To be called now and then: find out whether there is more of it now."""
        if self._short:
            self._short = False
            self.judge()
        elif self._complained:
            self._complained = False
            self.tell({"cured": [LACK, "Connections are taken again."]})

    def leave(self) -> None:
        """Close all doors for good."""
        for door in self._doors:
            door.last_call()
        for door in self._doors:
            door.close()
            door.listener.close()
        self._doors = []
        self.crowded = False


class Frontend:
    """A service, as its sessions see it."""

    def __init__(self, given: settings.Service, pool: servers.Pool, house: WorkerContext) -> None:
        self.pool, self.house = pool, house
        self.relay, self.timeouts, self.short_of = house.relay, house.timeouts, house.short_of
        self.limit = house.limits.share(given.maxconn)
        self.current = 0
        self.greeting = proxy_header.of if given.send_proxy else proxy_header.none

    def leave(self) -> None:
        """To be called when a session is over."""
        self.current -= 1
        self.house.current -= 1
        if self.house.crowded:
            self.house.judge()

    def failed(self, server: servers.Server, fault: int) -> None:
        """To be called when a server could not be reached."""
        server.connect_errors += 1
        news = self.pool.avoid(server, monotonic() + AVOIDED)
        # To have no port left for connections to it is not the server's fault, but others may still be reached.
        if news and fault != errno.EADDRNOTAVAIL:
            self.house.tell({"failed": server.key, "why": os.strerror(fault)})


class Acceptor(Handler):
    """A listening socket."""

    __slots__ = ("front", "listener", "_accept", "_family", "_open")

    def __init__(self, front: Frontend, listener: socket.socket) -> None:
        self.front, self.listener = front, listener
        # The C type's own: of a connection, socket.accept() first makes something more comfortable, which takes time.
        self._accept, self._family = listener._accept, int(listener.family)  # type: ignore[attr-defined]
        self._open = False

    def open(self) -> None:
        if not self._open:
            self._open = True
            # Not EPOLLEXCLUSIVE: if only one of several workers were woken up, and that one were about to close its
            # door, as the old ones do at a reload, then nobody would take the client until the next one comes.
            self.front.relay.watch(self.listener.fileno(), self, IN)

    def last_call(self) -> None:
        """Take those who wait: if this is the last process with this socket, its end would reset them."""
        if self._open:
            self.ready(IN)

    def close(self) -> None:
        if self._open:
            self._open = False
            self.front.relay.ignore(self.listener.fileno())

    def ready(self, events: int) -> None:
        front, house = self.front, self.front.house
        for _each in range(ACCEPTS):
            try:
                descriptor, address = self._accept()
                connection = SocketType(self._family, STREAM, 0, descriptor)
                connection.setblocking(False)
            except OSError as fault:
                self._nobody(fault)
                return
            front.current += 1
            house.current += 1
            if front.current >= front.limit or house.current >= house.limit:
                house.judge()
            Session(front, connection, address[0]).begin()
            if not self._open:
                return

    def _nobody(self, fault: OSError) -> None:
        """Nobody else is there, or has gone meanwhile; anything else will not be better at once."""
        if not isinstance(fault, (BlockingIOError, ConnectionAbortedError)):
            self.front.short_of(fault.errno or errno.EIO)
