# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What has to be done on a host so that it runs the agent as wanted, in its order. Pure.

A run that was interrupted leaves a mark; the next one then does again what cannot be seen to have been done.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import DAEMONS, PROXY, VRRP, Daemon

PYTHON = (3, 8)  # the agent's floor

# What may be done. A new version takes over from the old one, see the two handovers; a router that is restarted comes
# back to its addresses.
CREATE_USER, INSTALL, STOP, REPLACE, POINT = "create user", "install", "stop", "replace", "point"
RELOAD_SYSTEMD, ENABLE, START, RELOAD, RENEW, RESTART = (
    "reload systemd",
    "enable",
    "start",
    "reload",
    "renew",
    "restart",
)
REMOVE, REMOVE_USER = "remove", "remove user"


class Step(NamedTuple):
    """One thing to be done to one thing."""

    do: str
    what: str

    def __str__(self) -> str:
        return f"{self.do} {self.what}".rstrip()


class Unit(NamedTuple):
    """What systemd says of a unit."""

    active: bool = False
    enabled: bool = False
    outdated: bool = False  # its file is newer than what systemd has read
    pid: int = 0
    archive: str = ""  # the path of the version that the process runs
    renews: bool = False  # whether that version can hand over to another one


class ConflictingService(NamedTuple):
    """A program that does what the agent is to do."""

    program: str  # keepalived or haproxy
    pid: int
    unit: str  # '' where systemd does not know it
    ours: bool  # set up by this collection


class ActualState(NamedTuple):
    """The host as it is."""

    systemd: bool
    raw_sockets: bool
    version: Tuple[int, ...]  # of the Python that is to run the agent, () where there is none
    users: FrozenSet[str]
    pending: Tuple[str, ...]  # the files that differ from what is wanted
    whole: bool  # the wanted version is there
    pointers: Dict[str, str]  # links, and where they point
    unfinished: bool
    units: Dict[str, Unit]
    rivals: Tuple[ConflictingService, ...]
    enabled_rivals: FrozenSet[str]  # units
    remains: Tuple[str, ...]  # all that an installation has left, for its removal


class DesiredState(NamedTuple):
    """The host as it is to be."""

    daemons: Tuple[Daemon, ...]
    archive: str  # the path of the version
    pointers: Dict[str, str]  # links, and where they are to point
    files: Dict[str, str]  # the path of each daemon's unit and configuration, by what they are called in ``pending``
    python: str
    replace: Tuple[str, ...] = ()  # programs that may be stopped


def faults(wanted: DesiredState, found: ActualState) -> List[str]:
    """Return a sentence for each thing that keeps the agent from running here."""
    return list(_faults(wanted, found))


def _faults(wanted: DesiredState, found: ActualState) -> Iterator[str]:
    if not found.systemd:
        yield "systemd does not run here, and it is what starts the agent and keeps it alive."
    if not found.version:
        yield f"{wanted.python} is no Python that runs: name another in python (agent_python)."
    elif found.version < PYTHON:
        there, needed = (".".join(map(str, each)) for each in (found.version, PYTHON))
        yield f"{wanted.python} is Python {there}, and the agent needs {needed} or later: name another (agent_python)."
    routes = any(daemon.name == VRRP for daemon in wanted.daemons)
    if routes and not found.raw_sockets:
        yield "there is no right to open raw sockets, which VRRP needs: use become, or give the container NET_RAW."
    for rival in found.rivals:
        if rival.program == "keepalived" and routes:
            yield from _in_the_way(rival, wanted.replace)


def _in_the_way(rival: ConflictingService, replace: Sequence[str]) -> Iterator[str]:
    whose = "this collection's" if rival.ours else "not this collection's"
    who = f"{rival.program} runs here (pid {rival.pid}, {rival.unit or 'no systemd unit'}, {whose})"
    fight = f"{who}, and two VRRP routers on one host fight"
    if not rival.unit:
        yield f"{fight}: stop it."
    elif rival.program not in replace:
        yield f"{fight}: stop it, or name it in replace (agent_replace), and it is stopped and disabled for the agent."


