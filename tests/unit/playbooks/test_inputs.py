# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`onprem.lb.site` and `onprem.lb.forecast` refuse a wrong input in the same words, before a host is connected to."""

from __future__ import annotations

import json
import re

import pytest
from support.paths import ROOT
from support.playbooks import PAIR, play
from support.variable_tables import options

from ..plugins.module_utils._plan.model.test_playbooks import JUDGED

PLAYBOOKS = ["onprem.lb.site", "onprem.lb.forecast"]
# Beside one of these no other variable is judged.
FIRST = {
    "pair_members names nobody": (
        {"pair_members": ["lb1", "lb9"]},
        "pair_members: lb9 is not a host in the inventory: correct the name.",
    ),
    "pair_state: absnet": (
        {"pair_state": "absnet"},
        "pair_state is 'absnet': one of present, absent is required: did you mean absent?",
    ),
}
TOGETHER = {
    "pairvrid": (7, "pairvrid is not a variable of the role: did you mean pair_vrid?"),
    "pair_vips": ({}, "pair_vips is a mapping: a list of at least one address is required."),
}
OF_LB2 = {"haproxy_services": ([], "haproxy_services has no effect here: set pair_services instead.")}


@pytest.mark.parametrize("playbook", PLAYBOOKS)
@pytest.mark.parametrize("given, sentence", FIRST.values(), ids=FIRST)
def test_a_wrong_input_is_one_sentence_and_no_host_is_reached(tmp_path, playbook, given, sentence):
    code, said = play(tmp_path, PAIR, playbook, "--extra-vars", json.dumps(given))
    assert code != 0 and sentence in said
    assert "UNREACHABLE" not in said and "Validating arguments against arg spec" not in said.partition("fatal:")[2]


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_all_that_is_wrong_is_said_at_once_and_not_once_for_each_host(tmp_path, playbook):
    given, own = ({name: value for name, (value, _sentence) in rows.items()} for rows in (TOGETHER, OF_LB2))
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "lb2.json").write_text(json.dumps(own))
    code, said = play(tmp_path, PAIR, playbook, "--extra-vars", json.dumps(given))
    assert code != 0 and said.count("fatal:") == 1
    assert [name for name, (_value, sentence) in {**TOGETHER, **OF_LB2}.items() if sentence not in said] == []
    assert "UNREACHABLE" not in said and "Validating arguments against arg spec" not in said.partition("fatal:")[2]


def test_what_only_the_forecast_finds_is_said_once(tmp_path):
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", "--extra-vars", "pair_track_weight=1")
    assert code != 0 and said.count("fatal:") == 1 and "so the VIP would never move" in said


ALONE = {
    "haproxy": {
        "haproxy_maxconn": ("lots", "haproxy_maxconn is 'lots': a whole number from 0 to 10000000 is required."),
        "haproxy_adopt": ("vielleicht", "haproxy_adopt is 'vielleicht': true or false is required."),
        "haproxy_services": (
            [{"name": "web", "ports": 80, "port": 80, "servers": ["192.0.2.31"]}],
            "haproxy_services[0] (web) has the unknown key 'ports': did you mean 'port'?",
        ),
    },
    "keepalived": {
        "keepalived_state": (
            "absnet",
            "keepalived_state is 'absnet': one of present, absent is required: did you mean absent?",
        ),
        "keepalived_config_path": (
            "{{ nope }}/x",
            "keepalived_config_path refers to nope, which is not set: set it, or correct its name.",
        ),
        "keepalived_instances": (
            [{"name": "front", "interface": "eth0", "vrid": "x", "multicast": True, "addresses": ["192.0.2.10"]}],
            "keepalived_instances[0] (front).vrid is 'x': a VRID from 1 to 255 is required.",
        ),
    },
    "agent": {
        "agent_replace": ("haproxy", "agent_replace is 'haproxy': a list is required, such as "),
        "agent_scripts": ("{{ agent_scripts }}", "agent_scripts refers to itself: give it a value."),
    },
}


