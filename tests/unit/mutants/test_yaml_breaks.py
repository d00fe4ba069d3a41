# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be broken in a file of tasks or in a playbook."""

from __future__ import annotations

import pytest
import yaml
from mutants.yaml_breaks import breaks_of, broken
from support.paths import ROLES

TASKS = """\
---
- name: First
  ansible.builtin.command:
    cmd: run
  changed_when: false

# Said before the block.
- when:
    - one is defined
    - two or three
  block:
    - name: Second
      ansible.builtin.command: run
      failed_when: >-
        found.rc != 0
        or found.late
      no_log: "{{ hidden | default(true) }}"

  rescue:
    - name: Third
      ansible.builtin.fail:
        msg: no
      run_once: true
  always:
    - name: Fourth
      ansible.builtin.debug:
        msg: when
      ignore_errors: "{{ a }}{{ b }}"
"""
PLAY = """\
- name: Play
  hosts: all
  tasks:
    - name: One
      ansible.builtin.debug:
        msg: one
    - name: Two
      ansible.builtin.debug:
        msg: two
"""


def results(kind, text=TASKS):
    return [yaml.safe_load(broken(text, one)) for one in breaks_of(text)[kind]]


def test_a_condition_says_the_opposite_also_as_a_list_and_over_several_lines():
    assert results("when")[0][1]["when"] == "not ((one is defined) and (two or three))"
    assert results("failed_when")[0][1]["block"][0]["failed_when"] == "not (found.rc != 0 or found.late)"
    assert results("changed_when")[0][0]["changed_when"] is True


def test_a_keyword_that_is_true_is_false_and_a_template_says_the_opposite():
    assert results("run_once")[0][1]["rescue"][0]["run_once"] is False
    assert results("no_log")[0][1]["block"][0]["no_log"] == "{{ not (hidden | default(true)) }}"
    assert "ignore_errors" not in breaks_of(TASKS), "of several templates nobody knows the opposite"


@pytest.mark.parametrize("kind, left", [("rescue", "always"), ("always", "rescue")])
def test_a_block_loses_its_end(kind, left):
    ((_first, block),) = results(kind)
    assert block.keys() == {"when", "block", left}


def test_a_task_is_gone_unless_it_is_the_only_one():
    assert [[task.get("name", "block") for task in tasks] for tasks in results("task")] == [["block"], ["First"]]


def test_of_a_playbook_the_plays_stay():
    assert [[task["name"] for task in play["tasks"]] for (play,) in results("task", PLAY)] == [["Two"], ["One"]]


def test_a_task_to_which_another_one_refers_is_no_break():
    text = "- a: &a {b: c}\n- d: *a\n"
    assert [broken(text, one) == text for one in breaks_of(text)["task"]] == [True, False]


def test_each_break_of_a_file_changes_what_ansible_reads():
    text = (ROLES / "layout" / "tasks" / "lock.yml").read_text()
    before = yaml.serialize(yaml.compose(text))
    for breaks in breaks_of(text).values():
        assert [one for one in breaks if yaml.serialize(yaml.compose(broken(text, one))) == before] == []
