# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""splice(2): moves bytes between sockets through a pipe, inside the kernel. Worthwhile for bulk data only."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
from typing import Callable, List

MOVE, NONBLOCK = 1, 2  # SPLICE_F_*
F_SETPIPE_SZ = 1031
PIPE_SIZE = 1 << 18  # bytes
MAX_SPARE = 64  # pipes that are kept for reuse


def _splice_of_libc() -> Callable[[int, int, int], int]:
    """For Python 3.8 and 3.9."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
    call = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *arguments, use_errno=True)(("splice", libc))

    def splice(source: int, destination: int, size: int) -> int:
        moved = call(source, None, destination, None, size, MOVE | NONBLOCK)
        if moved < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return moved

    return splice


def _splice_of_python() -> Callable[[int, int, int], int]:
    call, flags = os.splice, MOVE | NONBLOCK

    def splice(source: int, destination: int, size: int) -> int:
        return call(source, destination, size, None, None, flags)

    return splice


#: splice(source, destination, size) -> bytes moved, 0 at the end of the source. Raises BlockingIOError, OSError.
splice = _splice_of_python() if hasattr(os, "splice") else _splice_of_libc()


class Pipe:
    """A pipe between two sockets, and the number of bytes in it."""

    __slots__ = ("exit", "entrance", "held")

    def __init__(self) -> None:
        """Raises OSError without free descriptors."""
        self.exit, self.entrance = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.held = 0  # bytes
        with contextlib.suppress(OSError):  # beyond a user's limit it keeps its default size
            fcntl.fcntl(self.entrance, F_SETPIPE_SZ, PIPE_SIZE)

    def fill(self, source: int) -> int:
        """Return how many bytes were moved in, 0 at the end of the source."""
        moved = splice(source, self.entrance, PIPE_SIZE)
        self.held += moved
        return moved

    def drain(self, destination: int) -> None:
        """Move bytes out, as many as the destination takes. Raises OSError, but not for a full destination."""
        try:
            while self.held:
                self.held -= splice(self.exit, destination, self.held)
        except BlockingIOError:
            pass

    def close(self) -> None:
        os.close(self.exit)
        os.close(self.entrance)


class Pipes:
    """A pool of pipes."""

    def __init__(self) -> None:
        self._usable = _works()
        self._spare: List[Pipe] = []

    def take(self) -> Pipe:
        """Raises OSError."""
        if not self._usable:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        return self._spare.pop() if self._spare else Pipe()

    def give(self, pipe: Pipe) -> None:
        """Take back a pipe; one that still holds bytes is closed."""
        if pipe.held or len(self._spare) >= MAX_SPARE:
            pipe.close()
        else:
            self._spare.append(pipe)

    def close(self) -> None:
        while self._spare:
            self._spare.pop().close()


def _works() -> bool:
    """Test splice with sockets of our own: a sandbox may forbid it, and a client's bytes must not be lost."""
    here, there = socket.socketpair()
    with here, there, contextlib.suppress(OSError):
        with contextlib.closing(Pipe()) as pipe:
            there.send(b"?")
            pipe.fill(here.fileno())
            pipe.drain(here.fileno())
        return there.recv(1, socket.MSG_DONTWAIT) == b"?"
    return False