@pytest.mark.parametrize("role, rows", ALONE.items(), ids=ALONE)
def test_a_component_role_judges_all_its_variables_before_ansible_does(tmp_path, role, rows):
    playbook = tmp_path / "alone.yml"
    playbook.write_text(json.dumps([{"hosts": "lb1", "gather_facts": False, "roles": [f"onprem.lb.{role}"]}]))
    given = json.dumps({name: value for name, (value, _sentence) in rows.items()})
    code, said = play(tmp_path, PAIR, str(playbook), "--extra-vars", given)
    assert code != 0 and [name for name, (_value, sentence) in rows.items() if sentence not in said] == []
    assert "UNREACHABLE" not in said and "Validating arguments" not in said


BESIDE = {
    "keepalived_config_path": (
        "{{ nope }}/x",
        "keepalived_config_path refers to nope, which is not set: set it, or correct its name.",
    ),
    "haproxy_timeout_client": (5, "haproxy_timeout_client is 5: a time without a unit: write 5s, or 5ms."),
    "pair_vips": ("{{ pair_vips }}", "pair_vips refers to itself: give it a value."),
    "pair_down_file": ("{{", "pair_down_file has braces that are not a Jinja template: correct them"),
}


@pytest.mark.parametrize("playbook", ["onprem.lb.site", "onprem.lb.forecast", "onprem.lb.dns"])
def test_a_layout_judges_the_component_roles_variables_and_what_cannot_be_evaluated(tmp_path, playbook):
    given = json.dumps({name: value for name, (value, _sentence) in BESIDE.items()})
    code, said = play(tmp_path, PAIR, playbook, "--extra-vars", given)
    assert code != 0 and [name for name, (_value, sentence) in BESIDE.items() if sentence not in said] == []
    assert "UNREACHABLE" not in said and "Validating arguments" not in said


def test_a_name_two_edits_from_a_known_one_is_a_warning(tmp_path):
    code, said = play(tmp_path, f"{PAIR}pair_vridsx=7\n", "onprem.lb.forecast")
    assert code == 0 and said.count("pair_vridsx is not a variable of the role: did you mean pair_vrid?") == 1


@pytest.mark.parametrize("tag", ["preflight", "install", "configure", "verify"])
def test_each_stage_can_be_chosen_by_its_tag_and_judges_the_inputs_first(tmp_path, tag):
    code, said = play(tmp_path, PAIR, "onprem.lb.site", "--extra-vars", "pair_state=absnet", "--tags", tag)
    assert code != 0 and "pair_state is 'absnet'" in said


ABSENT = ("--extra-vars", "pair_state=absnet")
STAGES = "preflight, install, configure, verify."


def test_a_tag_of_other_plays_leaves_the_pair_alone(tmp_path):
    playbook = tmp_path / "own.yml"
    own = {"name": "Own", "hosts": "localhost", "gather_facts": False, "tags": "web", "tasks": []}
    playbook.write_text(json.dumps([{"import_playbook": "onprem.lb.site"}, own]))
    code, said = play(tmp_path, PAIR, str(playbook), *ABSENT, "--tags", "web")
    assert code == 0 and "pair_state" not in said


UNKNOWN = "--tags names {}, which no task has: {}"
SKIPPED = "--skip-tags names {}, which skips everything or nothing: {}"
CHOOSE = f"name the stages to run with --tags, of {STAGES}"
NONE = "the playbook has no tags, leave it out."
TAGS = {
    "a misspelt one": ("site", ["--tags", "cofigure"], UNKNOWN.format("cofigure", f"choose of {STAGES}")),
    "one of two": ("pair", ["--tags", "install,verfy"], UNKNOWN.format("verfy", f"choose of {STAGES}")),
    "what all tasks have none of": ("ipi", ["--tags", "untagged"], UNKNOWN.format("untagged", f"choose of {STAGES}")),
    "a playbook without tags": ("forecast", ["--tags", "verify"], UNKNOWN.format("verify", NONE)),
    "one that is skipped": ("site", ["--skip-tags", "cofigure"], SKIPPED.format("cofigure", CHOOSE)),
    "a stage that is skipped, with all tasks": ("pair", ["--skip-tags", "verify"], SKIPPED.format("verify", CHOOSE)),
    "one that is skipped where there are none": ("remove", ["--skip-tags", "verify"], SKIPPED.format("verify", NONE)),
}


@pytest.mark.parametrize("playbook, arguments, sentence", TAGS.values(), ids=TAGS)
def test_a_tag_that_selects_nothing_is_refused(tmp_path, playbook, arguments, sentence):
    """Ansible itself would do nothing, or skip nothing, and be content."""
    code, said = play(tmp_path, PAIR, f"onprem.lb.{playbook}", *arguments)
    assert code != 0 and sentence in said and said.count("fatal:") == 1
    assert "UNREACHABLE" not in said


