# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user may set for the playbooks that act on members, and what is said of the rest."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.playbooks import PLAYBOOKS, faults, model, variables
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
        ({"reboot": True}, "maintenance_reboot is True: one of never, always, if_needed is required."),
        (
            {"packages": ["haproxy; reboot"]},
            "maintenance_packages is ['haproxy; reboot']: in it 'haproxy; reboot' is wrong: the name of a package is "
            "required.",
        ),
        ({"packages": {"haproxy": 1}}, "maintenance_packages is a mapping: a list is required."),
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
TRUTHS = [(name, key) for name, key in JUDGED if re.search("break_lock|downgrade|list$|back$|transition", key)]


@pytest.mark.parametrize("playbook, key", TRUTHS)
def test_a_truth_value_is_true_or_false_and_nothing_that_looks_like_it(playbook, key):
    for value in ("ture", "vielleicht", "", 2, None, [], [True], {}, {"a": True}):
        (fault,) = faults({key: value}, playbook)
        assert fault.startswith(f"{playbook}_{key} is ") and fault.endswith(": true or false is required.")
    for value in (True, False, "true", "yes", "off"):
        assert faults({key: value}, playbook) == []


@pytest.mark.parametrize("playbook, key", JUDGED)
def test_null_a_mapping_and_a_list_of_mappings_are_refused_in_the_name_that_the_user_wrote(playbook, key):
    for value in (None, {"a": 1}, [{"a": 1}], [None]):
        found = faults({key: value}, playbook)
        assert len(found) == 1 and found[0].startswith(f"{playbook}_{key} is "), value
        assert " required" in found[0] and "None" not in found[0].replace("[None]", "")
