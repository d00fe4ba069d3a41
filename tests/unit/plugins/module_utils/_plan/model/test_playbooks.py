# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user may set for the playbooks that act on members, and what is said of the rest."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.playbooks import (
    PLAYBOOKS,
    faults,
    is_true,
    layout_faults,
    model,
    variables,
)
from support.kinds import PYTHONS
from support.paths import PLAYBOOKS as FOLDER

NAMES = ["lb1", "lb2"]


@pytest.mark.parametrize(
    "given, work",
    [
        ({"packages": ["haproxy", "keepalived=1:2.2.7-1"]}, "the packages haproxy, keepalived=1:2.2.7-1 are updated"),
        ({"packages": "haproxy,psmisc", "reboot": "if_needed"}, None),
        ({"tasks": "~/update.yml", "pause": "60"}, "the tasks of ~/update.yml run, it is left to you for 60 s"),
        ({"reboot": "always"}, "it reboots"),
    ],
)
def test_the_work_is_said_in_words(given, work):
    found = model(given, NAMES)
    assert found.faults == []
    assert found.settings["work"] == (work or "the packages haproxy, psmisc are updated, it reboots if it needs to")


def test_lists_may_come_from_the_command_line():
    found = model({"members": "lb2,lb1", "packages": "haproxy,psmisc", "pause": "60"}, NAMES).settings
    assert (found["members"], found["packages"], found["pause"]) == (["lb2", "lb1"], ["haproxy", "psmisc"], 60)


@pytest.mark.parametrize(
    "given, sentence",
    [
        (
            {},
            "A maintenance would do nothing: set maintenance_packages, maintenance_reboot, maintenance_tasks or "
            "maintenance_pause.",
        ),
        (
            {"members": ["lb3"], "reboot": "always"},
            "maintenance_members has 'lb3', which is not a member: choose from lb1, lb2.",
        ),
        ({"reboot": "yes"}, "maintenance_reboot is 'yes': one of never, always, if_needed is required."),
        ({"reboot": True}, "maintenance_reboot is true: one of never, always, if_needed is required."),
        (
            {"packages": ["haproxy; reboot"]},
            "maintenance_packages is ['haproxy; reboot']: in it 'haproxy; reboot' is wrong: the name of a package is "
            "required.",
        ),
        (
            {"packages": {"haproxy": 1}},
            "maintenance_packages is a mapping: a list is required: write [ ] around it.",
        ),
        ({"pause": "10m"}, "maintenance_pause is '10m': a number of seconds from 0 to 86400 is required."),
        ({"pause": -1}, "maintenance_pause is -1: a number of seconds from 0 to 86400 is required."),
    ],
)
def test_what_is_wrong_is_one_sentence(given, sentence):
    assert model(given, NAMES).faults == [sentence]


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_the_variables_are_those_that_the_head_of_the_playbook_describes(playbook):
    head = (FOLDER / f"{playbook}.yml").read_text().partition("\n- name")[0]
    assert {*re.findall(rf"^#   ({playbook}_\w+)", head, re.MULTILINE)} == {*variables(playbook)}


@pytest.mark.parametrize("given, sentence", [({}, []), ({"format": "yaml"}, ["one of text, json is required."])])
def test_a_playbook_judges_its_own_variables_alone(given, sentence):
    assert faults(given, "status") == [f"status_format is 'yaml': {each}" for each in sentence]


# What is judged for each host, or as a whole, once the hosts are known.
LATER = {"dns": {*PLAYBOOKS["dns"]} - {"format", "output"}, "pods": {"address", "pool"}}
JUDGED = [(name, key) for name in PLAYBOOKS for key in PLAYBOOKS[name] if key not in LATER.get(name, ())]
YES = (True, 1, "1", "y", "Y", "t", "T", "yes", "Yes", "on", "ON", "true", "True", " true ")
NO = (False, 0, "0", "n", "N", "f", "F", "no", "No", "off", "OFF", "false", "False")
UNSET = (None, "")
WRONG = ("ture", "vielleicht", " ", 2, "2", [], [True], {}, {"a": True})
# Without a default, which null would stand for.
NEEDED = [("import", "output"), ("pods", "output"), ("pods", "agent_image"), ("restore", "file")]
TRUTHS = [(name, key) for name, key in JUDGED if re.search("break_lock|downgrade|list$|back$|transition", key)]


@pytest.mark.parametrize("playbook, key", TRUTHS)
def test_a_truth_value_is_true_or_false_and_nothing_that_looks_like_it(playbook, key):
    for value in WRONG:
        (fault,) = faults({key: value}, playbook)
        assert fault.startswith(f"{playbook}_{key} is ") and fault.endswith(": true or false is required.")
    for value in (*YES, *NO, *UNSET):
        assert faults({key: value}, playbook) == []


@pytest.mark.parametrize("playbook", ["pair", "ipi"])
def test_a_layouts_truth_value_takes_the_same_words(playbook):
    assert [value for value in (*YES, *NO, *UNSET) if layout_faults({"firewall": value}, playbook)] == []
    assert [value for value in WRONG if not layout_faults({"firewall": value}, playbook)] == []


@pytest.mark.parametrize("default", [True, False])
def test_what_is_judged_to_be_true_counts_as_true_and_what_is_unset_as_the_default(default):
    assert {is_true(value, default) for value in YES} == {True}
    assert {is_true(value, default) for value in (*NO, *WRONG)} == {False}
    assert {is_true(value, default) for value in UNSET} == {default}


def test_no_playbook_reads_a_truth_value_with_fewer_words_than_it_is_judged_by():
    """Ansible's filter `bool` takes y and t for false."""
    read = [name for path in FOLDER.rglob("*.yml") for name in re.findall(r"(.*)\| bool\b", path.read_text())]
    assert [line.strip() for line in read if "confirm" not in line] == []


def test_a_maintenance_takes_the_same_words():
    for value in (*YES, *NO, *UNSET):
        assert model({"reboot": "always", "break_lock": value}, NAMES).faults == []
    assert model(dict.fromkeys(PLAYBOOKS["maintenance"]) | {"reboot": "always"}, NAMES).faults == []


@pytest.mark.parametrize(
    "value, good", [(2.5, True), (0, True), ("0", True), (None, True), ("soon", False), (-1, False)]
)
def test_the_time_for_a_connection_is_any_number(value, good):
    assert (faults({"timeout": value}, "status") == []) is good


@pytest.mark.parametrize("value, good", [(["lb1", "lb2"], True), ("lb1:lb2", True), ([], False), ([{"a": 1}], False)])
def test_the_hosts_that_listen_are_a_pattern_or_a_list(value, good):
    assert (faults({"hosts": value}, "survey") == []) is good


@pytest.mark.parametrize("playbook, key", JUDGED)
def test_null_is_the_default_where_there_is_one(playbook, key):
    assert len(faults({key: None}, playbook)) == ((playbook, key) in NEEDED)


@pytest.mark.parametrize("playbook, key", JUDGED)
def test_a_mapping_and_a_list_of_mappings_are_refused_in_the_name_that_the_user_wrote(playbook, key):
    for value in ({"a": 1}, [{"a": 1}], [None]):
        found = faults({key: value}, playbook)
        assert len(found) == 1 and found[0].startswith(f"{playbook}_{key} is "), value
        assert " required" in found[0] and not PYTHONS.search(found[0])
