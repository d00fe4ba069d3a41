# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fails with the faults that were found: those that it is given, of the command line's tags, or of the variables.

``assert`` would find them twice: for its condition, and for its message. Each run begins with it, so it imports the
filters and lookups, and compiles the templates of the roles.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components, tags
from ansible_collections.onprem.lb.plugins.plugin_utils import command_line, outputs, play_hosts
from ansible_collections.onprem.lb.plugins.plugin_utils.evaluation import evaluated, evaluator, unevaluable
from ansible_collections.onprem.lb.plugins.plugin_utils.preload import compile_templates, import_filters_and_lookups

import_filters_and_lookups()
compile_templates()

OWN = ("pair_", "ipi_", "dns_")  # the prefixes that no other project has variables with
ARGUMENTS = {
    "faults": {"type": "list", "elements": "str"},
    "lines": {"type": "list", "elements": "str"},
    "outputs": {"type": "list", "elements": "str"},
    "tags": {"type": "list", "elements": "str"},
    "variables": {"type": "bool"},
}


class ActionModule(ActionBase):
    """Fails unless there are no faults."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        result: Dict[str, Any] = super().run(tmp, task_vars)
        _valid, given = self.validate_argument_spec(ARGUMENTS, required_one_of=[list(ARGUMENTS)])
        known = task_vars or {}
        faults = list(given["faults"] or [])
        if given["tags"] is not None:
            faults += of_tags(known, given["tags"])
        if given["outputs"]:
            faults += of_outputs(known, given["outputs"], evaluator(self._templar), self._task.check_mode)
        if given["variables"]:
            faults += self._of_variables(known)
        if faults:
            return {**result, "failed": True, "msg": faults}
        # The flag has Ansible show the lines as it shows those of debug.
        shown = {"msg": given["lines"], "_ansible_verbose_always": True} if given["lines"] else {}
        return {**result, "changed": False, **shown}

    def _of_variables(self, known: Dict[str, Any]) -> List[str]:
        """Return what is wrong with the variables of this host; in a task that runs once, of each host of the play."""
        if not self._task.run_once:
            return of_variables(known, evaluator(self._templar))
        names = known["ansible_play_batch"]
        return play_hosts.together(
            {name: of_variables(*play_hosts.play_host(name, self._task, known, self._loader)) for name in names}
        )


def of_tags(known: Mapping[str, Any], of_playbook: List[str]) -> List[str]:
    """Return what is wrong with the tags of the command line.

    That is nothing where it names another playbook: one that imports ours may have other tags.
    """
    if not command_line.names_our_playbook():
        return []
    given, skipped = known.get("ansible_run_tags", []), known.get("ansible_skip_tags", [])
    return list(tags.tag_faults(list(given), list(skipped), of_playbook))


def of_outputs(known: Mapping[str, Any], names: List[str], evaluate: Callable[[Any], Any], dry: bool) -> List[str]:
    """Return a sentence for each variable that names what cannot be written on the controller.

    :param evaluate: as `of_variables` takes it
    :param dry: whether this run writes none of them
    """
    found: List[str] = []
    given: Dict[str, Any] = {}
    for name in names:
        try:
            given[name] = evaluated(known.get(name), evaluate)
        except AnsibleError as error:
            found.append(unevaluable(name, error, known[name]))
    return found + outputs.faults(given, dry)


def of_variables(known: Mapping[str, Any], evaluate: Callable[[Any], Any]) -> List[str]:
    """Return a sentence for each variable that cannot be evaluated, or that is wrong.

    :param evaluate: returns the value of a template, or raises AnsibleError
    """
    found: List[str] = []
    given: Dict[str, Any] = {}
    for name in sorted(known):
        if not name.startswith(OWN) and not components.knows(name):
            continue
        try:
            given[name] = evaluated(known[name], evaluate)
        except AnsibleError as error:
            found.append(unevaluable(name, error, known[name]))
    return found + components.faults(given)
