# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Judges the variables of roles that are no layouts before any host is read, by the models' schemas.

A layout computes the services and the instances. The user may set the rest of these variables beside it, and they refer
to what the layout computes. So each is judged by itself there, and all of them together where the user gives the lists.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Mapping, NamedTuple, Tuple

from ..._agent.config.schema import Faults, Field, anything, boolean, list_of, one_of, read_list
from ..._agent.direct import config as direct
from ..._agent.proxy import config
from . import agent, drill, frr, haproxy, instances, peers, resolver, values
from .variables import as_role_variables, read_given

Given = Dict[str, Any]  # what the user set, by the name of the variable without the role's prefix
ABSENT = "absent"
STATE = Field(one_of("present", ABSENT), "present")
PACKAGES = list_of(values.package, at_least=1)


class Component(NamedTuple):
    """What one role takes."""

    fields: Mapping[str, Field]  # without the keys of lists
    lists: Mapping[str, Mapping[str, Field]]  # lists of mappings
    computed: Tuple[str, ...]  # the lists that a layout computes
    tasks: Mapping[str, Field]  # what its tasks read, those of a removal too
    model: Callable[[Given], Faults]  # judges all together, except what only tasks read

    def configured(self) -> Tuple[str, ...]:
        """Return what the role's configuration is made of."""
        return (*self.computed, *self.lists, *self.fields)

    def knows(self, key: str) -> bool:
        return any(key in known for known in (self.fields, self.lists, self.computed, self.tasks))


def _haproxy(given: Given) -> Faults:
    faults: Faults = haproxy.model(haproxy.settings_of(given), [], "")["faults"]
    return faults


def _keepalived(given: Given) -> Faults:
    faults: Faults = instances.keepalived_model(instances.settings_of(given))["faults"]
    return faults


def _agent(given: Given) -> Faults:
    faults: Faults = agent.translate({key: given[key] for key in agent.SETTINGS if key in given})["faults"]
    return faults


def _frr(given: Given) -> Faults:
    faults: Faults = frr.model(given)["faults"]
    return faults


def _direct_server(given: Given) -> Faults:
    """Judge the services as a server of them does, whose interface is there."""
    faults: Faults = []
    read_given({"services": Field(list_of(anything))}, given, "direct_server", faults)
    if faults or not given["services"]:
        return faults
    text = json.dumps({"interface": given.get("interface") or "eth0", "services": given["services"]}, default=str)
    return [direct.as_variable(fault, "direct_server") for fault in direct.parse(text)[1]]


MONITORS = {"monitors": config.MONITOR}
CHECKS = {"scripts": instances.SCRIPT, "track_files": instances.TRACK_FILE, "sync_groups": instances.SYNC_GROUP}
LISTS = {**MONITORS, **CHECKS}
COMPONENTS = {
    "haproxy": Component(
        fields={**haproxy.TUNING, **{name: haproxy.STATS[key] for name, key in haproxy.STATS_VARIABLES.items()}},
        lists={**MONITORS, "peers": peers.PEER},
        computed=("services",),
        tasks={
            "state": STATE,
            "adopt": Field(boolean, False),
            "nonlocal_bind": Field(boolean, True),
            "config_path": haproxy.TUNING["config_path"],
            "packages": Field(PACKAGES, ["haproxy"]),
        },
        model=_haproxy,
    ),
    "keepalived": Component(
        fields={**instances.DAEMON, **instances.SHARED},
        lists=CHECKS,
        computed=("instances",),
        tasks={
            "state": STATE,
            "adopt": Field(boolean, False),
            "config_path": instances.DAEMON["config_path"],
            "packages": Field(PACKAGES, ["keepalived", "psmisc"]),
        },
        model=_keepalived,
    ),
    "agent": Component(
        fields={key: field for key, field in agent.SETTINGS.items() if key != "raw"},
        lists=LISTS,
        computed=("services", "instances"),
        tasks={
            "state": STATE,
            "firewall": Field(boolean, True),
            "python": Field(values.optional(values.plain_path), ""),
            "replace": Field(list_of(one_of("haproxy", "keepalived")), []),
            "down_file": agent.SETTINGS["down_file"],
        },
        model=_agent,
    ),
    "frr": Component(
        fields=frr.SETTINGS,
        lists={},
        computed=("peers", "prefixes"),
        tasks={
            "state": STATE,
            "adopt": Field(boolean, False),
            "packages": Field(PACKAGES, ["frr", "frr-pythontools"]),
        },
        model=_frr,
    ),
    "resolver": Component(
        fields=resolver.SETTINGS,
        lists={},
        computed=(),
        tasks={"state": STATE, "packages": Field(list_of(values.package), [])},
        model=resolver.model,
    ),
    "direct_server": Component(
        fields={"interface": Field(values.optional(values.interface), "")},
        lists={},
        computed=("services",),
        tasks={"state": STATE},
        model=_direct_server,
    ),
    "drill": Component(fields=drill.SETTINGS, lists={}, computed=(), tasks={}, model=drill.model),
}


def faults(given: Dict[str, Any]) -> Faults:
    """Return what is wrong with the variables that a user set, by their names; those of other roles are ignored."""
    layout_goes = any(given.get(f"{layout}_state") == ABSENT for layout in ("pair", "ipi"))
    found: Faults = []
    for role, component in COMPONENTS.items():
        own = {_key(name): given[name] for name in given if knows(name) and _role(name) == role}
        goes = layout_goes or own.get("state") == ABSENT
        found += [as_role_variables(fault, role) for fault in _faults(component, own, role, goes)]
    return list(dict.fromkeys(found))


def knows(name: str) -> bool:
    """Return whether a variable is one of a component role."""
    role = _role(name)
    return role in COMPONENTS and COMPONENTS[role].knows(_key(name))


def _role(name: str) -> str:
    """Return the role whose prefix a variable has; none has that of another one."""
    return next((role for role in COMPONENTS if name.startswith(f"{role}_")), "")


def _key(name: str) -> str:
    return name[len(_role(name)) + 1 :]


def _faults(component: Component, given: Given, role: str, goes: bool) -> Faults:
    """Judge the variables of one role. A removal needs only those that its tasks read."""
    found: Faults = []
    # A list is judged with its items below, or by the model.
    items = [key for key in (*component.lists, *component.computed) if given.get(key) is not None]
    single = {key: field for key, field in component.fields.items() if key not in items}
    read_given(component.tasks if goes else {**single, **component.tasks}, given, role, found)
    if goes:
        return found
    if not component.computed or any(key in given for key in component.computed):
        return [*found, *component.model(given)]
    for key in component.lists:
        if key in given:
            read_list(component.lists[key], given[key], f"{role}_{key}", found)
    return found
