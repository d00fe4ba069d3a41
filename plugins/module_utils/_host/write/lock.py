# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lock of a host: one run at a time changes it or drills it.

A record says who holds the lock::

    {"controller": HOST, "boot": TEXT, "pid": 4711, "started": TEXT, "user": TEXT, "purpose": TEXT, "since": TEXT}

``boot``, ``pid`` and ``started`` identify the run; the rest is for people.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from typing import Any, Dict, Iterator, NamedTuple, Optional

PATH = "/run/onprem-lb.lock"  # a reboot removes it
IDENTITY = ("boot", "pid", "started")
TEXTS = ("controller", "boot", "started", "user", "purpose", "since")
MAX_TEXT, MAX_SIZE, MAX_PID = 200, 4096, 1 << 22
TAKES_S = 5.0  # how long another process may read and write the record
POLL_S = 0.05

Record = Dict[str, Any]


class Refused(Exception):
    """The lock cannot be used; the message is a sentence."""


class Taken(NamedTuple):
    """What came of taking a lock."""

    held_by: Optional[Record] = None  # the run that holds it, if it is another one; {} if that is unknown
    is_new: bool = False  # whether this run did not hold it before


def take(path: str, mine: Record, replaced: Optional[Record] = None) -> Taken:
    """Take the lock. If another run holds it, nothing changes.

    :param replaced: a record that may be replaced, because its run is dead or its lock is to be broken
    :raises Refused: the lock cannot be used
    :raises OSError: it cannot be written
    """
    with _opened(path, os.O_CREAT) as file:
        found = _read(file)
        if found is not None and found != replaced and not _is_same_run(found, mine):
            return Taken(found)
        is_new = found is None or not _is_same_run(found, mine)
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(mine).encode(), 0)
    return Taken(None, is_new)


def release(path: str, mine: Record) -> None:
    """Release the lock if this run holds it."""
    with contextlib.suppress(FileNotFoundError), _opened(path) as file:
        found = _read(file)
        if found is None or _is_same_run(found, mine):
            os.unlink(path)


def _is_same_run(one: Record, other: Record) -> bool:
    return all(one.get(key) == other[key] for key in IDENTITY)


def _read(file: int) -> Optional[Record]:
    """Return the record, {} if it cannot be understood, or None if the file is new."""
    content = os.pread(file, MAX_SIZE + 1, 0)
    if not content:
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if len(content) <= MAX_SIZE and _is_record(found) else {}


def _is_record(found: Any) -> bool:
    """Whether this is a record as runs write it, safe to be printed. Only root can write another one."""
    if not isinstance(found, dict) or set(found) != {*TEXTS, "pid"}:
        return False
    pid, texts = found["pid"], [found[key] for key in TEXTS]
    is_pid = isinstance(pid, int) and 0 < pid <= MAX_PID
    return is_pid and all(isinstance(text, str) and len(text) <= MAX_TEXT and text.isprintable() for text in texts)


@contextlib.contextmanager
def _opened(path: str, flags: int = 0) -> Iterator[int]:
    """Open the lock's file for one process at a time. Only root may open it, so that no user can hold it."""
    deadline = time.monotonic() + TAKES_S
    while True:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise Refused(f"{path} is not a regular file: remove it.")
            if _is_ours(file, path):
                yield file
                return
        finally:
            os.close(file)
        if time.monotonic() > deadline:
            raise Refused(f"Another process has held {path} open for {TAKES_S:g} s: see `fuser {path}`.")
        time.sleep(POLL_S)


def _is_ours(file: int, path: str) -> bool:
    """Whether no other process reads and writes the file, and it has not been removed meanwhile."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return False
