# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lock of a host: one run at a time changes it or drills it.

A record says who holds the lock::

    {"machine": [HOST, ...], "pid": 4711, "started": TEXT, "user": TEXT, "purpose": TEXT, "since": TEXT}

``machine``, ``pid`` and ``started`` identify the run; the rest is for people.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from typing import Any, Dict, Iterator, Optional

PATH = "/run/onprem-lb.lock"  # a reboot removes it
IDENTITY = ("machine", "pid", "started")

Record = Dict[str, Any]


def take(path: str, mine: Record, replaced: Optional[Record] = None) -> Optional[Record]:
    """Take the lock; return None, or the record of the run that holds it, and then nothing has changed.

    :param replaced: a record that may be replaced, because its run is dead or its lock is to be broken
    """
    with _exclusive(os.path.dirname(path)):
        found = read(path)
        if found is not None and found != replaced and not _is_same_run(found, mine):
            return found
        _write(path, mine)
    return None


def release(path: str, mine: Record) -> bool:
    """Release the lock if this run holds it, and return whether it did."""
    with _exclusive(os.path.dirname(path)):
        found = read(path)
        if found is None or not _is_same_run(found, mine):
            return False
        os.unlink(path)
    return True


def read(path: str) -> Optional[Record]:
    """Return the record, {} if it cannot be understood, or None if there is no lock."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_same_run(one: Record, other: Record) -> bool:
    return all(one.get(key) == other[key] for key in IDENTITY)


def _write(path: str, record: Record) -> None:
    partial = f"{path}.new"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(partial, path)


@contextlib.contextmanager
def _exclusive(folder: str) -> Iterator[None]:
    """Let one process at a time read and write the record."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
