# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays against recorded results depend on nothing that this process has done with Ansible before."""

from __future__ import annotations

from unittest import mock

import pytest
from ansible._internal._datatag._tags import TrustedAsTemplate
from ansible._internal._templating._engine import TemplateEngine
from ansible.playbook.base import FieldAttributeBase
from ansible.playbook.block import Block
from ansible.playbook.play import Play
from ansible.playbook.task import Task
from ansible.release import __version__
from support import remembered
from support.inventories import Inventory
from support.paths import EXAMPLES
from support.recorded_plays import run


def test_a_run_has_its_own_options_whoever_has_used_ansible_before():
    Inventory(next(EXAMPLES.iterdir()))  # without any options
    seen = "{{ [ansible_version.full, ansible_check_mode, ansible_limit, ansible_run_tags] }}"
    play = [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": seen}}]}]
    for check, limit in ((True, "lb1"), (False, "pair")):
        done = run(play, {"pair": {"lb1": {}}}, check=check, limit=limit)
        assert done.said == [[__version__, check, limit, ["all"]]]


def test_a_variable_is_evaluated_once_for_all_arguments_of_a_task_and_for_each_item():
    drawn = {"ansible.builtin.set_fact": {"one": "{{ drawn }}", "two": "{{ drawn }}"}}
    drawn["vars"] = {"drawn": "{{ (10 ** 12) | random }}"}
    said = {"ansible.builtin.debug": {"msg": "{{ twice }}"}, "loop": [1, 2], "vars": {"twice": "{{ item * 2 }}"}}
    done = run([{"hosts": "all", "gather_facts": False, "tasks": [drawn, said]}], {"pair": {"lb1": {}, "lb2": {}}})
    assert done.code == 0, done.faults()
    assert done.facts["lb1"]["one"] == done.facts["lb1"]["two"] != done.facts["lb2"]["one"]
    assert done.said == [2, 4, 2, 4]


def test_a_variable_is_evaluated_anew_once_another_one_is_set_and_in_a_copy_of_its_templar():
    variables = {"a": 1, "b": TrustedAsTemplate().tag("{{ a }}")}
    templar, wanted = TemplateEngine(variables=variables), TrustedAsTemplate().tag("{{ b }}")
    with mock.patch.object(*remembered.WRAPPED):
        assert templar.template(wanted) == 1
        variables["a"] = 2
        assert templar.template(wanted) == 2
        other = templar.copy()
        other.available_variables = {**variables, "a": 3}
        assert (other.template(wanted), templar.template(wanted)) == (3, 2)
        variables["c"] = 4
        assert templar.template(TrustedAsTemplate().tag("{{ c }}")) == 4


@pytest.mark.parametrize(
    "kind, given",
    [
        (Task, {"ansible.builtin.debug": {"msg": "a"}, "tags": ["b"], "when": ["c"], "async": 5, "no_log": True}),
        (Block, {"block": [{"ansible.builtin.debug": {"msg": "a"}}], "vars": {"b": 1}}),
        (Play, {"hosts": "all", "vars": {"b": 1}, "tasks": []}),
    ],
)
def test_a_copy_has_what_ansibles_own_has_and_shares_no_list_or_mapping(kind, given):
    item = kind.load(given)
    vars(item).update(_origin="a", _validated=True, _finalized=True, _uuid="b")
    copy, wanted = remembered.copied(item), FieldAttributeBase.copy(item)
    assert isinstance(copy, kind) and vars(copy) == vars(wanted)
    values = [name for name, value in vars(item).items() if isinstance(value, (list, dict)) and name != "_ds"]
    assert values and [name for name in values if vars(copy)[name] is vars(item)[name]] == []
