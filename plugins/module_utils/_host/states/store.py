# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The saved states of a member, one file each, which only root may read: they have passwords.

A state has the ID of the run that saved it, the same on all members. IDs sort by time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from typing import Any, Dict, List, NamedTuple

from . import snapshot

FOLDER = "/var/lib/onprem.lb"
STATES = f"{FOLDER}/states"
KEPT = 5
ID = re.compile(r"\d{8}T\d{6}Z")


class Refused(Exception):
    """A state cannot be saved or read; the message is a sentence."""


class State(NamedTuple):
    """A state: the run that saved it, before its first change, and what the member had."""

    id: str
    purpose: str
    saved: snapshot.Snapshot


def save(state: State, folder: str = STATES) -> None:
    """Save a state, and remove the oldest ones."""
    if not ID.fullmatch(state.id):
        raise Refused(f"{state.id!r} is no ID of a state: one such as 20260131T120000Z is wanted.")
    data = {"id": state.id, "purpose": state.purpose, "saved": snapshot.as_data(state.saved)}
    write(f"{folder}/{state.id}.json", data)
    for old in ids(folder)[:-KEPT]:
        os.unlink(f"{folder}/{old}.json")


def ids(folder: str = STATES) -> List[str]:
    """Return the IDs of the states, oldest first."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(stem for stem, end in map(os.path.splitext, names) if ID.fullmatch(stem) and end == ".json")


def load(wanted: str, folder: str = STATES) -> State:
    """Return a state.

    :raises Refused: if there is none, or it cannot be read
    """
    known = ids(folder)
    if wanted not in known:
        raise Refused(f"There is no state {wanted} here: there {'are ' + ', '.join(known) if known else 'is none'}.")
    try:
        data = read(f"{folder}/{wanted}.json")
        return State(data["id"], data["purpose"], snapshot.of_data(data["saved"]))
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"The state {wanted} is damaged: {folder}/{wanted}.json cannot be read ({error}).") from None


def read(path: str) -> Dict[str, Any]:
    """Return a record; {} if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
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
    handle, candidate = tempfile.mkstemp(prefix=".", dir=folder)  # which only its owner may read
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(candidate, path)
    except OSError:
        forget(candidate)
        raise
