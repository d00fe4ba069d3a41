# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's servers: which may get connections, and their counters, which only ever grow."""

from __future__ import annotations

import socket
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from .. import settings
from .balance import METHODS
from .queue import Queue

Counts = Dict[str, int]
Share = Callable[[int], int]  # returns how much of a limit is for this worker

# The kernel may choose a port from here on as the local one, and then a socket that connects to it connects to itself.
# On some systems such ports begin later, never earlier: this only decides whether a connection is tested for it.
EPHEMERAL = 1024 * 10


class Server:
    """A server of a service. A session occupies a slot from its first attempt to connect to its end."""

    __slots__ = (
        "key",
        "name",
        "address",
        "family",
        "may_self_connect",
        "options",
        "backup",
        "maxconn",
        "full_weight",
        "weight",
        "state",
        "backoff_until",
        "slots",
        "queue",
        "current",
        "sessions",
        "bytes_in",
        "bytes_out",
        "connect_errors",
        "retries",
        "resets",
    )

    def __init__(self, service: settings.Service, server: settings.Server, share: Share) -> None:
        self.key, self.name = f"{service.name}/{server.name}", server.name
        self.address: Tuple[str, int] = (server.address, server.port)
        self.family = socket.AF_INET6 if ":" in server.address else socket.AF_INET
        self.may_self_connect = server.port >= EPHEMERAL
        self.options = settings.keep_alive(service.health.tcp_user_timeout)  # of the sockets that connect to it
        self.backup, self.full_weight = server.backup, server.weight
        self.weight: float = server.weight  # a part of the full one during a slow start
        self.maxconn = share(server.maxconn) if server.maxconn else 0
        self.state = settings.UP
        self.backoff_until = 0.0  # after a failed connection; seconds, monotonic; 0: not backed off
        self.slots = self.maxconn  # 0: no limit
        self.queue = Queue()  # of sessions that want this server and no other
        self.current = 0  # sessions, including those that are being connected
        self.sessions = 0  # those that were connected
        self.bytes_in = self.bytes_out = 0  # from clients, to clients
        self.connect_errors = 0
        self.retries = 0  # connections tried again after they had failed here
        self.resets = 0  # sessions that were reset by either side or by the proxy

    def eligible(self) -> bool:
        return self.state == settings.UP and self.weight > 0

    def full(self) -> bool:
        """Whether all of its slots are occupied."""
        return 0 < self.slots <= self.current

    def change(self, state: str, weight: float) -> bool:
        """Set the state and the weight; return whether that changes anything."""
        if (self.state, self.weight) == (state, weight):
            return False
        self.state, self.weight = state, weight
        if self.maxconn and weight:  # during a slow start the slots grow with the weight
            self.slots = max(1, int(self.maxconn * weight / self.full_weight))
        return True

    def counts(self) -> Counts:
        return {
            "sessions": self.sessions,
            "current": self.current,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "connect_errors": self.connect_errors,
            "retries": self.retries,
            "resets": self.resets,
            **self.queue.counts(),
        }


