# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role layout stays as small as it is: Python decides, and YAML calls. Lower a figure when you have lowered it."""

from __future__ import annotations

import re

import pytest
import yaml
from support.paths import PLAYBOOKS, ROLES

LAYOUT = ROLES / "layout"
TASKS = LAYOUT / "tasks"
FILES = [path for path in LAYOUT.rglob("*") if path.is_file()]
FIGURES = {"files": 54, "lines": 2067, "private variables": 127, "depth": 3}
INCLUDES = ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks")
OWNERS = "|".join(path.name for path in ROLES.iterdir())


def each_mapping(value):
    """Yield every mapping in tasks or plays."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from each_mapping(each)


def included(file):
    """Return the files of tasks that one includes; of a name that Jinja makes, each that it may be."""
    tasks = yaml.safe_load((TASKS / file).read_text())
    values = [task[key] for task in each_mapping(tasks) for key in INCLUDES if key in task]
    names = [str(value["file"] if isinstance(value, dict) else value) for value in values]
    return {found for name in names for found in re.findall(r"[\w/]+\.yml", name)} - {file}


def depth(file, seen=()):
    """Return how many includes lead on from a file, one inside the other; a heartbeat may repeat itself."""
    return max((1 + depth(each, (*seen, file)) for each in included(file) if each not in seen), default=0)


def found():
    texts = [path.read_text() for path in FILES]
    return {
        "files": len(FILES),
        "lines": sum(text.count("\n") for text in texts),
        "private variables": len({name for text in texts for name in re.findall(r"__layout_\w+", text)}),
        "depth": max(depth(path.name) for path in TASKS.glob("*.yml")),
    }


@pytest.mark.parametrize("what, limit", FIGURES.items())
def test_the_layout_grows_no_yaml(what, limit):
    assert found()[what] <= limit


def test_no_playbook_sets_a_private_variable_of_a_role():
    """A change of the role would break the playbook, in the middle of a run."""
    names = []
    for path in PLAYBOOKS.rglob("*.yml"):
        for each in each_mapping(yaml.safe_load(path.read_text())):
            names += [each.get("register"), *each.get("ansible.builtin.set_fact", {}), *(each.get("vars") or {})]
    private = re.compile(rf"__(?:{OWNERS})_\w+")
    assert names and [name for name in names if name and private.fullmatch(str(name))] == []
