# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role's module calls without a host: reads its tasks, and evaluates their conditions with Ansible's templating."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple
from unittest import mock

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import lookup_loader
from ansible.template import Templar
from ansible_collections.onprem.lb.plugins.filter import plan

from support import keywords
from support.paths import ROLES
from support.recorded_plays import prepare

BUILTIN = "ansible.builtin."
INCLUDES = (f"{BUILTIN}import_tasks", f"{BUILTIN}include_tasks")
INCLUDED_ROLES = (f"{BUILTIN}import_role", f"{BUILTIN}include_role")
PACKAGES = "onprem.lb.packages"
PACKAGE, OMIT = f"{BUILTIN}package", "__omit__"
MANAGERS = (f"{BUILTIN}apt", f"{BUILTIN}dnf")
find_lookup = lookup_loader.get

REFUSE = "onprem.lb.refuse"

Call = Tuple[str, Dict[str, Any]]


def calls(role: str, variables: Dict[str, Any], *modules: str, tasks_from: str = "main.yml") -> List[Call]:
    """Return the calls of some modules with their arguments, in order. A task counts if its conditions hold, and those
    of the blocks and files around it.

    :param variables: everything that the conditions and these arguments refer to, registered results included
    """
    prepare()
    loader = DataLoader()
    templar = Templar(loader=loader, variables={"omit": OMIT, "item": "", **variables_of("packages"), **variables})

    def read(file: str, of: str = role) -> List[Dict[str, Any]]:
        return loader.load_from_file(str(ROLES / of / "tasks" / file), trusted_as_template=True)

    def holds(condition: str) -> bool:
        found = templar.evaluate_conditional(condition)
        keywords.note(condition, str(found))
        return found

    def found(task: Dict[str, Any]) -> Iterator[Call]:
        yield from ((module, templar.template(task[module])) for module in modules if module in task)
        if PACKAGE in task and {*MANAGERS} & {*modules}:  # runs the module of the host's package manager
            given = {key: value for key, value in templar.template(task[PACKAGE]).items() if value != OMIT}
            manager = BUILTIN + given.pop("use")
            yield from [(manager, given)] if manager in modules else []

    def walk(tasks: List[Dict[str, Any]], of: str = role) -> Iterator[Call]:
        for task in tasks:
            conditions = task.get("when", [])
            if not all(map(holds, conditions if isinstance(conditions, list) else [conditions])):
                continue
            yield from walk(task.get("block", []), of)
            for file in [task[key] for key in INCLUDES if key in task]:
                yield from walk(read(templar.template(file), of), of)
            for each in [task[key] for key in INCLUDED_ROLES if task.get(key, {}).get("name") == PACKAGES]:
                templar.available_variables = {**templar.available_variables, **task["vars"]}
                yield from walk(read(each["tasks_from"], "packages"), "packages")
            yield from found(task)

    with mock.patch.object(lookup_loader, "get", _find_lookup):
        return list(walk(read(tasks_from)))


def _find_lookup(name: str, *args: Any, **kwargs: Any) -> Any:
    """Find a builtin lookup by its short name: the full one takes a collection loader, which only a play installs."""
    return find_lookup(name[len(BUILTIN) :] if name.startswith(BUILTIN) else name, *args, **kwargs)


def tasks(role: str, file: str) -> List[Dict[str, Any]]:
    """Return the tasks of one file of a role, as they are written."""
    return yaml.safe_load((ROLES / role / "tasks" / file).read_text())


def stage_of_run(name: str) -> Dict[str, Any]:
    """Return a task of a layout's run by the first word of its name, with templates that can be evaluated."""
    path = str(ROLES / "layout" / "tasks" / "present.yml")
    (block,) = DataLoader().load_from_file(path, trusted_as_template=True)
    return next(task for task in block["block"] if task["name"].startswith(name))


def variables_of(role: str) -> Dict[str, Any]:
    """Return a role's own variables, those of its vars/main.yml or of the folder vars/main, as templates."""
    folder, loader = ROLES / role / "vars", DataLoader()
    found: Dict[str, Any] = {"role_path": str(ROLES / role)}
    for file in [*folder.glob("main.yml"), *folder.glob("main/*.yml")]:
        found.update(loader.load_from_file(str(file), trusted_as_template=True))
    if "__layout_paths" in found:  # a filter of a collection takes a collection loader, too
        found["__layout_paths"] = plan.layout_paths()
    return found


def refusals(role: str, file: str, variables: Dict[str, Any]) -> List[str]:
    """Return what a file of a role's tasks refuses, the sentences of all tasks that do.

    :param variables: what they name beside the role's own `vars/`, which these override
    """
    prepare()
    loader = DataLoader()

    def read(path: str) -> Any:
        return loader.load_from_file(str(ROLES / role / path), trusted_as_template=True)

    found: List[str] = []
    every = [each for task in read(f"tasks/{file}") for each in [task, *task.get("block", [])]]
    for task in [task for task in every if REFUSE in task]:
        known = {**variables_of(role), **task.get("vars", {}), **variables}
        found += Templar(loader=loader, variables=known).template(task[REFUSE]["faults"])
    return found


def defaults(role: str) -> Dict[str, Any]:
    """Return the defaults of a role's variables, as data."""
    return yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())
