# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Accepts client connections. A listener is paused while its frontend is at its connection limit.

A paused listener is not watched: clients wait in the kernel's queue, at no cost.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from socket import SocketType
from time import monotonic
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from .. import names, settings
from . import proxy_header, servers
from .event_loop import IN, EventLoop, Handler
from .session import Session

ACCEPT_BATCH = 32  # connections from one listener in one round
BACKOFF = 1.0  # seconds for which a server that could not be reached gets no connections
ATTEMPT_TICK = 0.1  # seconds, at most, until a new attempt to connect is known to the timer
RETRY_DELAY = settings.MILLION  # before a server that has just failed is tried again, at most; as in HAProxy
STREAM = int(socket.SOCK_STREAM)
RESOURCES = "descriptors"  # the key of this fault in the log

Send = Callable[[Any], None]


class Timeouts(NamedTuple):
    """How long a session of a service may wait or be idle, in seconds."""

    queue: float  # until a server has a slot
    connect: float  # until a server accepts
    retry: float  # after a failed connection, until the same server is tried again
    exchange: float  # until both sides have sent data
    tunnel: float  # from then on
    fin: float  # once one side has finished; 0: no limit of its own

    @classmethod
    def of(cls, given: settings.Timeouts, mode: str) -> Timeouts:
        """As in HAProxy, a TCP session is a tunnel from the connection on, and an HTTP session is one later."""
        exchange = given.tunnel if mode == settings.TCP else min(given.client, given.server)
        queue, retry = given.queue or given.connect, min(RETRY_DELAY, given.connect)
        found = (queue, given.connect, retry, exchange, given.tunnel, given.fin)
        return cls(*(each / settings.MILLION for each in found))


class Limits(NamedTuple):
    """Limits of concurrent sessions, for all workers together."""

    maxconn: int
    workers: int
    number: int = 0  # of this worker; each has another one

    def share(self, maxconn: int = 0) -> int:
        """Return this worker's share of a service's limit, or of the whole one if the service has none.

        The shares add up to the limit: the first workers get one more, and a worker may get none.
        """
        each, rest = divmod(maxconn or self.maxconn, self.workers)
        return each + (self.number < rest)


class WorkerContext:
    """What all services of a worker share: the event loop, the limits, and the channel to the master."""

    def __init__(self, loop: EventLoop, limits: Limits, timeouts: settings.Timeouts, retries: int, send: Send) -> None:
        """
        :param retries: of a connection to a server, after the first attempt
        :param send: sends a message to the master
        """
        self.loop, self.limits, self.timeouts, self.retries, self.send = loop, limits, timeouts, retries, send
        self.limit = limits.share()
        self.current = 0
        self.at_limit = False  # whether an acceptor is paused
        #: the sessions that are connecting, those that began first at the front
        self.connecting: Dict[Session, None] = {}
        self._connect = timeouts.connect / settings.MILLION
        self._acceptors: List[Acceptor] = []
        self._out_of_resources = False  # whether the system has run out of descriptors or memory
        self._reported = False

    def add(self, acceptor: Acceptor) -> None:
        self._acceptors.append(acceptor)
        self.apply_limits()

    def apply_limits(self) -> None:
        """Pause the acceptors whose frontend or worker is at its limit, and resume the others."""
        self.at_limit = False
        for acceptor in self._acceptors:
            frontend = acceptor.frontend
            if self._out_of_resources or self.current >= self.limit or frontend.current >= frontend.limit:
                self.at_limit = True
                acceptor.close()
            else:
                acceptor.open()

    def out_of_resources(self, fault: int) -> None:
        """The system has run out of a resource. Sessions go on; accepting is tried again later."""
        self._out_of_resources = True
        self.loop.pipes.close()  # the unused ones
        self.apply_limits()
        if not self._reported:
            self._reported = True
            self.send({"fault": [RESOURCES, f"No more connections can be taken: {os.strerror(fault)}."]})

    def end_attempts(self, now: float) -> float:
        """End the attempts to connect that have taken too long; return when the next ones will have.

        The other time-outs are checked once a second: this one is what a client waits for when a server is lost.
        """
        while self.connecting:
            session = next(iter(self.connecting))
            due = session.since + self._connect
            if due > now:
                return due
            session.timed_out()
        return now + min(ATTEMPT_TICK, self._connect)

    def try_again(self) -> None:
        """Call periodically: find out whether the resource is available again."""
        if self._out_of_resources:
            self._out_of_resources = False
            self.apply_limits()
        elif self._reported:
            self._reported = False
            self.send({"cured": [RESOURCES, "Connections are taken again."]})

    def stop_accepting(self) -> None:
        """Close all listeners."""
        for acceptor in self._acceptors:
            acceptor.accept_pending()
        for acceptor in self._acceptors:
            acceptor.close()
            acceptor.listener.close()
        self._acceptors = []
        self.at_limit = False


