# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether dpkg was interrupted, or is at work: both leave the same journal."""

from __future__ import annotations

import fcntl
import glob
import os
import struct
import time

FOLDER = "/var/lib/dpkg"
JOURNAL = "updates/[0-9]*"  # what dpkg has begun and not finished
LOCKS = ("lock-frontend", "lock")  # of apt, and of dpkg itself
FLOCK = "hhqqi"  # struct flock: type, whence, start, length, process; see fcntl(2)
WAIT = 60.0  # seconds for a transaction to end; a run that was killed may have left apt at work
LOOK = 0.2  # seconds between two looks


def was_interrupted() -> bool:
    """Return whether dpkg ended before it had finished. One that is at work is waited for."""
    deadline = time.monotonic() + WAIT
    while glob.glob(os.path.join(FOLDER, JOURNAL)):
        if not is_at_work() or time.monotonic() > deadline:
            return True
        time.sleep(LOOK)
    return False


def is_at_work() -> bool:
    """Return whether a process has locked dpkg's database."""
    return any(_is_locked(os.path.join(FOLDER, name)) for name in LOCKS)


def _is_locked(path: str) -> bool:
    """Ask for a lock without taking it, which would keep apt from its own."""
    try:
        with open(path, "rb") as file:
            wanted = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            found = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, wanted))
    except OSError:
        return False
    return bool(found[0] != fcntl.F_UNLCK)
