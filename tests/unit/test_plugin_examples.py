# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-doc shows as examples is what the plugins take: filters are evaluated, modules' arguments validated."""

from __future__ import annotations

import importlib

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.onprem.lb.plugins.modules import vrid
from support import recorded_plays
from support.documents import argument_spec
from support.modules import run
from support.paths import FILTERS, MODULES
from support.recorded_plays import COLLECTION
from support.segments import hear

HOST = {"all": {"lb1": {}}}


def documentation(name):
    module = importlib.import_module(f"ansible_collections.onprem.lb.plugins.modules.{name}")
    return yaml.safe_load(module.DOCUMENTATION)["options"], yaml.safe_load(module.EXAMPLES)


@pytest.mark.parametrize("name", sorted(file.stem for file in MODULES.glob("[!_]*.py")))
def test_each_example_of_a_module_has_the_arguments_that_it_takes(name):
    options, examples = documentation(name)
    own = [task[COLLECTION + name] or {} for task in examples if COLLECTION + name in task]
    assert own
    for arguments in own:
        literal = {key: value for key, value in arguments.items() if "{{" not in str(value)}
        assert arguments.keys() <= options.keys()
        spec = argument_spec({key: option for key, option in options.items() if key in literal})
        assert ArgumentSpecValidator(spec).validate(literal).error_messages == []


def test_each_example_of_a_filter_is_evaluated():
    files = {file.stem: yaml.safe_load(file.read_text()) for file in FILTERS.glob("*.yml")}
    tasks = [
        task for found in files.values() for task in yaml.safe_load(found["EXAMPLES"]) if "Internal" not in str(found)
    ]
    play = recorded_plays.run([{"hosts": "all", "gather_facts": False, "tasks": tasks}], HOST)
    assert (play.code, play.faults()) == (0, [])
    assert all(play.said) and 0 < len(play.calls) < len(play.said) + len(play.calls) == len(tasks)


def test_the_examples_of_vrid_find_what_they_look_for(monkeypatch):
    hear(monkeypatch)
    for task in documentation("vrid")[1]:
        assert not run(vrid, task[f"{COLLECTION}vrid"]).get("failed")
