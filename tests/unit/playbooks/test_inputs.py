# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`onprem.lb.site` and `onprem.lb.forecast` refuse a wrong input in the same words, before a host is connected to."""

from __future__ import annotations

import json

import pytest
from support.playbooks import play

HOSTS = """
[pair]
lb1 ansible_host=192.0.2.11
lb2 ansible_host=192.0.2.12

[pair:vars]
pair_vips=["192.0.2.10/24"]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""
ROWS = {
    "pair_members names nobody": (
        {"pair_members": ["lb1", "lb9"]},
        "pair_members: lb9 is no host of the inventory, correct the name.",
    ),
    "pairvrid without its underscore": (
        {"pairvrid": 7},
        "pairvrid is no variable of the role: did you mean pair_vrid?",
    ),
    "haproxy_services beside the pair's": (
        {"haproxy_services": []},
        "haproxy_services has no effect here: set pair_services instead.",
    ),
    "pair_vips: {}": ({"pair_vips": {}}, "pair_vips is {}: a list of at least one address is wanted."),
    "pair_state: absnet": ({"pair_state": "absnet"}, "pair_state is 'absnet': one of present, absent is wanted."),
}


@pytest.mark.parametrize("playbook", ["onprem.lb.site", "onprem.lb.forecast"])
@pytest.mark.parametrize("given, sentence", ROWS.values(), ids=ROWS)
def test_a_wrong_input_is_one_sentence_and_no_host_is_reached(tmp_path, playbook, given, sentence):
    code, said = play(tmp_path, HOSTS, playbook, "--extra-vars", json.dumps(given))
    assert code != 0 and sentence in said
    assert "UNREACHABLE" not in said and "Validating arguments against arg spec" not in said.partition("fatal:")[2]


def test_a_name_two_edits_from_a_known_one_is_a_warning(tmp_path):
    code, said = play(tmp_path, HOSTS, "onprem.lb.forecast", "--extra-vars", json.dumps({"pair_vridsx": 7}))
    assert code == 0 and said.count("pair_vridsx is no variable of the role: did you mean pair_vrid?") == 1


@pytest.mark.parametrize("tag", ["preflight", "install", "configure", "verify"])
def test_each_stage_can_be_chosen_by_its_tag_and_judges_the_inputs_first(tmp_path, tag):
    code, said = play(tmp_path, HOSTS, "onprem.lb.site", "--extra-vars", "pair_state=absnet", "--tags", tag)
    assert code != 0 and "pair_state is 'absnet'" in said


def test_a_tag_of_other_plays_leaves_the_pair_alone(tmp_path):
    code, said = play(tmp_path, HOSTS, "onprem.lb.site", "--extra-vars", "pair_state=absnet", "--tags", "web")
    assert code == 0 and "pair_state" not in said
