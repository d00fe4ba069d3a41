# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections that tests reset and fill, and a server that accepts none."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time

from support.proxy.proxies import LIMIT, listening

LINGER_0 = struct.pack("ii", 1, 0)  # close() sends RST
BLOCK = b"x" * 65536


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
    connection.close()


def is_reset(connection: socket.socket) -> bool:
    """Read to the end; return whether that is a reset, or becomes one."""
    poll = select.poll()
    poll.register(connection, 0)  # POLLERR is always reported
    try:
        while connection.recv(1 << 20):
            pass
    except ConnectionResetError:
        return True
    return any(events & select.POLLERR for _descriptor, events in poll.poll(LIMIT * 1000))


def fill(connection: socket.socket) -> None:
    """Send until neither the kernel nor the peer takes any more."""
    connection.setblocking(False)
    last = time.monotonic()
    while time.monotonic() - last < 0.2:
        try:
            connection.send(BLOCK)
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.002)
    connection.settimeout(LIMIT)


@contextlib.contextmanager
def unresponsive():
    """Yield the address of a server with a full backlog: the kernel drops every SYN, as a firewall does."""
    with listening(backlog=0) as server, contextlib.ExitStack() as clients:
        for _client in range(4):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield server.getsockname()
