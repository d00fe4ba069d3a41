# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Records that only root may read. One of them says that a member is about to return to its old state."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import Any, Dict, Mapping

from .._shared.paths import STATE
from .candidates import candidate_of

UNDO = f"{STATE}/undo"
DUE = f"{UNDO}/due.json"  # the fields of `arming.Due` while an undo is armed or under way
RETURNED = (
    f"{UNDO}/returned.json"  # those and ``{at, waits, stays, kept, others}`` from its beginning until the next run
)
WHOLE = "the whole member"  # of what has been ``kept`` as it was
WRITTEN = f"{UNDO}/written.json"  # ``{path: [checksum]}`` of what runs have written since it was armed


def due() -> Dict[str, Any]:
    """Return the record of the undo that is armed or under way; {} if there is none."""
    return read(DUE)


def is_armed() -> bool:
    """Whether an undo is armed or under way, also by a record that is damaged."""
    return os.path.exists(DUE)


def returned() -> Dict[str, Any]:
    """Return the record of the return that has begun, or is over, since the last run; {} if there is none."""
    return read(RETURNED)


def has_returned() -> bool:
    """Whether this member has begun to return, so that the run which it returns from must not change it any more."""
    return os.path.exists(RETURNED)


def note_written(contents: Mapping[str, bytes]) -> None:
    """Record what a run is about to write, by path: an undo takes nothing else back."""
    if not contents or not due():
        return
    known = read(WRITTEN)
    for path, content in contents.items():
        known[path] = sorted({*known.get(path, []), checksum(content)})
    write(WRITTEN, known)


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read(path: str) -> Dict[str, Any]:
    """Return a record; {} if there is none.

    :raises ValueError: if it is damaged
    """
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from None
    return found if isinstance(found, dict) else {}


def forget(path: str) -> None:
    """Remove a record, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def write(path: str, data: Dict[str, Any]) -> None:
    """Write a record so that it survives a loss of power: whole, or not at all."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder), mode=0o755, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with candidate_of(path) as candidate:
        candidate.file.write(json.dumps(data).encode())
        candidate.file.flush()
        os.fsync(candidate.file.fileno())
        os.rename(candidate.path, path)
