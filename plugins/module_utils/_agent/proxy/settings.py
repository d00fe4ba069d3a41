# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the proxy is told to do: typed, complete, immutable. Times are microseconds.

Values and names are those of the collection's model, meaning and defaults are HAProxy's.
"""

from __future__ import annotations

import socket
from typing import Iterable, List, NamedTuple, Optional, Tuple

WORKER = "proxy-worker"  # what its workers are called among processes
MILLION = 1_000_000

ANY, ANY6 = "*", "::"  # every IPv4 address, every IPv6 address

TCP, HTTP, HTTPS, NONE = "tcp", "http", "https", "none"
MODES = (TCP, HTTP)  # both are relayed as bytes
CHECK_TYPES = (TCP, HTTP, HTTPS, NONE)

ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE = "roundrobin", "leastconn", "source"
BALANCES = (ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE)

UP, DOWN, DRAIN, MAINT = "up", "down", "drain", "maint"
STATES = (UP, DOWN, DRAIN, MAINT)  # of a server; only the first one gets anything new


class Server(NamedTuple):
    """Where the connections of a service may go."""

    name: str
    address: str
    port: int
    weight: int = 1  # 0 to 256; 0 gets nothing new
    backup: bool = False  # gets something only while no other is up


class Health(NamedTuple):
    """How each server of a service is checked."""

    type: str = TCP
    port: int = 0  # the server's own where 0
    path: str = "/"
    host: str = ""  # the Host header and the server name; the address where empty
    status: Tuple[int, int] = (200, 399)  # the lowest and the highest that are a success
    interval: int = 2 * MILLION
    fast_interval: int = 0  # while a server is on its way up or down (fastinter); 0 is the interval
    timeout: int = 2 * MILLION
    rise: int = 2
    fall: int = 3
    verify: bool = False  # https: whether the certificate must be good
    ca: str = ""  # https: a file of authorities; the system's where empty
    shutdown_sessions: bool = False  # whether a server that goes down loses its sessions (on-marked-down)
    slow_start: int = 0  # how long a server that comes up takes to reach its weight


class Service(NamedTuple):
    """A port, and who serves it."""

    name: str
    bind: Tuple[str, ...]
    port: int
    servers: Tuple[Server, ...]
    mode: str = TCP
    balance: str = ROUND_ROBIN
    health: Health = Health()
    maxconn: int = 0  # sessions at once; 0: only the proxy's own limit counts
    send_proxy: bool = False  # tell the servers who the client is, by the PROXY protocol, version 2


class Wanted(NamedTuple):
    """How many servers of a service must be up."""

    service: str
    servers: int = 1


class Monitor(NamedTuple):
    """An HTTP listener: status 200 on its path while every named service has its servers, otherwise 503."""

    name: str
    bind: Tuple[str, ...]
    port: int
    path: str = "/"
    at_least: Tuple[Wanted, ...] = ()  # none: 200 while the proxy runs


class Timeouts(NamedTuple):
    """How long nothing may happen until a session is given up."""

    connect: int = 5 * MILLION  # for each attempt
    client: int = 50 * MILLION
    server: int = 50 * MILLION
    tunnel: int = 3600 * MILLION  # instead of the two above, once both sides have spoken
    fin: int = 10 * MILLION  # instead of all of them, once one side has said that it is done


class Page(NamedTuple):
    """Where a browser finds what the proxy does."""

    bind: Tuple[str, ...]
    port: int


class Settings(NamedTuple):
    """All of it."""

    services: Tuple[Service, ...]
    monitors: Tuple[Monitor, ...] = ()
    timeouts: Timeouts = Timeouts()
    maxconn: int = 10_000  # sessions at once, shared by the workers
    workers: int = 1
    hard_stop_after: int = 1800 * MILLION  # how long sessions may outlive the end of their worker's service
    stop_within: int = 8 * MILLION  # the same, where the whole proxy ends: somebody waits for that
    status_socket: str = "/run/onprem-lb-proxy/status.sock"
    page: Optional[Page] = None


class Place(NamedTuple):
    """Where a socket listens."""

    address: str  # an IP address, or ANY
    port: int

    def overlaps(self, other: Place) -> bool:
        """Whether the kernel would refuse both at once."""
        if self.port != other.port or self.family != other.family:
            return False
        return self.address == other.address or bool({self.address, other.address} & {ANY, ANY6})

    @property
    def family(self) -> int:
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    def __str__(self) -> str:
        return f"{self.address} port {self.port}"


def places(addresses: Iterable[str], port: int) -> List[Place]:
    """Return where somebody listens who has several addresses."""
    return [Place(address, port) for address in addresses]