def present(wanted: DesiredState, found: ActualState) -> List[Step]:
    """Return what makes the host as wanted; nothing where it is."""
    return [
        *_users(wanted, found),
        *([] if found.whole else [Step(INSTALL, wanted.archive)]),
        *_unwanted(wanted, found),
        *(Step(REPLACE, path) for path in found.pending),
        *(Step(POINT, link) for link in sorted(wanted.pointers) if found.pointers.get(link) != wanted.pointers[link]),
        *_systemd(wanted, found),
        *_replaced(wanted, found),
        *(step for daemon in wanted.daemons for step in _action(daemon, wanted, found)),
    ]


def _users(wanted: DesiredState, found: ActualState) -> List[Step]:
    missing = [daemon.program for daemon in wanted.daemons if daemon.program not in found.users]
    return [Step(CREATE_USER, name) for name in missing]


def _unwanted(wanted: DesiredState, found: ActualState) -> List[Step]:
    """A daemon that has nothing to do any more; the router first, which gives its addresses up."""
    gone = [daemon for daemon in reversed(DAEMONS) if daemon not in wanted.daemons]
    return [Step(STOP, daemon.unit) for daemon in gone if _is_there(found.units.get(daemon.unit, Unit()))]


def _is_there(unit: Unit) -> bool:
    return unit.active or unit.enabled


def _systemd(wanted: DesiredState, found: ActualState) -> List[Step]:
    units = [wanted.files[daemon.unit] for daemon in DAEMONS]
    outdated = any(unit.outdated for unit in found.units.values()) or any(path in found.pending for path in units)
    steps = [Step(RELOAD_SYSTEMD, "")] if outdated else []
    known = [(daemon.unit, found.units.get(daemon.unit, Unit())) for daemon in wanted.daemons]
    return steps + [Step(ENABLE, name) for name, unit in known if not unit.enabled]


def _replaced(wanted: DesiredState, found: ActualState) -> List[Step]:
    """The programs that are to go: as late as can be, right before what takes their place; who has the VIPs first."""
    active = {rival.unit for rival in found.rivals if rival.program in wanted.replace and rival.unit}
    named = {f"{name}.service" for name in wanted.replace} & found.enabled_rivals
    return [Step(STOP, unit) for unit in sorted(active | named, key=lambda unit: unit != "keepalived.service")]


def _action(daemon: Daemon, wanted: DesiredState, found: ActualState) -> List[Step]:
    """What brings a daemon to its new files, with the least that any client could notice."""
    unit = found.units.get(daemon.unit, Unit())
    if not unit.active:
        return [Step(START, daemon.unit)]
    # What the proxy's unit says counts from its next start on: it would cost connections. The router costs nothing.
    if daemon.name == VRRP and wanted.files[daemon.unit] in found.pending:
        return [Step(RESTART, daemon.unit)]
    if unit.archive != wanted.archive or daemon.program in _renamed(wanted, found):
        return [Step(RENEW if daemon.name == PROXY or unit.renews else RESTART, daemon.unit)]
    if found.unfinished or wanted.files[daemon.name] in found.pending:
        return [Step(RELOAD, daemon.unit)]
    return []


def _renamed(wanted: DesiredState, found: ActualState) -> List[str]:
    """Return the programs that are to run in another Python."""
    changed = [link for link, target in wanted.pointers.items() if found.pointers.get(link) != target]
    return [link.rpartition("/")[2] for link in changed]


def absent(found: ActualState) -> List[Step]:
    """Return what takes all of it away. The router goes first: a VIP leaves before who serves it."""
    units = [daemon.unit for daemon in reversed(DAEMONS)]
    steps = [Step(STOP, name) for name in units if _is_there(found.units.get(name, Unit()))]
    steps += [Step(REMOVE_USER, name) for name in sorted(found.users)]
    steps += [Step(REMOVE, path) for path in found.remains]
    return steps + ([Step(RELOAD_SYSTEMD, "")] if steps else [])


def left_behind(held: Sequence[str], config: Optional[Dict[str, Any]]) -> List[str]:
    """Return the addresses that a router has and its new configuration does not name.

    Nobody would take them off the interface after a restart that keeps addresses.
    """
    instances = (config or {}).get("instances", ())
    kept = {address.partition("/")[0] for each in instances for address in each["addresses"]}
    return [address for address in held if address.partition("/")[0] not in kept]
