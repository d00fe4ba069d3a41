# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The saved states of a member, one file each, which only root may read: they have passwords.

A state has the ID of the run that saved it, the same on all members. IDs sort by time.
"""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple

from . import snapshot
from .records import FOLDER, read, write

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


def save(state: State, kept: str = "", folder: str = STATES) -> None:
    """Save a state, and remove the oldest ones.

    :param kept: the ID of one that stays, because the member is about to return to it
    """
    if not ID.fullmatch(state.id):
        raise Refused(f"{state.id!r} is no ID of a state: one such as 20260131T120000Z is wanted.")
    data = {"id": state.id, "purpose": state.purpose, "saved": snapshot.as_data(state.saved)}
    write(f"{folder}/{state.id}.json", data)
    for old in ids(folder)[:-KEPT]:
        if old != kept:
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
