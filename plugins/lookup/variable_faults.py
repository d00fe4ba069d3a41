# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates each variable of the collection by itself, so that an error is told with the variable's name."""

from __future__ import annotations

DOCUMENTATION = """
name: variable_faults
short_description: Find what is wrong with the variables of this collection
version_added: 0.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Says which variables of the collection cannot be evaluated.
  - Says which of those of the roles P(onprem.lb.haproxy#role), P(onprem.lb.keepalived#role), P(onprem.lb.agent#role)
    and P(onprem.lb.drill#role) are wrong whatever the host is.
options: {}
"""

EXAMPLES = """
- name: Refuse what no host could do
  ansible.builtin.assert:
    that: query('onprem.lb.variable_faults') | length == 0
"""

RETURN = """
_list:
  description: A sentence for each fault.
  type: list
  elements: str
"""

from typing import Any, Dict, Iterator, List

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import variables as role_variables
from jinja2 import TemplateSyntaxError

OWN = ("pair_", "ipi_", "dns_")  # the prefixes that no other project has variables with


class LookupModule(LookupBase):
    """The class that Ansible loads from this file."""

    def run(self, terms: List[Any], variables: Any = None, **_options: Any) -> List[str]:
        known = variables or {}
        faults: List[str] = []
        given: Dict[str, Any] = {}
        for name in sorted(known):
            if not name.startswith(OWN) and not components.knows(name):
                continue
            try:
                given[name] = known[name] if is_plain(known[name]) else self._templar.template(known[name])
            except AnsibleError as error:
                faults.append(unevaluable(name, error))
        return faults + components.faults(given)


def is_plain(value: Any) -> bool:
    """Return whether a value has no template: thousands of servers would take a second to evaluate."""
    if isinstance(value, dict):
        return all(map(is_plain, value.values())) and all(map(is_plain, value))
    if isinstance(value, list):
        return all(map(is_plain, value))
    return "{" not in value if isinstance(value, str) else value is None or isinstance(value, (int, float))


def unevaluable(name: str, error: BaseException) -> str:
    """Return the sentence about a variable that Ansible cannot evaluate."""
    chain = list(_causes(error))
    if any(isinstance(each, RecursionError) for each in chain):
        return role_variables.cyclic(name)
    if any(isinstance(each, TemplateSyntaxError) for each in chain):
        return role_variables.no_template(name)
    return role_variables.unevaluable(name, str(error))


def _causes(error: Any) -> Iterator[BaseException]:
    """Yield an exception and those that it was raised for."""
    seen: List[BaseException] = []
    while error is not None and error not in seen:
        yield error
        seen.append(error)
        error = error.__cause__ or error.__context__
