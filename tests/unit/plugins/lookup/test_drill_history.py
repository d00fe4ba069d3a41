# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup drill_history: every file of the folder, also those that cannot be read."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleLookupError
from ansible_collections.onprem.lb.plugins.lookup import drill_history


def test_each_json_file_is_read_in_the_order_of_the_names(tmp_path):
    for name in ("b.json", "a.json", "notes.txt"):
        (tmp_path / name).write_text(name)
    assert drill_history.LookupModule().run([str(tmp_path)]) == [
        {"path": str(tmp_path / name), "text": name, "wrong": ""} for name in ("a.json", "b.json")
    ]


def test_a_folder_that_does_not_exist_has_none(tmp_path):
    assert drill_history.LookupModule().run([str(tmp_path / "drills")]) == []


def test_a_file_in_the_folders_place_is_one_sentence(tmp_path):
    (tmp_path / "drills").write_text("")
    with pytest.raises(AnsibleLookupError, match=r"drill_history is '.*/drills': Not a directory. Name a folder"):
        drill_history.read(tmp_path / "drills")


def test_what_is_no_text_or_no_file_or_too_large_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(drill_history, "LARGEST", 5)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "gone.json").symlink_to("nowhere")
    (tmp_path / "large.json").write_text("123456")
    size = "it is not a file of a record's size"
    assert [each["wrong"] for each in drill_history.read(tmp_path)] == ["it is not text", size, size, size]
