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
STATE_AT, PROBES_AT = 0, 3  # the places of tcpi_state and tcpi_probes in struct tcp_info, linux/tcp.h
CLOSE_WAIT = 8  # linux/tcp_states.h: the other side has closed, and nobody has reset it since
LOST, CLOSED = "lost", "closed"
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
        """Close the connections; return how many there were, how many had ended before, and of these were closed."""
        ends = [_end_of(sock) for sock in self.sockets]
        for sock in self.sockets:
            sock.close()
        return {"held": len(ends), "lost": len([end for end in ends if end]), "closed": ends.count(CLOSED)}


def _connected(address: str, port: int) -> Any:
    sock = socket.create_connection((address, port), CONNECT_LIMIT_S)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock


def _end_of(sock: Any) -> str:
    """Return how a connection has ended, or that nobody answers for it; '' if it has not. What a server has sent says
    nothing. One that the other side closed in order may still be reset, by a host that does not know it."""
    info: bytes = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, PROBES_AT + 1)
    try:
        while sock.recv(READ_SIZE):
            pass
        return CLOSED if info[STATE_AT] == CLOSE_WAIT else LOST
    except BlockingIOError:
        return LOST if info[PROBES_AT] >= UNANSWERED else ""
    except OSError:
        return LOST
