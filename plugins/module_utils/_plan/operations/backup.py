# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A backup: the states of all members at one time in one file, and what of it can be restored. Pure."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..._shared import sealed, versions
from ..._shared.state_ids import ID, when
from .locking import is_silent
from .members import addresses_of, cause, layouts

Data = Dict[str, Any]  # of one member, as `member_state` exports it


class Backup(NamedTuple):
    """A backup to write. With faults there is none."""

    faults: List[str]
    lines: List[str] = []  # in words
    text: str = ""  # of the file, with passwords


class Contents(NamedTuple):
    """What a file has. With faults it has nothing."""

    faults: List[str]
    backup: str = ""  # its ID
    members: Dict[str, Data] = {}


def make(given: List[Dict[str, Any]], backup: str, file: str) -> Backup:
    """Return the backup of all pairs and clusters of a play.

    :param given: the hosts of the play as `members` describes them, each with what `member_state` exported, ``state``,
        and what `member_lock` returned of those that it locks, ``locks``
    :param backup: its ID
    :param file: where it is about to be written
    """
    states = {host["name"]: host["state"] for host in given}
    saved = {name: state["saved"] for name, state in states.items() if state.get("saved") and state["engine"]}
    lacking = [_why(host) for host in given if host["name"] not in saved]
    lacking += [f"{name} is outside --limit" for layout in layouts(given) for name in layout.left_out]
    if not saved:
        return Backup([f"There is nothing to back up: {'; '.join(lacking)}."])
    lines = [f"{file}: the state of {', '.join(saved)}, with the VRRP password. Keep it as you keep a key."]
    lines += [f"It lacks what is not here: {'; '.join(lacking)}."] * bool(lacking)
    return Backup([], lines, json.dumps(sealed.sealed(versions.marked({"backup": backup, "members": saved}))) + "\n")


def _why(host: Mapping[str, Any]) -> str:
    """Say why a host has no state. Ansible hides why an export failed; why it does not answer, its lock says."""
    name, state = host["name"], host["state"]
    silent = [lock["msg"] for lock in host["locks"] if lock["item"] == name and "msg" in lock and is_silent(lock)]
    if silent:
        return str(silent[0]).rstrip(".")
    return f"{name} {'has nothing of this collection' if 'engine' in state else f'cannot be read: {cause(state)}'}"


def read(text: str, file: str, names: List[str], downgrades: bool = False) -> Contents:
    """Return what a file has for some hosts.

    :param names: of the members of the pair or the cluster in the inventory
    :param downgrades: whether the user accepts a file that a newer version wrote
    """
    wrong = f"restore_file is {file}, which is not a backup"
    try:
        found = json.loads(text)
    except (RecursionError, ValueError) as error:
        return Contents([f"{wrong}: it is not JSON ({error}). Give a file that onprem.lb.backup wrote."])
    backup, members = (found.get(key) for key in ("backup", "members")) if isinstance(found, dict) else (None, None)
    if not (isinstance(backup, str) and ID.fullmatch(backup) and isinstance(members, dict)):
        return Contents([f"{wrong}: it lacks an ID or members. Give a file that onprem.lb.backup wrote."])
    try:
        sealed.unsealed(found)
    except ValueError as error:
        return Contents([f"restore_file is {file}, a damaged backup: {error}. Give the file as it was written."])
    refused = versions.refusal(file, versions.written_by(text), "restore_downgrade")
    if refused and not downgrades:
        return Contents([refused])
    known = {name: data for name, data in members.items() if name in names}
    if not known:
        return Contents(
            [
                f"restore_file is {file}, the backup of {', '.join(members)} of {when(backup)}, and the members here "
                f"are {', '.join(names)}: choose the pair by --limit, or give another file."
            ]
        )
    shapeless = [name for name, data in known.items() if not isinstance(data, dict)]
    if shapeless:
        return Contents(
            [f"{wrong}: it has no data of {', '.join(shapeless)}. Give a file that onprem.lb.backup wrote."]
        )
    return Contents([], backup, known)


def of_others(contents: Mapping[str, Any], file: str, name: str, vips: Sequence[str]) -> List[str]:
    """Say that the member whose data a backup has under a name had none of the VIPs that one of this name has here.

    :param contents: as `Contents` has them
    :param vips: of the member in the inventory
    """
    data = contents["members"].get(name, {})
    here, there = addresses_of([*vips]), addresses_of(_vips_of(data))
    if not here or not there or {*here} & {*there}:
        return []
    return [
        f"restore_file is {file}, in which {name} has the VIPs {', '.join(there)}, and in the inventory it has "
        f"{', '.join(here)}: give a backup of this pair, or go on with -e restore_other_vips=true if it had these."
    ]


def _vips_of(data: Any) -> List[Any]:
    """Return the VIPs of a member's data, which its member judges as a whole."""
    parts = [data.get(key) for key in ("instances", "served")] if isinstance(data, dict) else []
    instances, served = (part if isinstance(part, list) else [] for part in parts or [[], []])
    lists = [each.get("addresses") for each in instances if isinstance(each, dict)]
    return [vip for each in [*lists, served] for vip in (each if isinstance(each, list) else [])]
