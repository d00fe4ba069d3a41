# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What leads from one state of a member to another: which files change, and which commands follow. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

from ..._shared import mark, paths, resolver_records
from ..._shared.engines import AGENT, ANYCAST, CONFIGS, FRR_UNIT, NATIVE, UNITS
from ..deploy import steps
from ..read import facts
from .snapshot import ANNOUNCING, NAMES, ROUTERS, WATCHED_UNITS, File, Snapshot, Unit

SYSTEMD = "/etc/systemd/"
SYSCTL = "/etc/sysctl.d/"
LIBRARY = "/usr/local/lib/onprem-lb-agent/"
# The tables of nftables that are loaded from a file.
TABLES = {
    "/etc/onprem-lb/api-redirect.nft": "onprem_lb_api",
    "/etc/onprem-lb/machine-config.nft": "onprem_lb_machine_config",
}
# What has a program of its own, which is started anew with each change of its files.
STARTED_ANEW = (paths.METRICS, paths.RENEWAL, paths.FOLLOWING)
SIGNALLED = ("systemctl", "kill", "--kill-who=main")
NOT_WAITED_FOR = (paths.FOLLOWING, paths.PLANE)
# A plane removes its table, if it is ended as its unit says. A server takes its VIPs from lo, by its program.
STOPPED_FIRST = (paths.PLANE, paths.SERVER)
LEADING = (*ANNOUNCING, *ROUTERS)  # clients to this host: after what serves them, and before it as they stop
# As frr-reload does it, without ending a session that does not depend on the difference: `restoring` knows how.
LOAD_FRR = ["frr-reload.py", "--reload", paths.FRR_CONFIG]


class FileChanges(NamedTuple):
    """The files to write, and the paths to delete."""

    write: List[File]
    delete: List[str]

    @property
    def paths(self) -> List[str]:
        return [file.path for file in self.write] + self.delete


def of_files(now: Snapshot, then: Snapshot) -> FileChanges:
    """Return what makes the files of now those of then.

    A configuration of others stays, if there was none then, and so do the names, if there are none now or then, and a
    certificate that a configuration which somebody has edited names.
    """
    names = NAMES if keeps_names(now, then) else ()
    before = {file.path: file for file in now.files if file.path not in names}
    after = {file.path: file for file in then.files if file.path not in names}
    gone = [path for path in before if path not in after and not _is_of_others(before[path], [*now.configs.values()])]
    gone = [
        path for path in gone if not _is_shown(path, [after[each] for each in now.configs.values() if each in after])
    ]
    changed = [file for path, file in after.items() if before.get(path) != file]
    return FileChanges(sorted(changed, key=lambda file: not _is_certificate(file.path)), gone)  # before what names them


def _is_shown(path: str, configs: Sequence[File]) -> bool:
    """Whether a file is a certificate that a configuration names."""
    return _is_certificate(path) and any(path.encode() in each.content for each in configs)


def _is_certificate(path: str) -> bool:
    return path.startswith(f"{paths.CERTIFICATES}/")


def keeps_names(now: Snapshot, then: Snapshot) -> bool:
    """Whether the resolver has come or gone since: a host keeps it, or does without it, and asks nobody for that."""
    here, there = ([file.path for file in each.files if file.path in NAMES] for each in (now, then))
    return sorted(here) != sorted(there)


def _is_of_others(file: File, configs: Sequence[str]) -> bool:
    return file.path in (*configs, *paths.FRR_FILES) and not mark.is_marked(file.content.decode(errors="replace"))


def before_files(now: Snapshot, then: Snapshot) -> List[List[str]]:
    """Return the commands before the files change: what a unit needs to stop, it must still find."""
    return [["systemctl", "stop", name] for name in STOPPED_FIRST if _stops(name, now, then)]


def of_units(now: Snapshot, then: Snapshot, changed: Sequence[str]) -> List[List[str]]:
    """Return the commands after the files have changed, without those of the routers.

    :param changed: the paths of these files
    """
    others = [name for name in WATCHED_UNITS if name not in LEADING]
    stopped = [name for name in reversed(others) if name not in STOPPED_FIRST and _stops(name, now, then)]
    return [
        *([["systemctl", "daemon-reload"]] if any(path.startswith(SYSTEMD) for path in changed) else []),
        *_kernel(then, changed),
        *_deleted_tables(then, changed),
        *_enabling(now, then),
        *(["systemctl", "stop", name] for name in stopped),
        *(command for name in others for command in _running(name, now, then, changed)),
        *_loaded_tables(then, changed),  # which lead to the balancer
    ]


def of_routers(now: Snapshot, then: Snapshot, changed: Sequence[str]) -> List[List[str]]:
    """Return the commands that make the routers run as they did then, or FRR and the health gate, with these files.

    One that has no reason to load its file again is left alone. The names follow the VIPs: until then the resolver
    answers as a run or a rollback has had it answer, at both.
    """
    return [
        *(["systemctl", "stop", name] for name in (*reversed(ANNOUNCING), *ROUTERS) if _stops(name, now, then)),
        *(command for name in LEADING for command in _running(name, now, then, changed)),
        *of_names(changed),
    ]


def of_names(changed: Sequence[str]) -> List[List[str]]:
    """Return the command that has the resolver answer what its files say: it reads its configuration at a start alone.

    No router waits for it.
    """
    verb = "try-restart" if resolver_records.CONFIG in changed else "try-reload-or-restart"
    return [["systemctl", "--no-block", verb, paths.RESOLVER]] if {*NAMES} & {*changed} else []


