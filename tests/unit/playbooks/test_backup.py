# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks backup and restore where no host answers, and with a wrong file. On hosts: molecule/default."""

from __future__ import annotations

import json

import pytest
from support.playbooks import PAIR, play

OF_OTHERS = json.dumps({"backup": "20260131T120000Z", "members": {"lb8": {}}})


def restore(tmp_path, text):
    (tmp_path / "backup.json").write_text(text)
    return play(tmp_path, PAIR, "onprem.lb.restore", "-e", "restore_file=~/backup.json")


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
        (("-e", "restore_undo_after=abc"), "restore_undo_after is 'abc': a number from 0 to 3600 seconds is wanted."),
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
        ("no backup", "which is no backup: it is no JSON"),
        (OF_OTHERS, "the backup of lb8 of 2026-01-31 12:00:00 UTC, and the members here are lb1, lb2"),
    ],
)
def test_a_file_that_is_not_theirs_is_refused_before_a_member_is_asked(tmp_path, text, sentence):
    code, said = restore(tmp_path, text)
    assert code == 2 and sentence in said and "Read the members" not in said
