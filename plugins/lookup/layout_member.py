# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what the inventory says of one member, in one pass: a template for each variable takes ten times as long."""

from __future__ import annotations

DOCUMENTATION = """
name: layout_member
short_description: Read what the inventory says of one member of a layout
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Warns of variables that are close to one of the layout's.
options:
  _terms:
    description: The prefix of the layout's variables, V(pair) or V(ipi).
    type: list
    elements: str
    required: true
  known:
    description: The names of the layout's variables.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Show what the inventory says of this member
  ansible.builtin.debug:
    msg: "{{ lookup('onprem.lb.layout_member', 'pair', known=['pair_members', 'pair_vips']) }}"
"""

RETURN = """
_raw:
  description: The member, as the internal filter C(layout_plans) takes it, without what its host says.
  type: list
  elements: dict
"""

import json
from typing import Any, Dict, List

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import identity
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import handed
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import variables as role_variables
from ansible_collections.onprem.lb.plugins.plugin_utils.command_line import extra_variables
from ansible_collections.onprem.lb.plugins.plugin_utils.evaluation import evaluated, evaluator

DISPLAY = Display()
COUNTED = ("timeout_connect", "timeout_check", "retries")
TIMEOUTS = [f"{role}_{each}" for role in ("haproxy", "agent") for each in COUNTED]  # on which the forecast counts


class LookupModule(LookupBase):
    """The class that Ansible loads from this file."""

    def run(self, terms: List[str], variables: Any = None, **options: Any) -> List[Dict[str, Any]]:
        raw: Dict[str, Any] = variables or {}
        prefix, known = next(iter(terms), ""), options.get("known", [])
        missing = [name for name in known if name not in raw]
        if not known or missing:
            what = f"{', '.join(missing)} is not set here" if missing else "no variables to read are named"
            raise AnsibleLookupError(f"{what}: ask in a play that has the layout's role.")
        host = raw["inventory_hostname"]
        settings = {name[len(prefix) + 1 :]: self._value(raw[name]) for name in known}
        names = identity.names_in(settings, prefix)
        of_components = [name for name in raw if handed.OF_COMPONENT.fullmatch(name)]
        return [
            {
                "name": host,
                "address": self._value(raw.get("ansible_host", host)),
                "groups": list(raw["group_names"]),
                "members": names,
                "outside_limit": False,
                # As a text: Ansible looks at each value of a fact again and again, which thousands of servers show.
                "settings": json.dumps(settings, default=str),
                "options": json.dumps({key: settings[key] for key in settings if key != "services"}, default=str),
                "role_variables": of_components,
                "timeouts": {name: self._value(raw[name]) for name in TIMEOUTS if name in raw},
                "resolver_listen": self._value(raw.get("resolver_listen", [])),  # which has its own address, or none
                "faults": self._unknown(raw, prefix, known) + handed.overruled_variables(of_components, known, prefix),
                "name_faults": identity.of_names(names, raw["groups"]["all"], host, prefix),
                "host": None,
            }
        ]

    def _value(self, given: Any) -> Any:
        return evaluated(given, evaluator(self._templar))

    @staticmethod
    def _unknown(raw: Dict[str, Any], prefix: str, known: List[str]) -> List[str]:
        names = [name for name in raw if name.startswith(prefix)]
        found = role_variables.unknown_variables(names, known, extra=extra_variables())
        for warning in found.warnings:
            DISPLAY.warning(warning)
        return found.faults
