# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""System calls that Python does not offer, or not yet in 3.8."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import struct
from typing import Iterator, Optional

SYS_PIDFD_OPEN = 434  # the same on every architecture but Alpha
PR_SET_PDEATHSIG = 1

IN_CLOSE_WRITE, IN_ATTRIB = 0x8, 0x4
IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x40, 0x80, 0x100, 0x200
IN_DELETE_SELF, IN_MOVE_SELF = 0x400, 0x800
# Not IN_MODIFY: a file that is being written is empty at first, and would be read like that.
CHANGES = (
    IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
)
_EVENT = struct.Struct("iIII")  # struct inotify_event: watch, mask, cookie, length of the name that follows

_libc = ctypes.CDLL(None, use_errno=True)


def _fault() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def pidfd_open(pid: int) -> Optional[int]:
    """Return a descriptor that becomes readable when the process has died, or None if that is not available.

    Linux has it since 5.3, and a sandbox may refuse it. Raises ProcessLookupError where there is no such process.
    """
    descriptor = _libc.syscall(SYS_PIDFD_OPEN, pid, 0)
    if descriptor >= 0:
        return descriptor
    if ctypes.get_errno() == errno.ESRCH:
        raise _fault()
    return None


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies. Call after switching the user, which resets it."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Inotify:
    """Reports changes of files. Raises OSError if the user's limit is reached."""

    def __init__(self) -> None:
        self._descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _fault()

    def fileno(self) -> int:
        return self._descriptor

    def add(self, path: str) -> bool:
        """Watch a file or folder; repeated calls do no harm. Return False if it is not there."""
        return _libc.inotify_add_watch(self._descriptor, os.fsencode(path), CHANGES) >= 0

    def names(self) -> Iterator[str]:
        """Yield the name within its folder of everything that has changed, '' for a watched path itself."""
        while True:
            try:
                data = os.read(self._descriptor, select.PIPE_BUF * 4)
            except BlockingIOError:
                return
            while data:
                length = _EVENT.unpack_from(data)[3]
                yield os.fsdecode(data[_EVENT.size : _EVENT.size + length].rstrip(b"\0"))
                data = data[_EVENT.size + length :]

    def close(self) -> None:
        os.close(self._descriptor)