class Frontend:
    """The frontend of a service: its sessions' view of it."""

    def __init__(self, service: settings.Service, pool: servers.Pool, context: WorkerContext) -> None:
        self.pool, self.context = pool, context
        self.loop, self.out_of_resources = context.loop, context.out_of_resources
        self.connecting = context.connecting
        self.timeouts, self.retries = Timeouts.of(context.timeouts, service.mode), context.retries
        self.limit = context.limits.share(service.maxconn)
        self.current = 0
        self.header = proxy_header.of if service.send_proxy else proxy_header.none
        self.routes: List[Tuple[Tuple[str, ...], Frontend]] = []
        self._listening = self  # of a route: that of its service
        self._allowed = [ipaddress.ip_network(each) for each in service.allow]

    def add_route(self, hosts: Tuple[str, ...], route: Frontend) -> None:
        """Let clients that name one of these hosts have a route's servers; the session stays one of this service."""
        self.routes.append((hosts, route))
        route._listening = self

    def route(self, name: str) -> Frontend:
        """Return the first route for a name, itself if there is none."""
        for hosts, route in self.routes:
            if any(names.covers(host, name) for host in hosts):
                return route
        return self

    def admits(self, client: str) -> bool:
        """Return whether a client's address is in one of the service's networks."""
        if not self._allowed:
            return True
        address = ipaddress.ip_address(client.partition("%")[0])
        return any(address in network for network in self._allowed)

    def session_over(self) -> None:
        """Call when a session is over."""
        self._listening.current -= 1
        self.context.current -= 1
        if self.context.at_limit:
            self.context.apply_limits()

    def failed(self, server: servers.Server, fault: int) -> None:
        """Call when a server could not be reached."""
        server.connect_errors += 1
        is_new = self.pool.back_off(server, monotonic() + BACKOFF)
        # A lack of local ports is not the server's fault, but other servers may still be reached.
        if is_new and fault != errno.EADDRNOTAVAIL:
            self.context.send({"failed": server.key})


class Acceptor(Handler):
    """A listening socket."""

    __slots__ = ("frontend", "listener", "_accept", "_family", "_open")

    def __init__(self, frontend: Frontend, listener: socket.socket) -> None:
        self.frontend, self.listener = frontend, listener
        # The C type's method: socket.accept() wraps the result in a Python object, which takes time.
        self._accept, self._family = listener._accept, int(listener.family)  # type: ignore[attr-defined]
        self._open = False

    def open(self) -> None:
        if not self._open:
            self._open = True
            # Not EPOLLEXCLUSIVE: it wakes up only one of several workers. If that one is about to close its acceptor,
            # as old workers do at a reload, no worker would accept the client until the next one arrives.
            self.frontend.loop.watch(self.listener.fileno(), self, IN)

    def accept_pending(self) -> None:
        """Accept all waiting clients: if this is the last process with the socket, closing it would reset them."""
        while self._open and self._accept_batch():
            pass

    def close(self) -> None:
        if self._open:
            self._open = False
            self.frontend.loop.ignore(self.listener.fileno())

    def ready(self, events: int) -> None:
        self._accept_batch()

    def _accept_batch(self) -> bool:
        """Accept clients; return whether more may be waiting."""
        frontend, context = self.frontend, self.frontend.context
        for _each in range(ACCEPT_BATCH):
            try:
                descriptor, address = self._accept()
                connection = SocketType(self._family, STREAM, 0, descriptor)
                connection.setblocking(False)
            except OSError as fault:
                self._accept_failed(fault)
                return False
            if not frontend.admits(address[0]):
                connection.close()
                continue
            frontend.current += 1
            context.current += 1
            if frontend.current >= frontend.limit or context.current >= context.limit:
                context.apply_limits()
            Session(frontend, connection, address[0]).begin()
            if not self._open:
                return False
        return True

    def _accept_failed(self, fault: OSError) -> None:
        """Ignore an empty queue and a client that has gone; any other error means a lack of resources."""
        if not isinstance(fault, (BlockingIOError, ConnectionAbortedError)):
            self.frontend.out_of_resources(fault.errno or errno.EIO)
