# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Has systemd units run with their files, or stops them: which commands of systemctl that takes.

``read`` reads the units and ``take`` runs the commands. What is between them is pure.
"""

from __future__ import annotations

from typing import Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ..read.in_force import UNIT_FILES
from ..read.reader import Run, last_words, show

Command = List[str]

STARTED, STOPPED = "started", "stopped"
RESTARTED, RELOADED, UNCHANGED = "restarted", "reloaded", "unchanged"
PROPERTIES = ("Id", "ActiveState", "UnitFileState", "NeedDaemonReload")
RUNS = ("active", "reloading")
IS_GONE = ("inactive", "failed")  # one that fails and starts again and again is activating


class Failed(Exception):
    """A unit is not as wanted; the text is a sentence."""


class Found(NamedTuple):
    """A unit as systemd has it."""

    state: str = "inactive"  # its ActiveState
    enabled: bool = False
    outdated: bool = False  # systemd has not read its files since they changed


class Wanted(NamedTuple):
    """A unit as it should be.

    :ivar state: started and enabled, or stopped and disabled
    :ivar on_change: what becomes of it where it runs and has not loaded its files as they are. One that is reloaded
        for its configuration is restarted for its unit
    :ivar wait: whether a run waits until it has started
    """

    name: str
    state: str = STARTED
    on_change: str = RESTARTED
    wait: bool = True


def read(run: Run, names: Sequence[str]) -> Dict[str, Found]:
    """Return the units by name. One that does not exist is inactive, and each is where systemd does not run."""
    shown = {each.get("Id", ""): each for each in show(run, names, PROPERTIES)} if names else {}
    return {name: _found(shown.get(name, {})) for name in names}


def _found(properties: Mapping[str, str]) -> Found:
    return Found(
        properties.get("ActiveState", "inactive"),
        properties.get("UnitFileState") == "enabled",
        properties.get("NeedDaemonReload") == "yes",
    )


def stops(wanted: Sequence[Wanted], found: Mapping[str, Found]) -> List[Command]:
    """Return what stops the units that are not to run, before their files go."""
    commands = []
    for unit in (unit for unit in wanted if unit.state == STOPPED):
        commands += [["disable", unit.name]] if found[unit.name].enabled else []
        commands += [["stop", unit.name]] if found[unit.name].state not in IS_GONE else []
        commands += [["reset-failed", unit.name]] if found[unit.name].state == "failed" else []
    return _systemctl(commands)


def starts(
    wanted: Sequence[Wanted], found: Mapping[str, Found], changed: Mapping[str, Collection[str]]
) -> List[Command]:
    """Return what has the others run with their files, after these were written.

    :param changed: the files of each unit that were written, or that it has not loaded
    """
    commands = []
    for unit in (unit for unit in wanted if unit.state == STARTED):
        commands += [["enable", unit.name]] if not found[unit.name].enabled else []
        verb = _verb(unit, found[unit.name], changed.get(unit.name, ()))
        commands += [[verb, *([] if unit.wait else ["--no-block"]), unit.name]] if verb else []
    return _systemctl(commands)


def reload_systemd() -> List[Command]:
    """Return what has systemd read the files of its units."""
    return _systemctl([["daemon-reload"]])


def own(paths: Iterable[str]) -> List[str]:
    """Return the files that units are made of. The others are those that their programs load."""
    return [path for path in paths if path.startswith(UNIT_FILES)]


def take(run: Run, commands: Sequence[Command]) -> None:
    """Run commands of systemctl.

    :raises Failed: with what the unit has said, where it has said something
    """
    for command in commands:
        code, out, err = run(command)
        if code:
            words = last_words(run, command[-1]) or " ".join((err or out).split()) or f"exit code {code}"
            raise Failed(f"`{' '.join(command)}` failed: {words}")


def _verb(unit: Wanted, found: Found, changed: Collection[str]) -> str:
    """Return how a unit comes to run with its files; '' if it does."""
    restarts = unit.on_change == RESTARTED or (unit.on_change == RELOADED and own(changed))
    if found.state not in RUNS:
        # A start joins one that is under way, and fails with it although its cause has been mended meanwhile.
        return "start" if unit.on_change == UNCHANGED else "restart"
    if changed and unit.on_change != UNCHANGED:
        return "restart" if restarts else "reload"
    return ""


def _systemctl(commands: List[Command]) -> List[Command]:
    return [["systemctl", *command] for command in commands]
