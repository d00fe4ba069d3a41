# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records what the inventory says of the members of each layout in a play, in one task for all of them.

Its values are secret, so the task hides what it returns, and the faults are for a task after it.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import identity, outside_limit
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import handed
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import variables as role_variables
from ansible_collections.onprem.lb.plugins.plugin_utils import play_hosts, specs
from ansible_collections.onprem.lb.plugins.plugin_utils.command_line import extra_variables
from ansible_collections.onprem.lb.plugins.plugin_utils.evaluation import evaluated, unevaluable

DISPLAY = Display()
COUNTED = ("timeout_connect", "timeout_check", "retries")
TIMEOUTS = [f"{role}_{each}" for role in ("haproxy", "agent") for each in COUNTED]  # on which the forecast counts
FAILED = (
    "{names} failed earlier in this run, so {host} cannot be planned together with it: mend what failed there, or "
    "leave it out with --limit '{others}'."
)

Record = Dict[str, Any]


class ActionModule(ActionBase):
    """Returns ``{faults, members}``: no members where there are faults."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        result: Dict[str, Any] = super().run(tmp, task_vars)
        _valid, given = self.validate_argument_spec({"layout": {"type": "str", "required": True}})
        known = task_vars or {}
        unfit = play_hosts.play_fault(self._task.play)
        if unfit:
            return {**result, "changed": False, "faults": [f"{known['inventory_hostname']}: {unfit}"], "members": {}}
        return {**result, "changed": False, **self._recorded(known, given["layout"])}

    def _recorded(self, known: Mapping[str, Any], layout: str) -> Dict[str, Any]:
        options, here = specs.role_options(layout), known["ansible_play_hosts_all"]
        records: Dict[str, Record] = {}
        faults: Dict[str, List[str]] = {}
        for name in known["ansible_play_batch"]:
            host = play_hosts.play_host(name, self._task, known, self._loader)
            faults[name] = unreadable(host)
            if not faults[name]:
                records[name] = recorded(host, layout, options)
                faults[name] = records[name]["name_faults"]
        found = play_hosts.together(faults) or failed(records, [name for name in here if name not in records])
        return {"faults": found, "members": {}} if found else self._with_others(records, known, layout)

    def _with_others(self, records: Mapping[str, Record], known: Mapping[str, Any], layout: str) -> Dict[str, Any]:
        """Return the records of all members in their order, of those outside --limit as one in the play has it."""
        here, hostvars = known["ansible_play_hosts_all"], known["hostvars"]
        found: Dict[str, Record] = {}
        for record in records.values():
            first = next(name for name in record["members"] if name in here)
            for name in record["members"]:
                if name in records:
                    found.setdefault(name, records[name])
                elif name not in found:
                    own, faults = of_inventory(
                        play_hosts.play_host(name, self._task, known, self._loader), hostvars, layout
                    )
                    if faults:
                        return {"faults": faults, "members": {}}
                    set_there = hostvars.raw_get(first)
                    found[name] = outside_limit.recorded(records[first], name, own, set_there, layout)
        return {"faults": [], "members": found}


def unreadable(host: play_hosts.PlayHost) -> List[str]:
    """Return a sentence if nobody can say where a host is. What else cannot be evaluated is refused before."""
    try:
        evaluated(host.known.get("ansible_host"), host.evaluate)
    except AnsibleError as error:
        return [unevaluable("ansible_host", error, host.known["ansible_host"])]
    return []


def recorded(host: play_hosts.PlayHost, layout: str, options: Sequence[str]) -> Record:
    """Return a member as the filter `layout_plans` takes it, without what its host says.

    Warns of variables that are close to one of the layout's.

    :param options: the names of the layout's variables
    """
    raw, name = host.known, host.known["inventory_hostname"]
    settings = {each[len(layout) + 1 :]: evaluated(raw[each], host.evaluate) for each in options}
    names = identity.names_in(settings, layout)
    of_components = [each for each in raw if handed.OF_COMPONENT.fullmatch(each)]
    return {
        "name": name,
        "address": evaluated(raw.get("ansible_host", name), host.evaluate),
        "groups": list(raw["group_names"]),
        "members": names,
        "outside_limit": False,
        # As a text: Ansible looks at each value that it keeps again and again, which thousands of servers show.
        "settings": json.dumps(settings, default=str),
        "options": json.dumps({key: settings[key] for key in settings if key != "services"}, default=str),
        "role_variables": of_components,
        "timeouts": {each: evaluated(raw[each], host.evaluate) for each in TIMEOUTS if each in raw},
        # which has its own address, or none
        "resolver_listen": evaluated(raw.get("resolver_listen", []), host.evaluate),
        "faults": _unknown(raw, layout, options) + handed.overruled_variables(of_components, options, layout),
        "name_faults": identity.of_names(names, raw["groups"]["all"], name, layout),
        "host": None,
    }


def _unknown(raw: Mapping[str, Any], layout: str, options: Sequence[str]) -> List[str]:
    found = role_variables.unknown_variables(
        [name for name in raw if name.startswith(layout)], options, extra=extra_variables()
    )
    for warning in found.warnings:
        DISPLAY.warning(warning)
    return found.faults


def failed(records: Mapping[str, Record], others: Sequence[str]) -> List[str]:
    """Return a sentence for the members that have failed earlier in the run.

    :param others: the hosts of the play that have no record
    """
    for name, record in records.items():
        gone = [each for each in record["members"] if each in others]
        if gone:
            return [FAILED.format(names=", ".join(gone), host=name, others=":".join(f"!{each}" for each in gone))]
    return []


def of_inventory(host: play_hosts.PlayHost, hostvars: Any, layout: str) -> Tuple[Dict[str, Any], List[str]]:
    """Return what the inventory sets of a member outside --limit, without the defaults of roles, and its faults."""
    name = host.known["inventory_hostname"]
    raw, found = hostvars.raw_get(name), {}
    for each in [variable for variable in outside_limit.own_variables(layout) if variable in raw]:
        try:
            found[each] = evaluated(raw[each], host.evaluate)
        except AnsibleError as error:
            return {}, [f"{name}: {unevaluable(each, error, raw[each])}"]
    return found, []
