# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The saved states of a member, one file each, which only root may read: they have passwords.

A state has the ID of the run that saved it, the same on all members. IDs sort by time.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, NamedTuple

from ..._shared import sealed
from ..._shared.paths import STATES
from ..._shared.state_ids import ID, RETURNED
from ..records import due, read, write
from . import snapshot, state_data

KEPT = 5  # of those that runs have saved, and of those that rollbacks and restores have


class Refused(Exception):
    """A state cannot be saved or read; the message is a sentence."""


class State(NamedTuple):
    """A state: the run that saved it, before its first change, and what the member had."""

    id: str
    purpose: str
    saved: snapshot.Snapshot
    backup: str = ""  # the ID of the backup that a run has brought here, in place of what the member had


def save(state: State, kept: str = "", folder: str = STATES) -> None:
    """Save a state, and remove the oldest ones, but for the one that an armed undo returns to.

    :param kept: the ID of another one that stays, because the member is about to return to it
    """
    if not ID.fullmatch(state.id):
        raise Refused(f"{state.id!r} is not the ID of a state: give one such as 20260131T120000Z.")
    data = {**state._asdict(), "saved": state_data.as_data(state.saved)}
    try:
        state_data.of_data(data["saved"])  # or there would be no way back
    except ValueError as error:
        raise Refused(f"This member's state cannot be saved, so it would have no way back ({error}).") from None
    write(f"{folder}/{state.id}.json", sealed.sealed(data))
    needed = (state.id, kept, due().get("id"))  # the new one may be the oldest by its name, if a clock was set back
    for old in [*_beyond(folder)]:
        if old not in needed:
            os.unlink(f"{folder}/{old}.json")


def _beyond(folder: str) -> Iterator[str]:
    """Yield the IDs of the states that are too many. No way back costs the state of a run, which may be wanted next."""
    ways_back = [each for each in ids(folder) if _is_of_way_back(f"{folder}/{each}.json")]
    yield from ways_back[:-KEPT]
    yield from [each for each in ids(folder) if each not in ways_back][:-KEPT]


def _is_of_way_back(path: str) -> bool:
    """Whether a rollback or a restore has saved a state. One that is damaged counts as that of a run."""
    try:
        data = read(path)
    except ValueError:
        return False
    return bool(data.get("backup") or RETURNED.fullmatch(str(data.get("purpose"))))


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
        data = sealed.unsealed(read(f"{folder}/{wanted}.json"))
        texts = {key: data.get(key, "") for key in ("id", "purpose", "backup")}
        if not all(isinstance(text, str) for text in texts.values()) or texts["id"] != wanted:
            raise ValueError("its ID, purpose and backup are no texts")
        return State(**texts, saved=state_data.of_data(data.get("saved")))
    except ValueError as error:
        raise Refused(f"The state {wanted} is damaged: {folder}/{wanted}.json cannot be read ({error}).") from None


def judged(data: Any, configs: Dict[str, str]) -> snapshot.Snapshot:
    """Return the snapshot that a backup has. Nothing in it may lead out of the files and units of this collection.

    :param configs: the paths of haproxy's and keepalived's configurations here, by program
    :raises Refused: with what is wrong
    """
    try:
        found = state_data.of_data(data)
    except ValueError as error:
        raise Refused(
            f"The backup is damaged: its data of this member cannot be read ({error}): use an unchanged backup."
        ) from None
    if found.configs != configs:
        raise Refused(
            f"The backup has the configurations {_listed(found.configs)}, and here they are {_listed(configs)}: set "
            "haproxy_config_path and keepalived_config_path as they were."
        )
    strange = [path for path in (file.path for file in found.files) if not snapshot.is_own(path, configs.values())]
    strange += [unit for unit in found.units if unit not in snapshot.WATCHED_UNITS]
    if strange:
        raise Refused(f"The backup has {', '.join(strange)}, which is not this collection's: use an unchanged backup.")
    return found


def _listed(configs: Dict[str, str]) -> str:
    return " and ".join(sorted(configs.values())) or "none"
