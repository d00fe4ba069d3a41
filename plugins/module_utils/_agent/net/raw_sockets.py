# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What waits unread in the raw sockets of VRRP of this network namespace: ``/proc/net/raw`` and ``/proc/net/raw6``."""

from __future__ import annotations

import contextlib
from typing import Dict

from ..vrrp.core.packet import PROTOCOL

TABLES = ("/proc/net/raw", "/proc/net/raw6")
QUEUES, INODE = 4, 9  # the columns "tx_queue:rx_queue" and "inode"


def unread(table: str) -> Dict[int, int]:
    """Return the size of what waits in each socket that is not empty, by its inode. Pure.

    The local port in the table is the protocol.
    """
    rows = [line.split() for line in table.splitlines()[1:]]
    sizes = {
        int(words[INODE]): int(words[QUEUES].partition(":")[2], 16)
        for words in rows
        if len(words) > INODE and int(words[1].rpartition(":")[2], 16) == PROTOCOL
    }
    return {inode: size for inode, size in sizes.items() if size}


def read_unread() -> Dict[int, int]:
    """Ask the kernel. A table that is not there, such as that of IPv6 where it is off, has no sockets."""
    found: Dict[int, int] = {}
    for path in TABLES:
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            found.update(unread(file.read()))
    return found
