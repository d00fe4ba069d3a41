# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings of the direct plane: typed, complete, immutable. Times are microseconds."""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

from ..proxy import settings as proxy
from .buckets import FEWEST, Server

MILLION = 1_000_000
SERVERS, HOST = "servers", "host"
STATUS_SOCKET = "/run/onprem-lb-direct/status.sock"
LEAST_MEMORY, PER_BUCKET = 256, 1.5  # MiB of a plane, and KiB for each bucket: 0.75 of nft, as measured, and its own


class Service(NamedTuple):
    """A service of VIPs, and how many buckets its connections have."""

    balanced: proxy.Service  # as the proxy would serve it; it listens at the VIPs
    buckets: int = FEWEST
    proxy_port: int = 0  # of this host, to which a redirect leads the connections that its proxy serves; 0 without one
    new_connections: str = SERVERS  # who gets them; HOST for this host's own programs

    @property
    def servers(self) -> List[Server]:
        """The servers as the table of each of them has them: none drains there."""
        return [Server(server.address, max(1, server.weight)) for server in self.balanced.servers]


class Settings(NamedTuple):
    """All of it."""

    interface: str  # to which clients send, and on whose link the servers are
    services: Tuple[Service, ...]
    down_file: str = "/run/onprem-lb-direct.down"  # what a VRRP router tracks: 0 while the table is there, otherwise 1
    stop_pause: int = MILLION  # from the 1 in the down_file to the removal of the table
    nft: str = "/usr/sbin/nft"
    status_socket: str = STATUS_SOCKET


def memory(count: int) -> int:
    """Return how many MiB a plane with so many buckets in all may need, in steps, so that it seldom changes."""
    needed = LEAST_MEMORY
    while needed < LEAST_MEMORY // 2 + count * PER_BUCKET / 1024:
        needed *= 2
    return needed
