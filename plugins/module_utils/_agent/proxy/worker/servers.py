# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's servers: which may get connections, and their counters, which only ever grow."""

from __future__ import annotations

import socket
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from .. import settings
from .balance import METHODS

Counts = Dict[str, int]

# The kernel may choose a port from here on as the local one, and then a socket that connects to it connects to itself.
# On some systems such ports begin later, never earlier: this only decides whether a connection is tested for it.
EPHEMERAL = 1024 * 10


class Server:
    """A server of a service."""

    __slots__ = (
        "key",
        "name",
        "address",
        "family",
        "may_self_connect",
        "backup",
        "weight",
        "state",
        "backoff_until",
        "current",
        "sessions",
        "bytes_in",
        "bytes_out",
        "connect_errors",
        "retries",
        "resets",
    )

    def __init__(self, service: settings.Service, server: settings.Server) -> None:
        self.key, self.name = f"{service.name}/{server.name}", server.name
        self.address: Tuple[str, int] = (server.address, server.port)
        self.family = socket.AF_INET6 if ":" in server.address else socket.AF_INET
        self.may_self_connect = server.port >= EPHEMERAL
        self.backup, self.weight = server.backup, server.weight
        self.state = settings.UP
        self.backoff_until = 0.0  # after a failed connection; seconds, monotonic; 0: not backed off
        self.current = 0  # sessions, including those that are being connected
        self.sessions = 0  # those that were connected
        self.bytes_in = self.bytes_out = 0  # from clients, to clients
        self.connect_errors = 0
        self.retries = 0  # connections tried again after they had failed here
        self.resets = 0  # sessions that were reset by either side or by the proxy

    def eligible(self) -> bool:
        return self.state == settings.UP and self.weight > 0

    def counts(self) -> Counts:
        return {
            "sessions": self.sessions,
            "current": self.current,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "connect_errors": self.connect_errors,
            "retries": self.retries,
            "resets": self.resets,
        }


class Pool:
    """The servers of one service, and its balancing method."""

    def __init__(self, service: settings.Service) -> None:
        self.name = service.name
        self.servers = [Server(service, each) for each in service.servers]
        self.refused = 0  # connections for which there was no server
        self._method = METHODS[service.balance]()
        self._members: List[Server] = []
        #: choose(client's address) -> the server that gets its connection, None if there is none
        self.choose: Callable[[str], Optional[Server]] = _choose_none
        self.changed()

    def has_another(self) -> bool:
        """Whether a server could be chosen that has not just failed."""
        return any(not server.backoff_until for server in self._members)

    def changed(self) -> None:
        """Call after a change of a state or a weight."""
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

    def counts(self) -> Counts:
        """Return the sums of its servers, and the refused connections."""
        total: Counts = {}
        for server in self.servers:
            for what, count in server.counts().items():
                total[what] = total.get(what, 0) + count
        return {**total, "refused": self.refused}

    def _preferred(self) -> List[Server]:
        """Return the servers to choose from: a backup only if no other is up, a backed-off one only if all are."""
        eligible = [server for server in self.servers if server.eligible()]
        active = [server for server in eligible if not server.backup]
        members = active or eligible[:1]
        return [server for server in members if not server.backoff_until] or members


def _choose_none(_client: str) -> None:
    """Stand in for ``choose`` if there is no server."""


class Table:
    """All pools of a worker."""

    def __init__(self, services: Tuple[settings.Service, ...]) -> None:
        self.pools = {service.name: Pool(service) for service in services}
        self._known = {server.key: (pool, server) for pool in self.pools.values() for server in pool.servers}

    def change(self, key: str, state: str, weight: int) -> Optional[Server]:
        """Apply the master's update of a server; return the server, None if there is none of that name."""
        pool, server = self._known.get(key, (None, None))
        if pool is None or server is None:
            return None
        if (server.state, server.weight) != (state, weight):
            server.state, server.weight = state, weight
            pool.changed()
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
