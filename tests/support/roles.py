# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role would have its modules do on a host that is not there: its tasks, their conditions decided by Ansible's
own templating."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from support.paths import ROLES

FOLLOWED = ("ansible.builtin.import_tasks", "ansible.builtin.include_tasks")

ASSERT = "ansible.builtin.assert"

Call = Tuple[str, Dict[str, Any]]


def calls(role: str, variables: Dict[str, Any], *modules: str) -> List[Call]:
    """Return, in their order, the calls of some modules with their arguments: those of the tasks whose conditions, and
    the conditions around them, all hold.

    :param variables: all that the conditions and these arguments name, registered results included
    """
    loader = DataLoader()
    templar = Templar(loader=loader, variables=variables)

    def read(file: str) -> List[Dict[str, Any]]:
        return loader.load_from_file(str(ROLES / role / "tasks" / file), trusted_as_template=True)

    def walk(tasks: List[Dict[str, Any]]) -> Iterator[Call]:
        for task in tasks:
            conditions = task.get("when", [])
            if not all(map(templar.evaluate_conditional, conditions if isinstance(conditions, list) else [conditions])):
                continue
            yield from walk(task.get("block", []))
            for file in [task[key] for key in FOLLOWED if key in task]:
                yield from walk(read(file))
            yield from [(module, templar.template(task[module])) for module in modules if module in task]

    return list(walk(read("main.yml")))


def refusals(role: str, file: str, variables: Dict[str, Any]) -> List[str]:
    """Return what the assertions of a file of a role's tasks refuse, the sentences of all that fail.

    :param variables: what they name beside the role's own `vars/`, which these override
    """
    loader = DataLoader()

    def read(path: str) -> Any:
        return loader.load_from_file(str(ROLES / role / path), trusted_as_template=True)

    found: List[str] = []
    for task in [task for task in read(f"tasks/{file}") if ASSERT in task]:
        known = {**read("vars/main.yml"), **task.get("vars", {}), **variables}
        templar = Templar(loader=loader, variables=known)
        if not templar.evaluate_conditional(task[ASSERT]["that"]):
            found += templar.template(task[ASSERT]["fail_msg"])
    return found
