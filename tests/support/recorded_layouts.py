# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pair whose plan and whose programs' files are recorded, to play single stages of the role layout."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Balancer, as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services

from support.paths import ROLES
from support.recorded_hosts import UNITS, deployment, host_info
from support.recorded_plays import Play, run, tasks_of

HOSTS = {"pair": {"lb1": {}, "lb2": {}}}
RUN = "20260131T120000Z"
DEFINITION = {
    **{
        name: []
        for name in ("hosts", "vips", "packages", "programs", "units", "shutdown_before", "files", "read_files")
    },
    "prefix": "pair",
    "members": ["lb1", "lb2"],
    "verify": True,
    "takes_over": False,
    "take_over_variable": "",
}
SETTINGS = {"firewall": True, "down_file": "/run/lb.down", "undo_after": 35, "retired": "", "metrics_file": ""}
ROUTER = {"instances": [{"name": "vip"}], "scripts": [], "track_files": [], "sync_groups": []}
WEB, _faults = read_services([{"name": "web", "port": 443, "servers": ["192.0.2.31"]}], "pair_services")
BALANCER = as_data(Balancer(WEB, down_file="/run/lb.down"))
MEMBER = {
    "engine": "native",
    "router": ROUTER,
    "balancer": BALANCER,
    "firewall": {
        "ports": [443],
        "restricted_ports": [],
        "vrrp_peers": [],
        "interfaces": ["eth0"],
        "keep": False,
    },
    **{name: {} for name in ("pods", "direct", "direct_server", "follow", "resolver", "replaced_router")},
    **dict.fromkeys(("replaces", "moves_from"), ""),
    **{name: [] for name in ("unused", "replaced_programs", "checks", "questions", "asked")},
    "expected": {"as": "expected"},
    "proof": {"as": "proof"},
    "meanwhile": None,
    "direct_memory": 0,
}
PLAN = {
    "record": {},
    "vips": [{"address": "192.0.2.10"}],
    "undo": {
        "members": ["lb1", "lb2"],
        "first": "lb1",
        "settle": 5.0,
        "judged": 0.0,
        "reason": "",
        "first_addresses": ["192.0.2.1"],
    },
    "sole_router": "",
    "routers_together": False,
    "move": {"to": "", "came_from": "", "announcing": [], "stopping": [], "told": []},
    **{name: [] for name in ("joining", "leaving", "waiting", "departed", "migration_order", "outages", "targets")},
}
# Of the programs' roles, whose own files have tests of their own.
PROGRAMS = {
    **{f"__{name}_{what}": [] for name in ("haproxy", "keepalived") for what in ("files", "secrets")},
    **{f"__{name}_not_in_force": [] for name in ("haproxy", "keepalived")},
    "__agent_model": {"vrrp": {}, "proxy": {}, "options": {}, "secrets": [], "ports": [], "service_ports": []},
    "__haproxy_ports": [],
    "__haproxy_restricted_ports": [],
    "haproxy_start_commands": [],
    "haproxy_nonlocal_bind": False,
}


def layout(member: Any = None, plan: Any = None, settings: Any = None, **values: Any) -> Dict[str, Any]:
    """Return the variables that a stage finds.

    :param member: of both members' plans; or by their names
    """
    given = member or {}
    each = {
        name: {**MEMBER, **(given.get(name, {}) if {"lb1", "lb2"} & {*given} else given)} for name in ("lb1", "lb2")
    }
    host = host_info("lb1", active_units=UNITS, enabled_units=UNITS, existing_units=UNITS)
    found = {
        "layout_definition": DEFINITION,
        "__layout_settings": {**SETTINGS, **(settings or {})},
        "__layout_plans": {"plans": [], "faults": [], "lines": []},
        "__layout_plan": {**PLAN, "members": each, **(plan or {})},
        "__layout_host": host,
        "__layout_auth_pass": "",
        "__haproxy_host": host,
        "__keepalived_host": host,
        "__layout_changes": True,
        **PROGRAMS,
    }
    return {**found, **values}


def undo(first: str = "lb1", run_id: str = RUN, members: Tuple[str, ...] = ("lb1", "lb2")) -> Dict[str, Any]:
    """Return the facts of members that are armed: who is the first, and who the others."""
    armed = {"run": run_id, "after": 40.0, "settle": 5.0, "setting": "pair_undo_after", "members": list(members)}
    return {
        name: {"__layout_undo": {**armed, "role": "first" if name == first else "other"}} for name in ("lb1", "lb2")
    }


def stage(file: str, answers: Any = None, facts: Any = None, check: bool = False, **values: Any) -> Play:
    """Play a file of the role layout on both members of a pair.

    :param values: as for `layout`
    """
    (block,) = yaml.safe_load((ROLES / "layout/tasks/present.yml").read_text())
    tasks = tasks_of("layout", file, **block["vars"])
    return run(tasks, HOSTS, deployment(**(answers or {})), check=check, facts=facts, **layout(**values))
