# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-doc shows as examples is what the plugins take: filters are evaluated, modules' arguments validated.

It shows the keys of a mapping by the alphabet, so that no description may lean on the one before it.
"""

from __future__ import annotations

import importlib
import re

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.onprem.lb.plugins.modules import vrid
from support import recorded_plays
from support.documents import argument_spec
from support.modules import run
from support.paths import FILTERS, MODULES, ROLES
from support.recorded_plays import COLLECTION
from support.segments import hear

MODULE = "ansible_collections.onprem.lb.plugins.modules."
HOST = {"all": {"lb1": {}}}
# How a description begins, or ends, that does not say of what it is.
LEANING = re.compile(
    r"^How (many|long)( more)? (were|was|of (these|those)|after that)\b|\b(median|first) of (all )?th[eo]se\b"
)


def documentation(name):
    module = importlib.import_module(MODULE + name)
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


def described(keys):
    """Yield the description of each key, and of those in it."""
    for about in (keys or {}).values():
        text = about["description"]
        yield " ".join(text) if isinstance(text, list) else text
        for inner in ("options", "suboptions", "contains"):
            yield from described(about.get(inner))


def test_no_description_leans_on_the_one_before_it():
    modules = [importlib.import_module(f"{MODULE}{file.stem}") for file in MODULES.glob("[!_]*.py")]
    specs = [yaml.safe_load(file.read_text()) for file in ROLES.glob("*/meta/argument_specs.yml")]
    keys = [spec["argument_specs"]["main"]["options"] for spec in specs]
    keys += [yaml.safe_load(module.DOCUMENTATION)["options"] for module in modules]
    keys += [yaml.safe_load(module.RETURN) for module in modules if module.RETURN.strip()]
    texts = [text for each in keys for text in described(each)]
    assert len(texts) > 500 and [text for text in texts if LEANING.search(text)] == []


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
