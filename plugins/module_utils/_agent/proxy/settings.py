# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy's settings: typed, complete, immutable. Times are microseconds.

Names and values are those of the collection's model; meanings and defaults are HAProxy's.
"""

from __future__ import annotations

import socket
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ..checks.settings import GOOD_STATUS, HTTP, HTTPS, MYSQL, PGSQL, PROTOCOLS, SMTP, TCP, Step

WORKER = "proxy-worker"  # the name of its worker processes
MILLION = 1_000_000

ANY, ANY6 = "*", "::"  # every IPv4 address, every IPv6 address

NONE = "none"
MODES = (TCP, HTTP)  # both are relayed as bytes
CHECK_TYPES = (TCP, HTTP, HTTPS, *PROTOCOLS, NONE)
LOGINS = (MYSQL, PGSQL)  # as a user
NAMING = (HTTP, HTTPS, SMTP)  # a host
ASKING = (HTTP, HTTPS, *PROTOCOLS)  # those that a server has to answer
METHODS = ("GET", "HEAD", "OPTIONS")  # a check must change nothing: HTTP's safe ones, RFC 9110, 9.2.1

ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE = "roundrobin", "leastconn", "source"
BALANCES = (ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE)

UP, LATE, DOWN, DRAIN, MAINT = "up", "late", "down", "drain", "maint"
STATES = (UP, LATE, DOWN, DRAIN, MAINT)  # of a server; only an up server gets new connections, or a late one if none is
READY = "ready"  # the order that revokes the others
ADMIN_STATES = (READY, DRAIN, MAINT)

STARTING, SERVING, DRAINING, HUNG = "starting", "serving", "draining", "hung"
WORKER_STATES = (STARTING, SERVING, DRAINING, HUNG)


class Server(NamedTuple):
    """A server of a service."""

    name: str
    address: str
    port: int
    weight: int = 1  # 0 to 256; with 0 no new connections
    backup: bool = False  # used only while no other server is up
    maxconn: int = 0  # sessions at once, further ones are queued; 0: no limit


class Health(NamedTuple):
    """How each server of a service is checked."""

    type: str = TCP
    port: int = 0  # the server's own if 0
    path: str = "/"
    method: str = METHODS[0]
    host: str = ""  # the Host header; the address if empty. smtp: who asks, localhost if empty
    sni: str = ""  # https: the server name; the host if empty
    status: Tuple[str, ...] = GOOD_STATUS  # the successful ones, codes and ranges
    interval: int = 2 * MILLION
    fast_interval: int = 0  # while a server is on its way up or down (fastinter); 0 is the interval
    timeout: int = 2 * MILLION
    late_timeout: int = 0  # for a second check: a server that passes it alone is late and not down; 0: there is none
    late_connect: int = 5 * MILLION  # of which for the connection: the proxy's own limit, ``timeouts.connect``
    rise: int = 2
    fall: int = 3
    user: str = ""  # mysql, pgsql: who logs in
    verify: bool = False  # https: whether to verify the certificate
    ca: str = ""  # https: a file of authorities; the system's if empty
    shutdown_sessions: bool = False  # whether a server that goes down loses its sessions (on-marked-down)
    slow_start: int = 0  # how long a server that comes up takes to reach its weight
    tcp_user_timeout: int = 0  # how long a server may acknowledge nothing until its sessions end; 0: the kernel's time
    steps: Tuple[Step, ...] = ()  # what is checked in sequence, instead of the one port; port 0 is the server's own


class Service(NamedTuple):
    """A port, and the servers behind it."""

    name: str
    bind: Tuple[str, ...]
    port: int
    servers: Tuple[Server, ...]
    mode: str = TCP
    balance: str = ROUND_ROBIN
    health: Health = Health()
    maxconn: int = 0  # sessions at once; 0: only the proxy's own limit counts
    send_proxy: bool = False  # send the client's address to the servers by the PROXY protocol, version 2
    allow: Tuple[str, ...] = ()  # the networks whose clients are served; all if there are none
    route_of: str = ""  # the service whose clients it serves if they name one of the hosts; it listens nowhere itself
    hosts: Tuple[str, ...] = ()


def in_use(servers: Sequence[Any]) -> List[Any]:
    """Return the servers that get new connections: a backup only if no other does, late ones only if none is up.

    :param servers: those of a service with a weight; each has a ``state``, and whether it is a ``backup``
    """
    for state in (UP, LATE):
        found = [server for server in servers if server.state == state]
        if found:
            return [server for server in found if not server.backup] or found[:1]
    return []


def probes(user_timeout: int) -> Tuple[int, int]:
    """Return after how many idle seconds a connection is probed, and the seconds between two probes."""
    return max(1, user_timeout // (2 * MILLION)), max(1, user_timeout // (10 * MILLION))


def keep_alive(user_timeout: int) -> Tuple[Tuple[int, int, int], ...]:
    """Return the options of a socket that ends when its peer acknowledges nothing for that long, data nor probe."""
    if not user_timeout:
        return ()
    idle, interval = probes(user_timeout)
    return (
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, interval),
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, user_timeout // 1000),
    )


class Condition(NamedTuple):
    """The number of servers of a service that must be usable."""

    service: str
    servers: int = 1


class Monitor(NamedTuple):
    """An HTTP listener: status 200 on its path while every named service has its servers, otherwise 503."""

    name: str
    bind: Tuple[str, ...]
    port: int
    path: str = "/"
    at_least: Tuple[Condition, ...] = ()  # none: 200 while the proxy runs


class Timeouts(NamedTuple):
    """How long a session may be idle, as in HAProxy."""

    connect: int = 5 * MILLION  # for each attempt
    client: int = 50 * MILLION  # of an HTTP service, until both sides have sent data
    server: int = 50 * MILLION  # the same
    tunnel: int = 3600 * MILLION  # from then on; of a TCP service, from the connection on
    fin: int = 0  # instead of all of them, once one side has finished; 0: not set
    queue: int = 0  # until a server has a slot; 0: as long as connect


class Page(NamedTuple):
    """Where the status page is served."""

    bind: Tuple[str, ...]
    port: int


class Settings(NamedTuple):
    """All of it."""

    services: Tuple[Service, ...]
    monitors: Tuple[Monitor, ...] = ()
    timeouts: Timeouts = Timeouts()
    maxconn: int = 10_000  # sessions at once, shared by the workers
    retries: int = 3  # of a connection to a server, after the first attempt
    workers: int = 1
    hard_stop_after: int = 1800 * MILLION  # how long sessions of a drained worker may last
    stop_within: int = 8 * MILLION  # the same when the whole proxy stops, which must not take long
    status_socket: str = "/run/onprem-lb-proxy/status.sock"
    page: Optional[Page] = None


class Place(NamedTuple):
    """An address and a port to listen on."""

    address: str  # an IP address, or ANY
    port: int

    def overlaps(self, other: Place) -> bool:
        """Whether the kernel would refuse to bind both."""
        return self.covers(other) or other.covers(self)

    def covers(self, other: Place) -> bool:
        """Whether clients of the other are clients of this one, too."""
        if self.port != other.port or self.family != other.family:
            return False
        return self.address == other.address or self.is_wildcard

    @property
    def is_wildcard(self) -> bool:
        return self.address in (ANY, ANY6)

    @property
    def family(self) -> int:
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    def __str__(self) -> str:
        return f"{self.address} port {self.port}"


def places(addresses: Iterable[str], port: int) -> List[Place]:
    """Return a place for each address."""
    return [Place(address, port) for address in addresses]
