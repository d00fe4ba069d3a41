# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A session: a client, its server, and two directions of bytes between them, see ``endpoint``.

    greeting --no ClientHello in time--> over, and the client is reset
      |
      |   the client has named a server, or its service has no routes
      v
    queued --for too long--> over, and the client is reset
      |
      |   a server has a slot for it: at once, unless all are at their maxconn
      v
    connecting --the server answers--> relaying --both ways are shut--> over, and both sides are closed
      |   ^                               |
      |   another server, or the          +--a reset, or nothing for too long--> over, and both sides are reset
      |   same one a little later
      v   |
    waiting --tried too often, or no server is up--> over, and the client is reset

A session that ends early ends with RST: a FIN would tell the other side that it has received everything.
"""

from __future__ import annotations

import errno
import socket
import struct
from socket import SocketType
from time import monotonic
from typing import Any

from .client_hello import ClientHello, NotTls
from .endpoint import CONNECTING, GREETING, OVER, QUEUED, RELAYING, WAITING, Endpoint
from .event_loop import BOTH_WAYS, ERR, HUP, INWARDS, OUT, EventLoop, Handler

BROKEN = ERR | HUP
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST
STREAM = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
IPPROTO_TCP, TCP_NODELAY, TCP_QUICKACK = socket.IPPROTO_TCP, socket.TCP_NODELAY, socket.TCP_QUICKACK
IN_PROGRESS = (errno.EINPROGRESS, 0)
LOCAL_FAILURES = (
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.ENOSPC,
)  # of this host, not of a server
FIRST_READ = 1 << 12  # bytes read from a client before it has a server: a request, or TLS's hello
HELLO_TIMEOUT = 5.0  # seconds for a ClientHello, all of it; the role haproxy has the same
SPLICE_BELOW = 1 << 18  # bytes between two checks; below this a pipe is not worthwhile
CLIENT_SENT, SERVER_SENT, BOTH_SENT = 1, 2, 3


class Session(Handler):
    """A client's connection, from its acceptance to its end."""

    __slots__ = (
        "frontend",
        "loop",
        "address",
        "client",
        "server",
        "target",
        "occupies",
        "queue",
        "state",
        "since",
        "attempts",
        "has_sent",
        "hello",
    )

    def __init__(self, frontend: Any, connection: SocketType, address: str) -> None:
        """
        :param frontend: see ``frontend``
        :param connection: the client's, non-blocking
        """
        self.frontend, self.address = frontend, address
        self.loop: EventLoop = frontend.loop
        self.client: Any = Endpoint(self, connection)
        self.server: Any = None
        self.target: Any = None  # the latest servers.Server that was chosen
        self.occupies = False  # whether it has a slot there
        self.queue: Any = None  # the queue.Queue in which it waits for one
        self.state = WAITING
        self.since = 0.0  # when it entered its state, or last made progress; seconds, monotonic
        self.attempts = 0  # failed ones
        self.has_sent = 0  # which sides have sent anything
        self.hello: Any = None  # while it waits for a ClientHello
        # After the first read nothing is read from the client until there is a server: the rest waits in the kernel.
        self.loop.handlers[self.client.descriptor] = self.client

    # -- until it is connected

    def begin(self) -> None:
        """Read what the client has sent already, which the server will get first, and connect."""
        client = self.client
        if self.frontend.routes:
            self._begin_greeting()
            return
        try:
            client.pending = client.receive(FIRST_READ)
        except BlockingIOError:
            pass
        except OSError:
            self.reset()
            return
        client.count = len(client.pending)
        self.connect()

    def _begin_greeting(self) -> None:
        self.state, self.since, self.hello = GREETING, monotonic(), ClientHello()
        try:
            self.loop.watch(self.client.descriptor, self.client, INWARDS)
        except OSError:  # the kernel has no room
            self.reset()
            return
        self.greet()

    def greet(self) -> None:
        """Read until the client has named the server that it wants; what it sends after that waits in the kernel."""
        hello, name = self.hello, None
        try:
            while name is None:
                data = self.client.receive(min(FIRST_READ, hello.room))
                if not data:
                    raise NotTls
                name = hello.add(data)
        except BlockingIOError:
            return
        except (OSError, NotTls):
            self._refuse()
            return
        self.loop.ignore_errors(self.client.descriptor)
        self.frontend, self.hello = self.frontend.route(name), None
        self.client.pending = bytes(hello.received)
        self.client.count = len(self.client.pending)
        self.connect()

    def connect(self) -> None:
        """Connect to the server that the balancing method chooses, or wait for a slot."""
        self._go_to(self.frontend.pool.choose(self.address))

    def connect_to(self, target: Any) -> None:
        """Connect to a server that has a slot."""
        if self.queue is not None:
            self._leave_queue()
        self.target, self.occupies = target, True
        self.frontend.pool.occupy(target)
        self._attempt()

    def choose_again(self) -> None:
        """Do not wait for a server any more that is not available."""
        self._leave_queue()
        self.connect()

    def _go_to(self, target: Any) -> None:
        pool = self.frontend.pool
        queue = pool.queue_for(target)
        if queue is None:
            self.connect_to(target)
        elif pool.up:
            self.queue, self.state, self.since = queue, QUEUED, monotonic()
            queue.add(self)
            self.loop.watch_errors(self.client.descriptor)
        else:
            self._refuse()

    def _leave_queue(self) -> None:
        """Call when it is not in the queue any more."""
        self.queue, self.state = None, WAITING
        self.loop.ignore_errors(self.client.descriptor)

    def _attempt(self) -> None:
        target = self.target
        self.state, self.since = CONNECTING, monotonic()
        self.frontend.connecting[self] = None
        try:
            connection = SocketType(target.family, STREAM, 0)
            self.server = Endpoint(self, connection)
            connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            for option in target.options:
                connection.setsockopt(*option)
            if self.client.pending:
                # Then the first data complete the handshake: one packet less, and the server wakes up only once.
                connection.setsockopt(IPPROTO_TCP, TCP_QUICKACK, 0)
            fault = connection.connect_ex(target.address)
            self.loop.watch(self.server.descriptor, self, BOTH_WAYS)
        except OSError as raised:
            fault = raised.errno or errno.EIO
        if fault not in IN_PROGRESS:
            self._failed(fault)

    def ready(self, events: int) -> None:
        """Called when the connection is established or has failed."""
        if events & BROKEN:
            self._failed(self.server.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or errno.ECONNRESET)
        elif events & OUT:
            self._connected(events)

    def _connected(self, events: int) -> None:
        client, server, target = self.client, self.server, self.target
        if target.may_self_connect and _is_its_own_peer(server.socket):
            self._failed(errno.ECONNREFUSED)
            return
        del self.frontend.connecting[self]
        self.state, self.since = RELAYING, monotonic()
        target.sessions += 1
        client.other, server.other, server.watches_out = server, client, True
        self.loop.handlers[server.descriptor] = server
        try:
            early, client.pending = self.frontend.header(client.socket) + client.pending, b""
            if early:
                client.pass_on(early)
            if self.state == RELAYING:
                self.loop.watch(client.descriptor, client, INWARDS)  # which also reports what has arrived meanwhile
        except OSError:  # the client has gone, or the kernel has no room
            self.reset()
        if events & ~OUT and self.state == RELAYING:
            server.ready(events)

    def _failed(self, fault: int) -> None:
        """The server could not be reached: try another one at once, or the same one after a delay."""
        target, frontend = self.target, self.frontend
        self.state, self.since = WAITING, monotonic()
        frontend.connecting.pop(self, None)
        if self.server:
            self.loop.close_later(self.server)
            self.server = None
        if fault in LOCAL_FAILURES:
            frontend.out_of_resources(fault)
        else:
            frontend.failed(target, fault)
        if self.attempts == frontend.retries:
            self._refuse()
            return
        self.attempts += 1
        target.retries += 1
        if self.attempts == frontend.retries:  # HAProxy's option redispatch: the last retry is like a new session's
            self._vacate()
        # As in HAProxy, only a server that has failed at once needs a pause.
        if fault == errno.ETIMEDOUT or (fault not in LOCAL_FAILURES and frontend.pool.has_another()):
            self._retry()

    def _retry(self) -> None:
        """Try another server. If there is none, try the same one, in the slot that the session has kept.

        As in HAProxy, that one may be down: it may be back before the checks have found that.
        """
        pool, before = self.frontend.pool, self.target
        target = pool.choose(self.address)
        if self.occupies and target in (None, before):
            self._attempt()
        elif not pool.up:
            self.connect_to(before)
        else:
            self._vacate()
            self._go_to(target)

    def _vacate(self) -> None:
        """Give the slot up, if it has one."""
        if self.occupies:
            self.occupies = False
            self.frontend.pool.vacate(self.target)

    def _refuse(self) -> None:
        self.frontend.pool.refused += 1
        self.reset()

    # -- while it is relaying

    def enable_fast_path(self) -> None:
        """Let the loop move the bytes, if both directions are free and not spliced."""
        client, server = self.client, self.server
        if self.state == RELAYING and not (client.pending or server.pending or client.pipe or server.pipe):
            client.forward, server.forward = server.socket.send, client.socket.send

    def disable_fast_path(self) -> None:
        """Let the endpoints handle each event."""
        if self.state == RELAYING:
            self.client.forward = self.server.forward = None

    # -- time

    def check_timeouts(self, now: float) -> None:
        """Apply the time-outs to what has happened since the last check."""
        if self.state == RELAYING:
            self._account(now)
        quiet = now - self.since
        if quiet >= self._timeout():
            self.timed_out()

    def timed_out(self) -> None:
        """It has been in its state for too long."""
        if self.state == WAITING:
            self._retry()
        elif self.state == CONNECTING:
            self._failed(errno.ETIMEDOUT)
        elif self.state in (GREETING, QUEUED):
            self._refuse()
        else:
            self.reset()

    def _account(self, now: float) -> None:
        """Add up what the endpoints have counted."""
        client, server, target = self.client, self.server, self.target
        if client.count:
            self.has_sent |= CLIENT_SENT
            target.bytes_in += client.count
        if server.count:
            self.has_sent |= SERVER_SENT
            target.bytes_out += server.count
        for end in (client, server):
            if end.count or end.held() and end.progressed():
                self.since = now
            if end.large_reads and end.count < SPLICE_BELOW:
                end.release_pipe()
            end.count = 0

    def _timeout(self) -> float:
        """Return how long it may be idle now, in seconds."""
        timeouts = self.frontend.timeouts
        if self.state != RELAYING:
            waits = {QUEUED: timeouts.queue, CONNECTING: timeouts.connect, WAITING: timeouts.retry}
            return HELLO_TIMEOUT if self.state == GREETING else waits[self.state]
        if timeouts.fin and (self.client.shut or self.server.shut):
            return timeouts.fin
        return timeouts.tunnel if self.has_sent == BOTH_SENT else timeouts.exchange

    # -- the end

    def reset(self) -> None:
        """Reset both connections."""
        if self.state == OVER:
            return
        if self.state == RELAYING:
            self.target.resets += 1
        for end in (self.client, self.server):
            if end:
                end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.finish()

    def finish(self) -> None:
        """Close both connections. The kernel still delivers what it has accepted."""
        client, server, target = self.client, self.server, self.target
        if self.state == RELAYING:
            target.bytes_in += client.count
            target.bytes_out += server.count
        if self.state == QUEUED:
            self.queue.remove(self)
        self.frontend.connecting.pop(self, None)
        self.state = OVER
        if server:
            self.loop.close_later(client, server)
        else:
            self.loop.close_later(client)
        # Leave no reference cycle, which only the garbage collector could free.
        self.client = self.server = client.other = None
        self._vacate()
        self.frontend.session_over()


def _is_its_own_peer(connection: SocketType) -> bool:
    """Whether the kernel has chosen the server's port as the local one, so that the socket is connected to itself."""
    try:
        return connection.getsockname() == connection.getpeername()
    except OSError:  # it has been reset meanwhile, which its next event reports
        return False
