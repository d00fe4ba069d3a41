# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a host has of haproxy, keepalived or FRR that is not this collection's, and what becomes of it.

A file of others stops the run, or is kept beside the new one if the user adopts it. `read` looks at the host, `judge`
decides.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Sequence

from ..._agent.keepalived import conf as keepalived_conf
from ..._agent.keepalived import unread
from ..._shared import mark, statements
from ..._shared.engines import FRR, HAPROXY, KEEPALIVED
from ..._shared.load_records import read_record
from . import cgroups, facts, in_force, ownership, start_options
from .processes import Process
from .reader import Reader

UNITS = "/etc/systemd/system"
PROGRAMS = "/usr/sbin:/usr/bin"
DISTRIBUTION = ("/usr/lib/", "/lib/", "/dev/null")  # where a link leads that is a package's unit, or masks one
# Settings of a unit after a change of which a reload goes on with the process of before.
CHANGES_THE_START = re.compile(r"^\s*(?:ExecStart|Environment\w*)\s*=", re.MULTILINE)
BESIDE = {FRR: ("/etc/frr/daemons",)}  # what this collection replaces beside a program's configuration
STRICT_TABLES = ("ip keepalived", "ip6 keepalived")  # with which keepalived's vrrp_strict drops what is sent to VIPs


class File(NamedTuple):
    """A file that exists."""

    path: str
    text: str
    is_as_shipped: bool = False  # as a package brought it
    is_kept: bool = False  # another file is kept beside it from an earlier run


class Found(NamedTuple):
    """What there is of one program."""

    program: str
    path: str  # of its configuration
    config: Sequence[File]  # as far as it is there
    units: Sequence[File]  # its unit and its drop-ins in /etc, without this collection's own
    processes: Sequence[Process]
    options: Sequence[File] = ()  # the files in which a distribution lets options be added to its start
    kept: Sequence[str] = ()  # the paths of the files that are kept
    is_ours: bool = False  # this collection has set its unit up
    is_installed_by_us: bool = False
    is_installed: bool = True
    has_loaded: bool = False  # this collection's unit has had it load a file since the boot
    runs: bool = False  # its unit does; asked of keepalived alone
    tables: Sequence[str] = ()  # of nftables, which it has made


class Takeover(NamedTuple):
    """What becomes of it."""

    refusals: List[str]  # a sentence for each thing that stops the run unless the user adopts it
    problems: List[str]  # a sentence for each that stops the run in any case
    unadoptable: List[str]  # a sentence for each that stops the run if this program is to run here
    keep: List[str]  # files to keep when they are replaced
    set_aside: List[str]  # files of systemd that must not stay in force
    stop: bool  # whether the program has to stop before they are set aside
    restart: bool  # whether it must not be reloaded into the new file
    tables: List[str]  # of nftables, which are to be deleted once it is gone
    lost: List[statements.Lost]  # the statements of its configuration that the new one lacks
    put_back: List[str]  # where a removal puts back what is kept


def judge(found: Found) -> Takeover:
    config = [file for file in found.config if not mark.is_marked(file.text)]
    others = [file for file in config if not file.is_as_shipped]
    # What is added after this collection has set the unit up is meant to change what it runs.
    units = [] if found.is_ours else [file for file in found.units if not mark.is_marked(file.text)]
    # A package's default file comes back, too, unless its package goes with the removal or something else was kept.
    keep = [file for file in config if file in others or not (found.is_installed_by_us or file.is_kept)]
    confs = others if found.program == KEEPALIVED else []
    unevaluated = [f"{file.path} has {what}." for file in confs for what in unread.unread(file.text)]
    # keepalived remembers an error or a warning of the file with which it was started, and may end at a reload.
    is_of_others = found.runs and bool(others or not found.has_loaded)
    return Takeover(
        refusals=[
            *(_of_config(file, found.program) for file in others),
            *(_of_unit(file, found.program) for file in units),
            *(_of_process(process) for process in found.processes if _is_mistaken_for_ours(process)),
        ],
        problems=[_kept_twice(file) for file in [*keep, *units] if file.is_kept],
        unadoptable=[
            *unevaluated,
            *(sentence for file in found.options for sentence in _of_options(file, found)),
            *(_started_by_its_package(file, found) for file in others if not found.is_installed and _has_vips(file)),
        ],
        keep=[file.path for file in keep],
        set_aside=[file.path for file in units],
        stop=any(CHANGES_THE_START.search(file.text) for file in units),
        restart=is_of_others,
        tables=[*found.tables] if is_of_others or not found.runs else [],
        lost=[] if unevaluated else [each for file in confs for each in statements.lost(file.text)],
        put_back=list(found.kept),
    )


def _has_vips(file: File) -> bool:
    return bool(keepalived_conf.instances(file.text))