class Pool:
    """The servers of one service, its balancing method, and the sessions that wait for a slot.

    As in HAProxy, a session waits for any server, unless the method binds it to one: then it waits for that one.
    """

    def __init__(self, service: settings.Service, share: Share) -> None:
        self.name = service.name
        self.servers = [Server(service, each, share) for each in service.servers]
        self.refused = 0  # connections for which there was no server
        self.queue = Queue()  # of sessions that take any server
        self.up = False  # whether any server may get connections, now or once a slot is free
        self._binds = service.balance == settings.SOURCE
        self._method = METHODS[service.balance]()
        self._in_use: List[Server] = []
        self._members: List[Server] = []  # to choose from
        self._admitting = False
        #: choose(client's address) -> the server that gets its connection, None if there is none
        self.choose: Callable[[str], Optional[Server]] = _choose_none
        self.changed()

    def has_another(self) -> bool:
        """Whether a server could be chosen that has not just failed."""
        return any(not server.backoff_until for server in self._members)

    def changed(self) -> None:
        """Call after a change of a state or a weight, or of whether a server is full."""
        self._members = self._preferred()
        self._method.change(self._members)
        self.choose = self._method.choose if self._members else _choose_none

    def back_off(self, server: Server, until: float) -> bool:
        """Give a server no connections for a while, if there are others. Return whether this is new."""
        is_new = not server.backoff_until
        server.backoff_until = until
        if is_new:
            self.changed()
        return is_new

    def restore(self, now: float) -> None:
        """Restore the servers whose back-off is over."""
        over = [server for server in self.servers if 0 < server.backoff_until <= now]
        for server in over:
            server.backoff_until = 0.0
        if over:
            self.changed()
            self.admit()

    # -- slots

    def occupy(self, server: Server) -> None:
        server.current += 1
        if server.current == server.slots:
            self.changed()

    def vacate(self, server: Server) -> None:
        server.current -= 1
        if server.slots:
            if server.current == server.slots - 1:
                self.changed()
            self.admit()

    def queue_for(self, server: Optional[Server]) -> Optional[Queue]:
        """Return where a new session waits, None if it can have this server now; None: no server was chosen."""
        if self.queue or server is None:
            return self.queue
        return server.queue if server.queue or server.full() else None

    def admit(self) -> None:
        """Connect the waiting sessions for which there are slots, the oldest first.

        A connection may fail at once and vacate its slot, which ends here again: the loop under way goes on with it.
        """
        if self._admitting:
            return
        self._admitting = True
        while self.queue and self._members:
            session = self.queue.popleft()
            session.connect_to(self.choose(session.address))
        for server in self.servers:
            while server.queue and server in self._members and not server.full():
                server.queue.popleft().connect_to(server)
        self._admitting = False

    def redistribute(self) -> None:
        """Let the sessions that wait for a server that is not available any more choose another one."""
        for server in self.servers:
            while server.queue and not server.eligible() and server not in self._in_use:
                server.queue.popleft().choose_again()

    def counts(self) -> Counts:
        """Return the sums of its servers, the refused connections, and those that wait for any server."""
        total: Counts = {}
        for server in self.servers:
            for what, count in server.counts().items():
                total[what] = total.get(what, 0) + count
        return {**total, "refused": self.refused, **self.queue.counts()}

    def _preferred(self) -> List[Server]:
        """Return the servers to choose from: of those in use a backed-off one only if all are.

        A full server is left out, unless the method binds sessions to it.
        """
        members = self._in_use = settings.in_use([server for server in self.servers if server.weight > 0])
        self.up = bool(members)
        if not self._binds:
            members = [server for server in members if not server.full()]
        return [server for server in members if not server.backoff_until] or members


def _choose_none(_client: str) -> None:
    """Stand in for ``choose`` if there is no server."""


class Table:
    """All pools of a worker."""

    def __init__(self, services: Tuple[settings.Service, ...], share: Share) -> None:
        self.pools = {service.name: Pool(service, share) for service in services}
        self._known = {server.key: (pool, server) for pool in self.pools.values() for server in pool.servers}

    def change(self, key: str, state: str, weight: float) -> Optional[Server]:
        """Apply the master's update of a server; return the server, None if there is none of that name."""
        pool, server = self._known.get(key, (None, None))
        if pool is None or server is None:
            return None
        if server.change(state, weight):
            pool.changed()
            pool.redistribute()
            pool.admit()
        return server

    def restore(self, now: float) -> None:
        for pool in self.pools.values():
            pool.restore(now)

    def counts(self) -> Iterator[Tuple[str, Counts]]:
        """Yield SERVICE and SERVICE/SERVER with their counters."""
        for pool in self.pools.values():
            yield pool.name, pool.counts()
            for server in pool.servers:
                yield server.key, server.counts()
