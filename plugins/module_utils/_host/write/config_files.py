# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Replaces files and has the units run with them: `files` does the first, `units` the second.

What is not to run stops before a file changes, so that it does not read half of them, and what its unit's file says of
its end is still known. Everything else starts, or loads the files, after they have been written.
"""

from __future__ import annotations

import os
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from .. import candidates
from ..read import in_force
from ..read.reader import Reader
from . import files, units, unnamed

MOUNTED = "{} stays, because a file system is mounted there, or further down: unmount it, and delete the folder."


class Plan(NamedTuple):
    """What differs on a host from what is wanted.

    :ivar pending: the files
    :ivar folders: those that are to go
    :ivar stale: a sentence for each file that is as wanted, and not in force
    :ivar unloaded: those of them that a program checks
    :ivar stops: the commands before the files change
    :ivar starts: the commands after it
    """

    pending: List[files.Change]
    folders: List[str]
    stale: List[str]
    unloaded: List[files.Change]
    stops: List[units.Command]
    starts: List[units.Command]

    @property
    def paths(self) -> List[str]:
        return [*(change.path for change in self.pending), *self.folders]

    @property
    def deleted(self) -> List[str]:
        return [*(change.path for change in self.pending if change.after is None), *self.folders]

    @property
    def commands(self) -> List[str]:
        return [" ".join(command) for command in self.stops + self.starts]

    @property
    def changes(self) -> bool:
        return bool(self.paths or self.stale or self.commands)

    @property
    def diff(self) -> List[Dict[str, str]]:
        gone = [
            {"before_header": path, "after_header": f"{path} (absent)", "before": "", "after": ""}
            for path in self.folders
        ]
        return (
            [change.diff for change in self.pending]
            + gone
            + [{"prepared": f"{line}\n"} for line in [*self.stale, *self.commands]]
        )


def plan(reader: Reader, wanted: Mapping[str, Any]) -> Plan:
    """Compare a host with what is wanted.

    :param wanted: the options of the module `config_files`
    :raises files.Refused: when a mode is none
    """
    pending = _pending(wanted)
    of_units = [(item["unit"], item["path"]) for item in wanted["files"] if item["unit"]]
    stale = dict(in_force.stale_files(reader, of_units))
    wanted_units = [units.Wanted(**each) for each in wanted["units"]]
    found = units.read(reader.run, [unit.name for unit in wanted_units])
    changed = _changed(of_units, [change.path for change in pending], stale)
    starts = units.starts(wanted_units, found, changed)
    return Plan(
        pending=pending,
        folders=[path for path in wanted["folders"] if files.is_left(path)],
        stale=[sentence for each in stale.values() for sentence in each],
        unloaded=_unloaded(wanted["files"], [change.path for change in pending], stale),
        stops=units.stops(wanted_units, found),
        starts=[*(units.reload_systemd() if _is_outdated(pending, found, changed) else []), *starts],
    )


def _unloaded(
    wanted: Sequence[Mapping[str, Any]], written: Collection[str], stale: Mapping[str, List[str]]
) -> List[files.Change]:
    """Return the files to check as they are: what they name has changed, and they have not."""
    checked = [item for item in wanted if item["check"] != "none" and item["path"] not in written]
    return [files.as_it_is(item["path"], item["check"]) for item in checked if stale.get(item["path"])]


def _is_outdated(
    pending: List[files.Change], found: Mapping[str, units.Found], changed: Mapping[str, List[str]]
) -> bool:
    """Whether systemd has read other files than there are then. Those that no unit is to run with it need not read."""
    gone = [change.path for change in pending if change.after is None or change.puts_back]
    own = [path for paths in changed.values() for path in paths] if found else []
    return bool(units.own([*gone, *own])) or any(each.outdated for each in found.values())


def _pending(wanted: Mapping[str, Any]) -> List[files.Change]:
    """Return what becomes of the files, in this order: a file that goes makes room for the one that it had replaced."""
    written = files.changes(wanted["files"])
    gone = [change.path for change in written if change.after is None]
    left = unnamed.changes(wanted["files"]) if wanted["unnamed_certificates"] else []
    return [*files.set_aside(wanted["set_aside"]), *written, *files.put_back(wanted["put_back"], gone), *left]


def _changed(
    of_units: List[Tuple[str, str]], paths: Collection[str], stale: Mapping[str, List[str]]
) -> Dict[str, List[str]]:
    """Return the files of each unit that change, or that it has not loaded."""
    changed: Dict[str, List[str]] = {}
    for unit, path in of_units:
        changed.setdefault(unit, []).extend([path] if path in paths or stale[path] else [])
    return changed


def carry_out(planned: Plan, reader: Reader, move: candidates.Move) -> files.Checked:
    """Do what differs, unless a program refuses a file.

    :raises files.Refused: before the first file is touched
    :raises units.Failed: a unit does not stop, start or reload; the next run goes on from there
    """
    if planned.changes:
        files.refuse_after_return()
    if planned.stops:
        check(planned, reader, move)  # or a file that is refused would have stopped a unit
    units.take(reader.run, planned.stops)
    checked = files.replace_all(planned.pending, reader.find, reader.run, move, False, planned.unloaded)
    for path in planned.folders:
        files.remove(path)
        checked.warnings.extend([MOUNTED.format(path)] if os.path.lexists(path) else [])
    units.take(reader.run, planned.starts)
    return checked


def check(planned: Plan, reader: Reader, move: candidates.Move) -> files.Checked:
    """Have the programs check the files, and change nothing.

    :raises files.Refused: by a program
    """
    return files.replace_all(planned.pending, reader.find, reader.run, move, True, planned.unloaded)