@pytest.mark.parametrize("arguments", [["--tags", "all"], ["--tags", "tagged"], ["--skip-tags", "never"]])
def test_what_ansible_itself_calls_tags_may_be_named(tmp_path, arguments):
    code, said = play(tmp_path, PAIR, "onprem.lb.pair", *ABSENT, *arguments)
    assert code != 0 and "pair_state is 'absnet'" in said


def test_the_path_of_a_playbook_is_judged_as_its_name_is(tmp_path):
    code, said = play(tmp_path, PAIR, str(ROOT / "playbooks" / "pair.yml"), "--tags", "cofigure")
    assert code != 0 and UNKNOWN.format("cofigure", f"choose of {STAGES}") in said


# By the playbook: an extra variable that none knows, and the nearest one that it does.
MEANT = {
    "backup": ("backup_file", "backup_folder"),
    "dns": ("dns_file", "dns_ttl"),
    "drill": ("drill_retries", "drill_repeats"),
    "forecast": ("forecast_living", "forecast_transition"),
    "import": ("import_outputs", "import_output"),
    "ipi": ("ipi_take_it_over", "ipi_take_over"),
    "maintenance": ("maintenance_hosts", "maintenance_tasks"),
    "pair": ("pair_vip_list", "pair_vips"),
    "pods": ("pods_agents_image", "pods_agent_image"),
    "restore": ("restore_folder", "restore_file"),
    "rollback": ("rollback_id", "rollback_list"),
    "site": ("pair_vip_list", "pair_vips"),
    "status": ("status_file", "status_timeout"),
    "survey": ("survey_duration", "survey_seconds"),
    "switchover": ("switchover_too", "switchover_to"),
}
CLUSTER = """
[ipi_masters]
m0 ansible_host=198.51.100.1
[ipi_masters:vars]
ipi_cluster_name=lab
ipi_interface=eth1
"""


@pytest.mark.parametrize("playbook, name, near", [(key, *names) for key, names in MEANT.items()], ids=MEANT)
def test_an_extra_variable_that_nothing_knows_is_refused_with_the_nearest_before_a_host_is_reached(
    tmp_path, playbook, name, near
):
    groups = CLUSTER if playbook in ("ipi", "pods") else PAIR
    code, said = play(tmp_path, f"{groups}[probe]\nclient\n", f"onprem.lb.{playbook}", "-e", f"{name}=x")
    assert code == 2 and re.search(rf"{name} is not a variable of the \w+: did you mean {near}\?", said), said
    assert "UNREACHABLE" not in said and "cannot be reached" not in said


@pytest.mark.parametrize(
    "playbook, name", [("site", "backup_file"), ("backup", "maintenance_window"), ("site", "pair")]
)
def test_an_extra_variable_with_the_prefix_of_another_playbook_may_be_somebody_elses(tmp_path, playbook, name):
    _code, said = play(tmp_path, PAIR, f"onprem.lb.{playbook}", "-e", f"{name}=x")
    assert f"{name} is not a variable" not in said


def test_a_playbook_that_imports_ours_may_have_extra_variables_of_its_own(tmp_path):
    playbook = tmp_path / "own.yml"
    playbook.write_text(json.dumps([{"import_playbook": "onprem.lb.forecast"}]))
    code, said = play(tmp_path, PAIR, str(playbook), "-e", "forecast_for=lab")
    assert code == 0 and "forecast_for" not in said


def test_every_playbook_but_the_removal_which_has_none_of_its_own_is_among_them():
    assert {*MEANT, "remove"} == {file.stem for file in (ROOT / "playbooks").glob("*.yml")}


