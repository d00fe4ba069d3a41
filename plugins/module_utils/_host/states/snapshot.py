# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a member has of this collection at one time: its files, its units, its openings in the firewall."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import json
import os
import re
import stat
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

from ..._agent.keepalived import conf as keepalived_conf
from ..._agent.vrrp.core.packet import PASSWORD_SIZE
from ..._shared import held_back, paths, resolver_records
from ..._shared.engines import AGENT, ANYCAST, CONFIGS, FRR, FRR_UNIT, HAPROXY, KEEPALIVED, NATIVE, UNITS
from ..read import facts
from ..read.reader import Run, show

LIBRARIES = ("agent", ANYCAST, "certificates", "follow", "direct", "direct-server", "keepalived", "metrics")
# Every file that a run writes, but for the record of installed packages: those stay installed.
NAMES = resolver_records.PATHS  # with the VIPs
OWN_FILES = (
    "/etc/systemd/system/haproxy.service.d/onprem-lb*.conf",
    "/etc/systemd/system/keepalived.service.d/onprem-lb*.conf",
    "/etc/systemd/system/nftables.service.d/onprem-lb*.conf",
    *paths.FRR_FILES,
    # Without onprem-lb-undo, the resolver's and onprem-lb-shutdown: none is a part of a state. A host keeps its
    # resolver, of which a state has the answers alone, and the stop of the last one would stop the router.
    "/etc/systemd/system/onprem-lb-[!urs]*",
    *NAMES,
    paths.SYSCTL,
    "/etc/onprem-lb/*",
    f"{paths.CERTIFICATES}/*.pem",
    "/etc/onprem-lb-agent/*",
    "/etc/onprem-lb-follow/*",
    "/etc/onprem-lb-direct/*",
    "/etc/onprem-lb-direct-server/*",
    paths.members_record("*"),
    *(f"{paths.library(name)}/*" for name in LIBRARIES),
    *held_back.PATHS.values(),
)
# In the order in which they start.
WATCHED_UNITS = (
    UNITS[NATIVE].balancer,
    UNITS[AGENT].balancer,
    paths.WATCH,
    paths.RENEWAL,
    paths.GUARD,
    paths.FOLLOWING,
    paths.SERVER,
    paths.PLANE,
    FRR_UNIT,
    paths.GATE,
    UNITS[NATIVE].router,
    UNITS[AGENT].router,
    paths.ANSWERS,
    paths.METRICS,
)
ROUTERS = (UNITS[NATIVE].router, UNITS[AGENT].router)
ANNOUNCING = (FRR_UNIT, paths.GATE)
# A host may have an FRR for something else: its files and its unit are a part of a state beside the health gate alone.
SETS_UP = {FRR_UNIT: {paths.drop_in(FRR), paths.of_unit(paths.GATE)}, paths.GATE: {paths.of_unit(paths.GATE)}}
LABEL = "security.selinux"

Instance = Dict[str, Any]


class File(NamedTuple):
    """A file, or a symbolic link."""

    path: str
    mode: int
    uid: int
    gid: int
    target: str = ""  # of a link
    content: bytes = b""
    label: bytes = b""  # of SELinux


class Unit(NamedTuple):
    """The state of a unit."""

    active: bool
    enabled: bool


class Snapshot(NamedTuple):
    """A member at one time."""

    configs: Dict[str, str]  # the paths of haproxy's and keepalived's configurations, by program
    files: List[File]
    units: Dict[str, Unit]
    instances: List[Instance]  # of the router, with their passwords
    openings: List[str] = []  # as `firewall.model.Opening` prints them
    interfaces: List[str] = []  # whose zones are opened
    served: List[str] = []  # the VIPs that it served by BGP for certain, when a run saved this

    @property
    def digest(self) -> str:
        """Tell this content from others. The times at which files were written play no part, nor do the names."""
        parts = sorted(
            [file.path, file.mode, file.target, hashlib.sha256(file.content).hexdigest()]
            for file in self.files
            if file.path not in NAMES
        )
        units = sorted([name, *unit] for name, unit in self.units.items())
        return hashlib.sha256(json.dumps([parts, units]).encode()).hexdigest()

    @property
    def engine(self) -> str:
        """The engine whose router is set up, or whose balancer, where VIPs are announced; '' if there is none."""
        present = {file.path for file in self.files}
        if SETS_UP[paths.GATE] <= present:
            is_agent = paths.of_unit(UNITS[AGENT].balancer) in present
            return AGENT if is_agent else NATIVE if paths.drop_in(HAPROXY) in present else ""
        if paths.of_unit(UNITS[AGENT].router) in present:
            return AGENT
        return NATIVE if paths.drop_in(KEEPALIVED) in present else ""

    @property
    def reach(self) -> str:
        """How its VIPs reached clients, by BGP or by VRRP; '' if it had none."""
        if SETS_UP[paths.GATE] <= {file.path for file in self.files}:
            return "bgp"
        return "vrrp" if self.engine else ""

    @property
    def has_router(self) -> bool:
        return any(self.units[name].active for name in ROUTERS if name in self.units)

    @property
    def announces(self) -> bool:
        """Whether it announced VIPs by BGP, as long as its balancer served."""
        return all(name in self.units and self.units[name].active for name in ANNOUNCING)

    @property
    def could_serve(self) -> bool:
        """Whether it could have had VIPs: beside a balancer that was set up and did not run, nobody has any."""
        balancer = UNITS[self.engine or NATIVE].balancer
        is_set_up = any(file.path.startswith(f"/etc/systemd/system/{balancer}") for file in self.files)
        runs = balancer in self.units and self.units[balancer].active
        return (self.has_router or self.announces) and (runs or not is_set_up)


