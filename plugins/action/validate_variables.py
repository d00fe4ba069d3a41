# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates each variable of the collection by itself, so that an error is told with the variable's name.

A role that is used without a playbook of this collection begins with it, so it imports the filters and lookups, and
compiles the templates of the roles.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import variables as role_variables
from ansible_collections.onprem.lb.plugins.plugin_utils.evaluation import evaluated, evaluator
from ansible_collections.onprem.lb.plugins.plugin_utils.preload import compile_templates, import_filters_and_lookups
from jinja2 import TemplateSyntaxError

import_filters_and_lookups()
compile_templates()

OWN = ("pair_", "ipi_", "dns_")  # the prefixes that no other project has variables with


class ActionModule(ActionBase):
    """Refuses variables that are wrong whatever the host is."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        result: Dict[str, Any] = super().run(tmp, task_vars)
        found = faults(task_vars or {}, evaluator(self._templar))
        return {**result, "failed": True, "msg": found} if found else {**result, "changed": False}


def faults(known: Dict[str, Any], evaluate: Any) -> List[str]:
    """Return a sentence for each variable that cannot be evaluated, or that is wrong.

    :param evaluate: returns the value of a template, or raises AnsibleError
    """
    found: List[str] = []
    given: Dict[str, Any] = {}
    for name in sorted(known):
        if not name.startswith(OWN) and not components.knows(name):
            continue
        try:
            given[name] = opened(evaluated(known[name], evaluate))
        except AnsibleError as error:
            found.append(unevaluable(name, error, known[name]))
    return found + components.faults(given)


def opened(value: Any) -> Any:
    """Return a value, that of a vault as a text: ansible-core before 2.19 opens one at its first use.

    :raises AnsibleError: if it cannot be opened
    """
    return str(value) if type(value).__name__ == "AnsibleVaultEncryptedUnicode" else value


def unevaluable(name: str, error: BaseException, template: Any) -> str:
    """Return the sentence about a variable that Ansible cannot evaluate."""
    chain = list(_causes(error))
    if any(isinstance(each, RecursionError) for each in chain):
        return role_variables.cyclic(name)
    if any(isinstance(each, TemplateSyntaxError) for each in chain):
        return role_variables.no_template(name)
    if any("Vault" in type(each).__name__ for each in chain):  # it has another name in each release
        return role_variables.sealed(name)
    return role_variables.unevaluable(name, str(error), template)


def _causes(error: Any) -> Iterator[BaseException]:
    """Yield an exception and those that it was raised for."""
    seen: List[BaseException] = []
    while error is not None and error not in seen:
        yield error
        seen.append(error)
        error = error.__cause__ or error.__context__
