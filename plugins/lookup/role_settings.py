# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a component role is given, in one pass: a template for each variable takes three times as long."""

from __future__ import annotations

DOCUMENTATION = """
name: role_settings
short_description: Read what a component role of this collection is given
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
options:
  _terms:
    description: The role, V(agent), V(haproxy) or V(keepalived).
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Show the settings of haproxy
  ansible.builtin.debug:
    msg: "{{ lookup('onprem.lb.role_settings', 'haproxy') }}"
"""

RETURN = """
_raw:
  description: The role's variables that its configuration is made of, by their names without the role's prefix.
  type: list
  elements: dict
"""

from typing import Any, Dict, List

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.components import COMPONENTS
from ansible_collections.onprem.lb.plugins.plugin_utils.evaluation import evaluated, evaluator


class LookupModule(LookupBase):
    """The class that Ansible loads from this file."""

    def run(self, terms: List[str], variables: Any = None, **_options: Any) -> List[Dict[str, Any]]:
        raw: Dict[str, Any] = variables or {}
        return [self._settings(role, raw) for role in terms]

    def _settings(self, role: str, raw: Dict[str, Any]) -> Dict[str, Any]:
        if role not in COMPONENTS:
            raise AnsibleLookupError(f"The role to read is {role!r}: one of {', '.join(COMPONENTS)} is required.")
        missing = [f"{role}_{key}" for key in COMPONENTS[role].configured() if f"{role}_{key}" not in raw]
        if missing:
            raise AnsibleLookupError(f"{', '.join(missing)} is not set here: ask in a play that has the role {role}.")
        evaluate = evaluator(self._templar)
        return {key: evaluated(raw[f"{role}_{key}"], evaluate) for key in COMPONENTS[role].configured()}