def on_the_link(instances: Iterable[Instance]) -> List[Tuple[Any, ...]]:
    """Return what routers share with the others on their link, besides `unicast`; version 3 has no password."""
    return sorted(
        (
            instance["vrid"],
            instance["version"],
            float(instance["advert_interval"]),
            instance["auth_pass"][:PASSWORD_SIZE] if instance["version"] == 2 else "",
            tuple(sorted(address.partition("/")[0] for address in instance["addresses"])),
            _by_multicast(instance),
        )
        for instance in instances
    )


def unicast(instances: Iterable[Instance]) -> Dict[str, Dict[str, Any]]:
    """Return ``{source, peers}`` of each Virtual Router that sends to its peers, by its VRID and family."""
    return {
        f"{instance['vrid']} {'IPv6' if ':' in ''.join(instance['addresses']) else 'IPv4'}": {
            "source": instance["source"],
            "peers": sorted(instance["peers"]),
        }
        for instance in instances
        if not _by_multicast(instance)
    }


def _by_multicast(instance: Instance) -> bool:
    """A state of before did not say which it is."""
    return bool(instance.get("multicast", not instance["peers"]))


def take(run: Run, configs: Dict[str, str], openings: List[str], interfaces: List[str], root: str = "") -> Snapshot:
    """Read this host.

    :param root: a folder in place of /, for tests
    """
    files = [_file(path, root) for path in present(configs.values(), root)]
    absent = {unit for unit, needed in SETS_UP.items() if not needed <= {file.path for file in files}}
    shown = show(run, WATCHED_UNITS, ("Id", "ActiveState", "UnitFileState"))
    units = {
        each["Id"]: Unit(each.get("ActiveState") in ("active", "reloading"), each.get("UnitFileState") == "enabled")
        for each in shown
        if "Id" in each and each["Id"] not in absent
    }
    return Snapshot(configs, files, units, _instances(configs, files, units), openings, interfaces)


def present(configs: Iterable[str], root: str = "") -> List[str]:
    """Return the paths that a state has of this host as it is."""
    found = [path[len(root) :] for pattern in OWN_FILES for path in glob.glob(root + pattern)]
    found += [path for path in configs if os.path.lexists(root + path)]
    other = () if SETS_UP[FRR_UNIT] <= {*found} else paths.FRR_FILES
    return sorted(
        {
            path
            for path in found
            if path not in other and (not os.path.isdir(root + path) or os.path.islink(root + path))
        }
    )


def is_own(path: str, configs: Iterable[str]) -> bool:
    """Whether a state may have this path."""
    is_whole = path == os.path.normpath(path)  # no part of it leads elsewhere
    depths = [pattern for pattern in OWN_FILES if pattern.count("/") == path.count("/")]
    return path in configs or is_whole and any(fnmatch.fnmatchcase(path, pattern) for pattern in depths)


def _file(path: str, root: str) -> File:
    status = os.lstat(root + path)
    common = (path, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
    if stat.S_ISLNK(status.st_mode):
        return File(*common, target=os.readlink(root + path))
    with open(root + path, "rb") as file:
        return File(*common, content=file.read(), label=_label(root + path))


def _label(path: str) -> bytes:
    try:
        return os.getxattr(path, LABEL)
    except OSError:
        return b""


def _instances(configs: Dict[str, str], files: List[File], units: Dict[str, Unit]) -> List[Instance]:
    """Return the instances of the router that runs; of both routers' configurations if none does."""
    texts = {file.path: file.content.decode(errors="replace") for file in files}
    native = keepalived_conf.instances(texts.get(configs.get(KEEPALIVED, ""), ""))
    agent = facts.agent_instances(texts.get(CONFIGS[UNITS[AGENT].router], ""))
    runs = {name for name, unit in units.items() if unit.active}
    if UNITS[AGENT].router in runs:
        return agent
    return native if UNITS[NATIVE].router in runs else [*native, *agent]


# -- as text

OPENING = re.compile(r"(?:tcp (?P<port>\d+)|vrrp) from (?P<source>\S+)")


def openings_of(lines: Iterable[str]) -> List[str]:
    """Return the openings among the lines with which a firewall describes them, each once."""
    return list(dict.fromkeys(found[0] for line in lines for found in [OPENING.match(line)] if found))
