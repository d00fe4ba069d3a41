# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The units that a run writes on a member beside those of the engines, and the files around them. Pure.

Both sides need them: the controller plans and removes what a host looks for and saves.
"""

from __future__ import annotations

from typing import Dict, Sequence

from . import pods
from .engines import ANYCAST, CONFIGS, DIRECT, FOLLOW, FRR, HAPROXY, HOOK, KEEPALIVED, NATIVE, ROUTERS, UNITS, Daemon

WATCH, CORRECTION = "onprem-lb-down-file.path", "onprem-lb-down-file.service"
RENEWAL = "onprem-lb-certificates.service"
SHUTDOWN, ANSWERS, METRICS = "onprem-lb-shutdown.service", "onprem-lb-answers.service", "onprem-lb-metrics.service"
RESOLVER, KEEPER = "onprem-lb-resolver.service", "onprem-lb-resolver-keeper.service"
GUARD = "onprem-lb-machine-config.service"
QUIET = "onprem-lb-quiet.service"
FOLLOWING, PLANE, SERVER = (Daemon(name).unit for name in (FOLLOW, DIRECT, f"{DIRECT}-server"))
GATE, GATE_CONFIG = Daemon(ANYCAST).unit, "/etc/onprem-lb-agent/anycast.json"
PLANE_CONFIG = "/etc/onprem-lb-direct/direct.json"
# Those of the layout itself, without the engines' and the API's guard.
HELPERS = (WATCH, RENEWAL, SHUTDOWN, ANSWERS, METRICS, FOLLOWING, RESOLVER, PLANE, GATE, QUIET)
EVERY_UNIT = (*(unit for units in UNITS.values() for unit in units), *HELPERS, *pods.NAMES)
# What runs beside the routers on a member: some of it serves, some has credentials, and a host without its resolver
# has no names.
BESIDE_ROUTERS = tuple(unit for unit in EVERY_UNIT if unit not in ROUTERS)

STATE = "/var/lib/onprem.lb"  # what this collection records on a member
STATES = f"{STATE}/states"  # to which it can return
FOLLOW_STATE = "/var/lib/onprem-lb-follow"
PACKAGES = "/etc/onprem-lb-packages.json"  # those that this collection has installed
SYSCTL = "/etc/sysctl.d/90-onprem-lb.conf"
CERTIFICATES = "/etc/onprem-lb-certificates"  # those whose text is in the inventory
DEFAULTS = {program: CONFIGS[unit] for program, unit in zip((HAPROXY, KEEPALIVED), UNITS[NATIVE])}


def of_unit(name: str) -> str:
    return f"/etc/systemd/system/{name}"


def drop_in(program: str) -> str:
    """Return the file that this collection adds to the unit of haproxy, keepalived or FRR."""
    return of_unit(f"{program}.service.d/onprem-lb.conf")


FRR_CONFIG = "/etc/frr/frr.conf"
FRR_FILES = (drop_in(FRR), FRR_CONFIG, "/etc/frr/daemons")


def library(name: str) -> str:
    """Return the folder of one of our programs."""
    return f"/usr/local/lib/onprem-lb-{name}"


def archive(name: str) -> str:
    """Return the file of the agent that one of its commands runs from."""
    return f"{library(name)}/agent.pyz"


def members_record(layout: str) -> str:
    """Return where a run records the members, so that the next one knows which have left."""
    return f"/etc/onprem-lb-{layout}-members.json"


def of_programs(configs: Dict[str, str], hook: str = "") -> Sequence[Dict[str, object]]:
    """Return the files of haproxy and keepalived as `host_info` reads them, with the unit that loads each.

    :param configs: of both, by program
    :param hook: the checksum of keepalived's
    """
    return [
        {"path": configs[HAPROXY], "unit": UNITS[NATIVE].balancer},
        {"path": drop_in(HAPROXY), "unit": UNITS[NATIVE].balancer},
        {"path": SYSCTL, "unit": "systemd-sysctl.service"},
        {"path": configs[KEEPALIVED], "unit": UNITS[NATIVE].router},
        {"path": drop_in(KEEPALIVED), "unit": UNITS[NATIVE].router},
        {"path": HOOK, "keepalived_hook": hook},
    ]
