# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TCP ports that a test may listen at: no other test of this machine has them, and no client is given one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import Dict, Iterator, List

LOCKS = Path(tempfile.gettempdir()) / "onprem-lb-test-ports.lock"  # one for all clones
_OPENED: Dict[Path, int] = {}


def _opened(locks: Path) -> int:
    """Return the file's descriptor, one for the whole process: closing any would release the locks of all."""
    if locks not in _OPENED:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(locks, os.O_RDWR | os.O_CREAT | os.O_EXCL))
            os.chmod(locks, 0o666)
        # Not created on the way: in a sticky folder the kernel refuses that for a file of another user.
        _OPENED[locks] = os.open(locks, os.O_RDWR | os.O_NOFOLLOW)
    return _OPENED[locks]


class Ports:
    """Ports without a listener, each given once, downwards.

    A lock of the byte at the port's number, in a file that all test processes share, reserves it until the process
    ends.
    """

    def __init__(self, first: int, last: int, locks: Path = LOCKS) -> None:
        self._candidates = iter(range(first, last - 1, -1))
        self._locks = _opened(locks)
        self._one_at_a_time = threading.Lock()

    def take(self, count: int) -> List[int]:
        with self._one_at_a_time:
            free = self._free()
            return [next(free) for _each in range(count)]

    def _free(self) -> Iterator[int]:
        return (port for port in self._candidates if self._reserve(port) and _has_no_listener(port))

    def _reserve(self, port: int) -> bool:
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except BlockingIOError:
            return False
        return True


def _has_no_listener(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _first_ephemeral_port() -> int:
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        return int(file.read().split()[0])


# The kernel takes a client's port from the ephemeral ones, so a listener there could find its port taken.
free_ports = Ports(_first_ephemeral_port() - 1, 1024).take
