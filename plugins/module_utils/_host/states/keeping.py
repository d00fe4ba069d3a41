# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a member keeps on the way back to a state: a router that must not stop, and the work of others. Pure."""

from __future__ import annotations

import fnmatch
import json
from typing import Any, Collection, Dict, List, Mapping

from ..._agent.keepalived import conf as keepalived_conf
from ..._shared import held_back, paths
from ..._shared.engines import AGENT, CONFIGS, KEEPALIVED, UNITS
from .. import records
from .snapshot import NAMES, ROUTERS, Snapshot

# Each version has a name of its own there, and only runs write to it.
PROGRAMS = "/usr/local/lib/"
# What a router reads and runs, beside its configuration, and what says why it is stopped.
OF_ROUTERS = (
    *(f"/etc/systemd/system/{unit}*" for unit in ROUTERS),
    paths.members_record("*"),
    paths.SYSCTL,
    *(f"{paths.library(name)}/*" for name in ("agent", "keepalived")),
    *held_back.PATHS.values(),
    *NAMES,  # which are of its VIPs
)


def of_others(now: Snapshot, then: Snapshot, written: Mapping[str, Collection[str]]) -> List[str]:
    """Return the files that somebody else has changed: they are neither as in the state nor as a run has left them.

    :param written: the checksums of what runs have written to each path since the state was saved
    """
    before = {file.path: (file.content, file.target) for file in then.files}
    return [
        file.path
        for file in now.files
        if not file.path.startswith(PROGRAMS)
        and before.get(file.path) != (file.content, file.target)
        and records.checksum(file.content) not in written.get(file.path, ())
    ]


def with_files(now: Snapshot, then: Snapshot, paths: Collection[str]) -> Snapshot:
    """Return the state with these files as they are now."""
    files = [file for file in then.files if file.path not in paths]
    return then._replace(files=[*files, *(file for file in now.files if file.path in paths)])


def with_router(now: Snapshot, then: Snapshot) -> Snapshot:
    """Return the state with the router as it is now.

    Where the two routers ask different things of this host, what one asks for may be gone in the state. Then all of
    it stays.
    """
    if _asked(now) != _asked(then):
        return now._replace(openings=then.openings, interfaces=then.interfaces)
    kept = {
        file.path
        for file in [*now.files, *then.files]
        if is_of_router(file.path, now.configs) or any(fnmatch.fnmatch(file.path, each) for each in OF_ROUTERS)
    }
    units = {**then.units, **{name: now.units[name] for name in ROUTERS if name in now.units}}
    return with_files(now, then, kept)._replace(units=units, instances=now.instances)


def is_of_router(path: str, configs: Mapping[str, str]) -> bool:
    """Whether a file is the configuration of a router, or of what announces VIPs in its place."""
    return path in (configs.get(KEEPALIVED), CONFIGS[UNITS[AGENT].router], paths.GATE_CONFIG, *paths.FRR_FILES)


def runs_router(snapshot: Snapshot) -> List[str]:
    """Return the routers that run."""
    return [name for name in ROUTERS if name in snapshot.units and snapshot.units[name].active]


def _asked(snapshot: Snapshot) -> List[Any]:
    """Return the engine, and what its router's configuration has beside the instances: what it checks."""
    texts = {file.path: file.content.decode(errors="replace") for file in snapshot.files}
    native = keepalived_conf.without_instances(texts.get(snapshot.configs.get(KEEPALIVED, ""), ""))
    agent = _without_instances(texts.get(CONFIGS[UNITS[AGENT].router], ""))
    return [snapshot.engine, agent if snapshot.engine == AGENT else native]


def _without_instances(vrrp_json: str) -> Dict[str, Any]:
    try:
        found = json.loads(vrrp_json or "{}")
    except ValueError:
        return {"damaged": vrrp_json}
    return {key: value for key, value in found.items() if key != "instances"} if isinstance(found, dict) else {}
