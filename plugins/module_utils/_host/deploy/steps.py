# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plans the steps that make a host run the agent as desired, in their order. Pure.

An interrupted run leaves a mark. The next one then repeats the steps whose completion cannot be verified.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..._shared.engines import DAEMONS, KEEPALIVED, NATIVE, PROXY, UNITS, VRRP, Daemon
from ..read import obstacles

MIN_PYTHON = (3, 8)

# In an upgrade a new version of the proxy takes over from the running one. A router that is restarted adopts its
# addresses.
CREATE_USER, INSTALL, STOP, REPLACE, DELETE, POINT = "create user", "install", "stop", "replace", "delete", "point"
RELOAD_SYSTEMD, ENABLE, START, RELOAD, UPGRADE = "reload systemd", "enable", "start", "reload", "upgrade"
RESTART, REMOVE, REMOVE_USER = "restart", "remove", "remove user"


class Step(NamedTuple):
    """One action on one unit, file or user."""

    do: str
    what: str

    def __str__(self) -> str:
        return f"{self.do} {self.what}".rstrip()


class Unit(NamedTuple):
    """The state of a unit, as systemd reports it."""

    active: bool = False
    enabled: bool = False
    outdated: bool = False  # its file has changed since systemd read it
    pid: int = 0
    archive: str = ""  # the path of the version that the process runs
    loaded: str = ""  # the SHA-256 of the configuration that the process has loaded
    masked: bool = False


class ConflictingService(NamedTuple):
    """A running program that does the same as the agent."""

    program: str  # keepalived or haproxy
    pid: int
    unit: str  # '' if it is not the program's own unit
    ours: bool  # set up by this collection
    where: str = ""  # what it runs in, in words, where that is not the program's own unit


class ActualState(NamedTuple):
    """The host as it is."""

    systemd: bool
    raw_sockets: bool
    version: Tuple[int, ...]  # of the Python that is to run the agent; () if there is none
    users: FrozenSet[str]
    pending: Tuple[str, ...]  # the files that differ from the desired ones
    installed: bool  # the desired version is there
    pointers: Dict[str, str]  # symbolic links and their targets
    unfinished: bool
    units: Dict[str, Unit]
    conflicting: Tuple[ConflictingService, ...]
    enabled_conflicting: FrozenSet[str]  # units
    leftovers: Tuple[str, ...]  # the paths of an installation, for its removal
    unwritable: Tuple[str, ...] = ()  # a sentence for each file that cannot be written


class DesiredState(NamedTuple):
    """The host as it should be."""

    daemons: Tuple[Daemon, ...]
    archive: str  # the path of the version
    pointers: Dict[str, str]  # symbolic links and their targets
    files: Dict[str, str]  # the path of each unit, by its name, and of each configuration, by the daemon's name
    python: str
    replace: Tuple[str, ...] = ()  # programs that may be stopped
    loaded: Dict[str, str] = {}  # the SHA-256 of each configuration, by the daemon's name
    judged: Tuple[Daemon, ...] = DAEMONS  # the others stay as they are


def faults(desired: DesiredState, actual: ActualState) -> List[str]:
    """Return a sentence for each reason why the agent cannot run here."""
    return list(_faults(desired, actual))


def _faults(desired: DesiredState, actual: ActualState) -> Iterator[str]:
    if not actual.systemd:
        yield "systemd does not run here, and it is what starts the agent and keeps it alive."
    if not actual.version:
        yield f"{desired.python} is not a working Python: name another in python (agent_python)."
    elif actual.version < MIN_PYTHON:
        there, needed = (".".join(map(str, each)) for each in (actual.version, MIN_PYTHON))
        yield f"{desired.python} is Python {there}, and the agent needs {needed} or later: name another (agent_python)."
    runs_vrrp = any(daemon.name == VRRP for daemon in desired.daemons)
    if runs_vrrp and not actual.raw_sockets:
        yield "there is no permission to open raw sockets, which VRRP needs: use become, or give the container NET_RAW."
    masked = [daemon.unit for daemon in desired.daemons if actual.units.get(daemon.unit, Unit()).masked]
    yield from obstacles.of_masked_units(masked).values()
    yield from actual.unwritable
    for other in actual.conflicting:
        if other.program == KEEPALIVED and runs_vrrp:
            yield from _conflict(other, desired.replace)


def _conflict(other: ConflictingService, replace: Sequence[str]) -> Iterator[str]:
    whose = "this collection's" if other.ours else "not this collection's"
    who = f"{other.program} runs here (pid {other.pid}, {other.unit or other.where or 'no systemd unit'}, {whose})"
    fight = f"{who}, and two VRRP routers on one host fight"
    if not other.unit:
        yield f"{fight}: stop it."
    elif other.program not in replace:
        yield f"{fight}: stop it, or name it in replace (agent_replace), and it is stopped and disabled for the agent."


def present(desired: DesiredState, actual: ActualState) -> List[Step]:
    """Return the steps that lead to the desired state."""
    return [
        *_users(desired, actual),
        *([] if actual.installed else [Step(INSTALL, desired.archive)]),
        *_unwanted(desired, actual),
        *_files(desired, actual),
        *(Step(POINT, link) for link in sorted(changed_pointers(desired, actual))),
        *_systemd(desired, actual),
        *_replaced(desired, actual),
        *(step for daemon in desired.daemons for step in _action(daemon, desired, actual)),
    ]