@pytest.mark.parametrize(
    "playbook, variable, work",
    [
        ("onprem.lb.dns", "dns_output", "Compute the records"),
        ("onprem.lb.backup", "backup_folder", "Lock the members"),
        ("onprem.lb.status", "status_output", "Read the members]"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path, playbook, variable, work):
    path = tmp_path / "file" / "below"
    path.parent.touch()
    code, said = play(tmp_path, PAIR, playbook, "--extra-vars", f"{variable}={path}")
    assert code != 0 and said.count("fatal:") == 1 and f"{variable} is {path}: " in said and work not in said


# Of Python, Jinja and Ansible.
WORDS = re.compile(r"Traceback|NoneType|filter plugin|unhashable|Unexpected templating")
OWN = {name: [f"{name}_{key}" for name_, key in JUDGED if name_ == name] for name in {name for name, _key in JUDGED}}


@pytest.mark.parametrize("playbook", sorted(OWN))
@pytest.mark.parametrize("value", [{"a": 1}, [{"a": 1}]], ids=["mapping", "list"])
def test_each_variable_of_a_playbook_is_refused_in_its_own_name_before_a_host_is_reached(tmp_path, playbook, value):
    groups = CLUSTER if playbook == "pods" else PAIR
    names = OWN[playbook]
    given = dict.fromkeys((name for name in names if name != "survey_hosts"), value)  # Ansible asks for the hosts first
    code, said = play(tmp_path, groups, f"onprem.lb.{playbook}", "--extra-vars", json.dumps(given))
    said = " ".join(said.split())
    assert code == 2 and [name for name in given if f"{name} is " not in said] == [], said
    assert "UNREACHABLE" not in said and "cannot be reached" not in said
    assert not WORDS.search(said) and "has been hidden" not in said, said


TRUE = {"switchover": "switchover_back", "backup": "backup_break_lock", "status": "pair_firewall"}


@pytest.mark.parametrize("playbook, name", TRUE.items())
def test_what_looks_like_a_truth_value_does_not_count_as_false(tmp_path, playbook, name):
    code, said = play(tmp_path, PAIR, f"onprem.lb.{playbook}", "-e", f"{name}=ture")
    assert code == 2 and f"{name} is 'ture': true or false is required." in said
    assert "UNREACHABLE" not in said and "Lock the members" not in said


UNSET = {
    "forecast": {"forecast_transition": None},
    "dns": {"dns_format": None, "dns_output": None, "dns_domain": "example.com"},
    "status": {"status_timeout": None, "status_format": None, "status_output": None},
    "survey": {"survey_hosts": ["lb1", "lb2"], "survey_interface": None, "survey_seconds": None},
    "switchover": {
        "switchover_to": None,
        "switchover_from": None,
        "switchover_back": "y",
        "switchover_wait": None,
        "pair_firewall": 1,
    },
    "rollback": {"rollback_to": None, "rollback_list": 1, "rollback_undo_after": None},
    "backup": {"backup_folder": None, "backup_break_lock": ""},
}


@pytest.mark.parametrize("playbook, given", UNSET.items(), ids=UNSET)
def test_null_stands_for_the_default_and_the_run_goes_on(tmp_path, playbook, given):
    code, said = play(tmp_path, PAIR, f"onprem.lb.{playbook}", "--extra-vars", json.dumps(given))
    assert [name for name in given if f"{name} is " in said] == [], said
    assert not WORDS.search(said), said
    assert code == 0 or "there_is_none" in said, said  # the program that Ansible connects with


# What makes a pair, and who its members are.
MAKING = ("pair_vips", "pair_services", "pair_masters", "pair_infra_nodes", "pair_hosts", "pair_members")


def test_null_in_every_variable_of_a_pair_is_its_default_or_refused_by_its_name(tmp_path):
    given = dict.fromkeys(name for name in options("pair") if name not in MAKING)
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", "--extra-vars", json.dumps(given))
    refused = set(re.findall(r"(pair_\w+) is null: ", said))
    assert code == 2 and "pair_state" in refused and not WORDS.search(said), said
    left = {name: value for name, value in given.items() if name not in refused}
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", "--extra-vars", json.dumps(left))
    assert code == 0 and not WORDS.search(said), said


OF_MEMBERS = {
    "pair_interface": ([["eth0"], {"a": 1}, [None]], "pair_interface is "),
    "ansible_host": ([None], "lb1: ansible_host is null: an address or a name is required."),
}


@pytest.mark.parametrize("name, values, begin", [(key, *row) for key, row in OF_MEMBERS.items()], ids=OF_MEMBERS)
def test_what_stands_for_a_host_before_it_is_read_is_judged_first(tmp_path, name, values, begin):
    for value in values:
        code, said = play(tmp_path, PAIR, "onprem.lb.forecast", "--extra-vars", json.dumps({name: value}))
        assert code == 2 and begin in said and "This is a bug" not in said, said