def _kernel(then: Snapshot, changed: Sequence[str]) -> Iterator[List[str]]:
    for file in then.files:
        if file.path.startswith(SYSCTL) and file.path in changed:
            yield ["sysctl", "--ignore", "--load", file.path]


def _deleted_tables(then: Snapshot, changed: Sequence[str]) -> Iterator[List[str]]:
    there = {file.path for file in then.files}
    for path, table in TABLES.items():
        if path in changed and path not in there:
            yield ["nft", f"add table inet {table}; delete table inet {table}"]


def _loaded_tables(then: Snapshot, changed: Sequence[str]) -> Iterator[List[str]]:
    there = {file.path for file in then.files}
    yield from (["nft", "--file", path] for path in TABLES if path in changed and path in there)


def _enabling(now: Snapshot, then: Snapshot) -> Iterator[List[str]]:
    off = dict.fromkeys(ANNOUNCING, Unit(False, False))  # a state has those alone that were set up
    before, after = {**off, **now.units}, {**off, **then.units}
    for name, unit in after.items():
        if name in before and before[name].enabled != unit.enabled:
            yield ["systemctl", "enable" if unit.enabled else "disable", name]


def _stops(name: str, now: Snapshot, then: Snapshot) -> bool:
    return name in now.units and now.units[name].active and not (name in then.units and then.units[name].active)


def _running(name: str, now: Snapshot, then: Snapshot, changed: Sequence[str]) -> List[List[str]]:
    """Return the command by which a unit that ran then runs again, with the files of then."""
    if name not in then.units or not then.units[name].active:
        return []
    if not (name in now.units and now.units[name].active):
        return [_started("start", name)]
    is_part = any(path.startswith(f"/etc/systemd/system/{name}") for path in changed)
    if name in UNITS[AGENT]:
        return _of_agent(name, is_part and name in ROUTERS, now, then, changed)
    if name in STARTED_ANEW:
        is_part = is_part or any(f"/{name.partition('.')[0]}/" in path for path in changed)
    if name == FRR_UNIT:
        return [LOAD_FRR] if {*paths.FRR_FILES} & {*changed} else []
    if name == paths.GATE:
        return _of_gate(is_part, changed)
    if name == paths.ANSWERS:
        is_part = is_part or any("/onprem-lb-keepalived/" in path for path in changed)
    if name == paths.PLANE:
        return _of_direct(name, is_part, changed)
    if name == paths.SERVER:
        is_part = is_part or any("/onprem-lb-direct-server/" in path for path in changed)
        return [["systemctl", "reload", name]] if is_part else []
    if name in UNITS[NATIVE]:
        is_loaded = then.configs.get(name.partition(".")[0]) in changed
        return [["systemctl", "reload", name]] if is_part or is_loaded else []
    return [_started("restart", name)] if is_part else []


def _started(verb: str, name: str) -> List[str]:
    """Return the command that starts a unit. The routers do not wait for what looks for servers first."""
    return ["systemctl", verb, *(["--no-block"] if name in NOT_WAITED_FOR else []), name]


def _of_direct(name: str, is_part: bool, changed: Sequence[str]) -> List[List[str]]:
    """Return the command for the direct plane, whose table stays."""
    if is_part or any(path.startswith("/usr/local/lib/onprem-lb-direct/") for path in changed):
        return [[*SIGNALLED, "--signal=USR2", name]]
    return [["systemctl", "reload", name]] if paths.PLANE_CONFIG in changed else []


def _of_gate(is_part: bool, changed: Sequence[str]) -> List[List[str]]:
    """Return the command for the health gate, which keeps its VIPs as it starts again."""
    if is_part or any(path.startswith(f"{paths.library(ANYCAST)}/") for path in changed):
        return [["systemctl", "restart", paths.GATE]]
    return [["systemctl", "reload", paths.GATE]] if paths.GATE_CONFIG in changed else []


def _of_agent(name: str, is_restarted: bool, now: Snapshot, then: Snapshot, changed: Sequence[str]) -> List[List[str]]:
    """Return the commands for a daemon of the agent, which changes its version without a gap."""
    is_another = any(path.startswith(LIBRARY) for path in changed)
    if is_restarted or (is_another and name in ROUTERS):
        told = [] if _leaves_addresses(now, then) else [[*SIGNALLED, "--signal=USR1", name]]
        return [*told, ["systemctl", "restart", name]]
    if is_another:
        return [[*SIGNALLED, "--signal=USR2", name]]
    return [["systemctl", "reload", name]] if CONFIGS[name] in changed else []


def _leaves_addresses(now: Snapshot, then: Snapshot) -> bool:
    """Whether the router might leave addresses that it does not adopt as it starts again, as in a run.

    So might one whose configuration cannot be read: it has to release them itself, and takes its VIPs anew.
    """
    before, after = (_agents_config(each) for each in (now, then))
    held = [{**each, "held": steps.all_addresses(each)} for each in before.get("instances", [])]
    return not held or bool(steps.orphaned(held, after))


def _agents_config(snapshot: Snapshot) -> Dict[str, Any]:
    path = CONFIGS[UNITS[AGENT].router]
    return facts.agent_config(
        "".join(file.content.decode(errors="replace") for file in snapshot.files if file.path == path)
    )