def _files(desired: DesiredState, actual: ActualState) -> List[Step]:
    unneeded = [daemon for daemon in desired.judged if daemon not in desired.daemons]
    gone = {desired.files[key] for daemon in unneeded for key in (daemon.name, daemon.unit)}
    return [Step(DELETE if path in gone else REPLACE, path) for path in actual.pending]


def _users(desired: DesiredState, actual: ActualState) -> List[Step]:
    missing = [daemon.program for daemon in desired.daemons if daemon.program not in actual.users]
    return [Step(CREATE_USER, name) for name in missing]


def _unwanted(desired: DesiredState, actual: ActualState) -> List[Step]:
    """Return the steps that stop unneeded daemons; the router first, which releases its addresses."""
    unneeded = [daemon for daemon in reversed(desired.judged) if daemon not in desired.daemons]
    return [Step(STOP, daemon.unit) for daemon in unneeded if _is_there(actual.units.get(daemon.unit, Unit()))]


def _is_there(unit: Unit) -> bool:
    return unit.active or unit.enabled


def _systemd(desired: DesiredState, actual: ActualState) -> List[Step]:
    units = [desired.files[daemon.unit] for daemon in DAEMONS]
    outdated = any(unit.outdated for unit in actual.units.values()) or any(path in actual.pending for path in units)
    steps = [Step(RELOAD_SYSTEMD, "")] if outdated else []
    known = [(daemon.unit, actual.units.get(daemon.unit, Unit())) for daemon in desired.daemons]
    return steps + [Step(ENABLE, name) for name, unit in known if not unit.enabled]


def _replaced(desired: DesiredState, actual: ActualState) -> List[Step]:
    """Return the steps that stop the replaced programs, right before the agent starts; the router first."""
    active = {other.unit for other in actual.conflicting if other.program in desired.replace and other.unit}
    named = {f"{name}.service" for name in desired.replace} & actual.enabled_conflicting
    return [Step(STOP, unit) for unit in sorted(active | named, key=lambda unit: unit != UNITS[NATIVE].router)]


def _action(daemon: Daemon, desired: DesiredState, actual: ActualState) -> List[Step]:
    """Return the step that applies a daemon's new files with the least impact on clients."""
    unit = actual.units.get(daemon.unit, Unit())
    if not unit.active:
        return [Step(START, daemon.unit)]
    # The proxy's unit applies from its next start on, because a restart would cut connections. The router's cuts none.
    if daemon.name == VRRP and desired.files[daemon.unit] in actual.pending:
        return [Step(RESTART, daemon.unit)]
    if unit.archive != desired.archive or daemon.program in _renamed(desired, actual):
        return [Step(UPGRADE if daemon.name == PROXY else RESTART, daemon.unit)]
    if actual.unfinished or unit.loaded != desired.loaded[daemon.name]:
        return [Step(RELOAD, daemon.unit)]
    return []


def _renamed(desired: DesiredState, actual: ActualState) -> List[str]:
    """Return the programs whose Python changes."""
    return [link.rpartition("/")[2] for link in changed_pointers(desired, actual)]


def changed_pointers(desired: DesiredState, actual: ActualState) -> List[str]:
    return [link for link, target in desired.pointers.items() if actual.pointers.get(link) != target]


def absent(actual: ActualState) -> List[Step]:
    """Return the steps that remove everything. The router stops first: the VIP leaves before the balancer stops."""
    units = [daemon.unit for daemon in reversed(DAEMONS)]
    steps = [Step(STOP, name) for name in units if _is_there(actual.units.get(name, Unit()))]
    steps += [Step(REMOVE_USER, name) for name in sorted(actual.users)]
    steps += [Step(REMOVE, path) for path in actual.leftovers]
    return steps + ([Step(RELOAD_SYSTEMD, "")] if steps else [])


def orphaned(running: Sequence[Dict[str, Any]], config: Optional[Dict[str, Any]]) -> List[str]:
    """Return the addresses and routes that routers have and their new configuration does not name.

    A restart that keeps addresses would leave them on the host.

    :param running: the instances in the agent's report
    """
    planned = (config or {}).get("instances", ())
    kept = {_carried(address, each) for each in planned for address in all_addresses(each)}
    routes = {route for each in planned for route in each.get("virtual_routes", ())}
    held = [address for each in running for address in each.get("held", ()) if _carried(address, each) not in kept]
    return held + [route for each in running for route in each.get("virtual_routes", ()) if route not in routes]


def all_addresses(instance: Dict[str, Any]) -> Sequence[str]:
    return [*instance.get("addresses", ()), *instance.get("excluded_addresses", ())]


def _carried(address: str, instance: Dict[str, Any]) -> Tuple[str, Any]:
    """Return an address without its prefix length, and the interface that carries it."""
    with_prefix, _dev, interface = address.partition(" dev ")
    return with_prefix.partition("/")[0], interface or instance.get("interface")
