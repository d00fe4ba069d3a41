# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks backup and restore where no host answers, and with a wrong file. On hosts: molecule/default."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import backup
from support.playbooks import PAIR, play
from support.recorded_hosts import PAIR as MEMBERS
from support.recorded_hosts import PAIR_VARIABLES, locked
from support.recorded_plays import run

OF_OTHERS = json.dumps({"backup": "20260131T120000Z", "members": {"lb8": {}}})


def restore(tmp_path, text, *given):
    (tmp_path / "backup.json").write_text(text)
    return play(tmp_path, PAIR, "onprem.lb.restore", "-e", "restore_file=~/backup.json", *given)


def test_no_file_is_written_where_no_member_answers(tmp_path):
    code, said = play(tmp_path, PAIR, "onprem.lb.backup", "-e", "backup_folder=~/backups")
    assert code == 2 and "There is nothing to back up: lb1 cannot be read: " in said
    assert not (tmp_path / "backups").exists()


@pytest.mark.parametrize("name, misspelt, meant", [("backup", "foldr", "folder"), ("restore", "files", "file")])
def test_a_misspelt_variable_is_refused(tmp_path, name, misspelt, meant):
    code, said = play(tmp_path, PAIR, f"onprem.lb.{name}", "-e", f"{name}_{misspelt}=x")
    assert code == 2 and f"{name}_{misspelt}" in said and f"{name}_{meant}" in said and "Lock the members" not in said


@pytest.mark.parametrize(
    "given, sentence",
    [
        ((), "restore_file is not set: give the path of a file that onprem.lb.backup wrote"),
        (("-e", "restore_file=/missing.json"), "restore_file is /missing.json: give the path of a file"),
        (("-e", "restore_undo_after=abc"), "restore_undo_after is 'abc': a number from 0 to 3600 seconds is required."),
    ],
)
def test_a_file_is_required(tmp_path, given, sentence):
    code, said = play(tmp_path, PAIR, "onprem.lb.restore", *given)
    assert code == 2 and sentence in said


def test_a_relative_path_is_where_the_user_is(tmp_path):
    (tmp_path / "backup.json").write_text(OF_OTHERS)
    _code, said = play(tmp_path, PAIR, "onprem.lb.restore", "-e", "restore_file=backup.json")
    assert "restore_file is backup.json, the backup of lb8" in said


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("no backup", "which is not a backup: it is not JSON"),
        (OF_OTHERS, "the backup of lb8 of 2026-01-31 12:00:00 UTC, and the members here are lb1, lb2"),
    ],
)
def test_a_file_that_is_not_theirs_is_refused_before_a_member_is_asked(tmp_path, text, sentence):
    code, said = restore(tmp_path, text)
    assert code == 2 and sentence in said and "Read the members" not in said


VAULT = "$ANSIBLE_VAULT;1.1;AES256\n" + "61" * 40 + "\n"
OTHER_PAIR = {"instances": [{"addresses": ["192.0.2.99/24"]}]}
OF_OTHERS_OF_THE_SAME_NAME = {"backup": "20260131T120000Z", "members": {"lb1": OTHER_PAIR}}


@pytest.mark.parametrize("text", [VAULT, ""])
def test_a_file_that_cannot_be_read_is_a_sentence_and_not_hidden(tmp_path, text):
    code, said = restore(tmp_path, text)
    assert code == 2 and "ansible-vault has encrypted it and this run has not its password" in " ".join(said.split())
    assert "has been hidden" not in said and "Read the members" not in said


def test_a_backup_of_another_pair_with_the_same_host_names_is_refused_before_a_member_is_asked(tmp_path):
    code, said = restore(tmp_path, json.dumps(OF_OTHERS_OF_THE_SAME_NAME))
    sentence = "in which lb1 has the VIPs 192.0.2.99, and in the inventory it has 192.0.2.10: give a backup of this"
    assert code == 2 and sentence in said and "Read the members" not in said


def test_a_backup_of_before_all_vips_changed_is_confirmed(tmp_path):
    text, confirmed = json.dumps(OF_OTHERS_OF_THE_SAME_NAME), ("-e", "restore_other_vips=true")
    sentence = "go on with -e restore_other_vips=true if it had these."
    assert sentence in restore(tmp_path, text)[1] and "in which lb1 has" not in restore(tmp_path, text, *confirmed)[1]


def test_a_vip_of_some_members_alone_is_theirs_whichever_way_it_is_written():
    contents = {"members": {"lb1": OTHER_PAIR}}
    assert (
        backup.of_others(contents, "x.json", "lb1", ["192.0.2.10", {"address": "192.0.2.99", "members": ["lb1"]}]) == []
    )
    assert backup.of_others(contents, "x.json", "lb1", ["192.0.2.10", {"address": "192.0.2.98"}]) != []


EXPORTED = {"engine": "native", "saved": {"auth_pass": "Zq7Zq7Zq"}}


def backed_up(folder, answers=None, check=False):
    usual = {"member_lock": locked, "member_state": EXPORTED}
    given = {"backup_folder": str(folder), **PAIR_VARIABLES}
    return run("backup", MEMBERS, {**usual, **(answers or {})}, check=check, **given)


def written(played):
    return [f"{call.on} {call.module}" for call in played.of("file", "copy")]


def test_the_states_of_all_members_are_written_once_on_the_controller_and_shown_nowhere(tmp_path):
    played = backed_up(tmp_path / "backups")
    assert played.code == 0 and written(played) == ["localhost file", "localhost copy"]
    assert written(backed_up(tmp_path)) == ["localhost copy"]  # the folder is there
    assert played.did("member_lock")[-2:] == ["lb1 member_lock absent", "lb2 member_lock absent"]
    assert "Zq7Zq7Zq" in played.of("copy")[0].given["content"]
    assert [text for text in played.shown if "Zq7Zq7Zq" in text] == []


@pytest.mark.parametrize("answer", [{"failed": True, "msg": "no room"}, {"unreachable": True, "msg": "no route"}])
def test_a_member_that_cannot_be_read_is_named_and_the_others_are_saved(tmp_path, answer):
    played = backed_up(tmp_path, {"member_state": lambda call: answer if call.on == "lb1" else EXPORTED})
    assert played.code == 0 and "lb1 cannot be read: " in str(played.said) and written(played) == ["localhost copy"]
    nobody = backed_up(tmp_path, {"member_state": answer})
    assert nobody.code == 2 and "There is nothing to back up" in str(nobody.faults()) and written(nobody) == []


def test_a_dry_backup_writes_nothing(tmp_path):
    played = backed_up(tmp_path, check=True)
    assert (
        played.code == 0 and written(played) == [] and "Next: run the same command without --check." in str(played.said)
    )
