# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections that are open from the beginning of a probe to its end, and silent: how many does a failure end?

The kernel asks the other side every second whether it still has the connection (TCP keepalive, RFC 9293, 3.8.4). After
the address has moved, the new holder answers with RST if it does not know the connections of the former one. Where
nobody answers, the kernel goes on asking: a connection may outlive that. One that is silent at the end is lost.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Dict, List, NamedTuple

CONNECT_LIMIT_S = 1.0
# Seconds of silence until the first question, seconds between two, and how many without an answer end a connection: it
# takes longer than any failure of a drill.
KEEPALIVE = {socket.TCP_KEEPIDLE: 1, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 120}
UNANSWERED = 2  # questions: the answer to the last one may be on its way
PROBES_AT = 3  # the place of tcpi_probes in struct tcp_info, linux/tcp.h
READ_SIZE = 65536


class Lasting(NamedTuple):
    """The connections that could be opened."""

    sockets: List[Any]

    @classmethod
    def open(cls, address: str, port: int, number: int) -> Lasting:
        found = []
        for _number in range(number):
            with contextlib.suppress(OSError):
                found.append(_connected(address, port))
        return cls(found)

    def close(self) -> Dict[str, int]:
        """Close the connections; return how many there were, and how many of them had ended before."""
        lost = sum(_has_ended(sock) for sock in self.sockets)
        for sock in self.sockets:
            sock.close()
        return {"held": len(self.sockets), "lost": lost}


def _connected(address: str, port: int) -> Any:
    sock = socket.create_connection((address, port), CONNECT_LIMIT_S)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock


def _has_ended(sock: Any) -> bool:
    """Return whether a connection has ended, or nobody answers for it. What a server has sent says nothing."""
    try:
        while sock.recv(READ_SIZE):
            pass
        return True
    except BlockingIOError:
        info: bytes = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, PROBES_AT + 1)
        return info[PROBES_AT] >= UNANSWERED
    except OSError:
        return True