def _started_by_its_package(file: File, found: Found) -> str:
    """Say that two programs would hold these VIPs: the configuration is another's, which runs in a container."""
    return (
        f"{file.path} has VIPs, and {found.program} is not installed: its package may start it with that file, next "
        f"to the {found.program} that now reads it: move the file away, and set the VRIDs (vrid of a VIP) that are to "
        "stay."
    )


def _of_config(file: File, program: str) -> str:
    vips = [address for each in keepalived_conf.instances(file.text) for address in each["addresses"]]
    what = f"{file.path}, which has the VIPs {', '.join(vips)}," if vips else file.path
    return (
        f"{what} was not written by this collection and would be replaced: move it away, or set {program}_adopt to "
        f"true, and it is kept as {ownership.kept(file.path)} until the removal."
    )


def _of_unit(file: File, program: str) -> str:
    return (
        f"{file.path} changes {program}.service and was not written by this collection: move it away, or set "
        f"{program}_adopt to true, and it is set aside as {ownership.kept(file.path)} until the removal."
    )


def _of_options(file: File, found: Found) -> Iterator[str]:
    for line in start_options.other_configs(file.text, found.path):
        yield (
            f"{file.path} has {line}, so {found.program} would go on with that file whatever {found.path} says: "
            "take it out."
        )


def _is_mistaken_for_ours(process: Process) -> bool:
    """Whether the check `killall -0 haproxy` finds a process that is not the unit's.

    A pod is left alone: the routers of OpenShift are haproxy, too.
    """
    where = process.runs_in
    in_the_unit = where == cgroups.RunsIn(cgroups.UNIT, f"{HAPROXY}.service")
    return process.program == HAPROXY and where.kind in (cgroups.UNIT, cgroups.CONTAINER) and not in_the_unit


def _of_process(process: Process) -> str:
    return (
        f"{process}, outside {HAPROXY}.service, and the check `killall -0 {HAPROXY}` cannot tell the two apart: "
        f"{process.mend}, or set {HAPROXY}_adopt to true, and it is left running."
    )


def _kept_twice(file: File) -> str:
    return (
        f"{file.path} was not written by this collection, and another one is kept from before as "
        f"{ownership.kept(file.path)}: move one of them away."
    )


def read(reader: Reader, configs: Dict[str, str], programs: Sequence[Process], own: Collection[str]) -> Dict[str, Any]:
    """Return the takeover of each program, by name.

    :param configs: the path of each program's configuration
    :param programs: the processes with these names
    :param own: the packages that this collection has installed
    """
    found = {}
    for program, path in configs.items():
        units, every = _units(program), [path, *BESIDE.get(program, ())]
        has_loaded = bool(read_record(reader.text(in_force.record_of(program))).checksum)
        found[program] = Found(
            program=program,
            path=path,
            config=[_file(reader, each) for each in every if os.path.lexists(each)],
            units=[_file(reader, unit) for unit in units if _is_of_others(unit)],
            processes=[process for process in programs if process.program == program],
            options=[File(file, reader.text(file)) for file in start_options.files(program)],
            kept=_kept([*every, f"{UNITS}/{program}.service", f"{UNITS}/{program}.service.d/*.conf"]),
            is_ours=facts.is_ours(f"{program}.service", UNITS),
            is_installed_by_us=program in own,
            is_installed=bool(shutil.which(program, path=PROGRAMS)),
            has_loaded=has_loaded,
            **(_of_keepalived(reader, path, has_loaded) if program == KEEPALIVED else {}),
        )
    return {program: judge(each)._asdict() for program, each in found.items()}


def _of_keepalived(reader: Reader, path: str, has_loaded: bool) -> Dict[str, Any]:
    """Return whether keepalived runs, and its tables: only where something else may have started it."""
    if has_loaded and mark.is_marked(reader.text(path)):
        return {}
    nft = reader.find("nft")
    listed = reader.run([nft, "list", "tables"])[1].splitlines() if nft else []
    return {
        "runs": bool(reader.units_in("ActiveState", [f"{KEEPALIVED}.service"], "active")),
        "tables": [table for table in STRICT_TABLES if f"table {table}" in listed],
    }


def _units(program: str) -> List[str]:
    return [f"{UNITS}/{program}.service", *sorted(glob.glob(f"{UNITS}/{program}.service.d/*.conf"))]


def _is_of_others(unit: str) -> bool:
    return os.path.isfile(unit) and not os.path.realpath(unit).startswith(DISTRIBUTION)


def _file(reader: Reader, path: str) -> File:
    text, beside = reader.text(path), ownership.kept(path)
    is_as_shipped = not mark.is_marked(text) and reader.is_as_shipped(path)
    # An interrupted run may have kept this very file already.
    is_kept = os.path.lexists(beside) and not (os.path.exists(path) and os.path.samefile(path, beside))
    return File(path, text, is_as_shipped, is_kept)


def _kept(patterns: Sequence[str]) -> List[str]:
    found = [path for pattern in patterns for path in sorted(glob.glob(ownership.kept(pattern)))]
    return [path[: -len(ownership.KEPT)] for path in found]
