# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates variables. Ansible takes ten times as long for a template, and most values are none."""

from __future__ import annotations

from typing import Any, Callable, Iterator, List

from ansible import template
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import values
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import variables as role_variables
from jinja2 import TemplateSyntaxError


def evaluator(templar: Any) -> Callable[[Any], Any]:
    """Return what evaluates templates as Ansible does by default.

    With ``jinja2_native``, ansible-core before 2.19 makes a number of a text of digits: a password may be one.
    """
    plain = getattr(template, "AnsibleEnvironment", None)  # 2.19 and later have no other way, and keep a text
    return (templar.copy_with_new_env(environment_class=plain) if plain else templar).template


def evaluated(value: Any, evaluate: Callable[[Any], Any]) -> Any:
    """Return a variable with its templates evaluated.

    :param evaluate: returns the value of a template, or raises AnsibleError
    """
    return value if values.is_plain(value) else opened(evaluate(value))


def opened(value: Any) -> Any:
    """Return a value, with what is in a vault as a text, wherever it is: ansible-core before 2.19 opens one at its use.

    :raises AnsibleError: if it cannot be opened
    """
    if isinstance(value, dict):
        return {key: opened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [opened(each) for each in value]
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
