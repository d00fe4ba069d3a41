# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether dpkg was interrupted, or somebody has locked its database: then apt installs and removes nothing."""

from __future__ import annotations

import fcntl
import glob
import os
import struct
import time
from typing import Optional, Tuple

FOLDER = "/var/lib/dpkg"
JOURNAL = "updates/[0-9]*"  # what dpkg has begun and not finished, or is at
LOCKS = ("lock-frontend", "lock")  # of apt, and of dpkg itself
FLOCK = "hhqqi"  # struct flock: type, whence, start, length, process; see fcntl(2)
WAIT = 60.0  # seconds for a transaction to end; a run that was killed may have left apt at work
LOOK = 0.2  # seconds between two looks
INTERRUPTED = "dpkg was interrupted, so that apt refuses to install or remove anything: run `dpkg --configure -a`."
LOCKED = "{} is locked by {}, so that apt refuses to install or remove anything: wait until it has ended, or end it."


def hindrance(waits: bool) -> str:
    """Return why apt would refuse to install or remove anything; '' if it would not.

    Whoever has locked the database is waited for where dpkg has begun something, whose outcome nobody knows yet.

    :param waits: wait in any case, because something is to be installed
    """
    deadline = time.monotonic() + WAIT
    while True:
        has_begun, found = bool(glob.glob(os.path.join(FOLDER, JOURNAL))), locked()
        if found is None:
            return INTERRUPTED if has_begun else ""
        if time.monotonic() > deadline or not (has_begun or waits):
            return LOCKED.format(found[0], _named(found[1]))
        time.sleep(LOOK)


def locked() -> Optional[Tuple[str, int]]:
    """Return which file of dpkg's database a process has locked, and the process; None if there is none."""
    for path in (os.path.join(FOLDER, name) for name in LOCKS):
        process = _locked_by(path)
        if process is not None:
            return path, process
    return None


def _locked_by(path: str) -> Optional[int]:
    """Ask for a lock without taking it, which would keep apt from its own."""
    try:
        with open(path, "rb") as file:
            wanted = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _whence, _start, _length, process = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, wanted))
    except OSError:
        return None
    return int(process) if kind != fcntl.F_UNLCK else None


def _named(process: int) -> str:
    """Return a process by its program's name; one of another set of process numbers, as of a container, has none."""
    try:
        with open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as file:
            return f"{file.read().strip()} (process {process})"
    except OSError:
        return "another process"
