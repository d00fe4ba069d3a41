# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files are replaced as a whole, once they are tested."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import files
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused


def good(_path):
    return None


def test_a_link_stays_one_and_its_file_is_replaced(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    files.replace(str(link), "new", good)
    assert link.is_symlink() and real.read_text() == "new"


def test_mode_and_owner_stay(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
    before = path.stat()
    files.replace(str(path), "new", good)
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


def test_a_new_file_is_its_owners_alone(tmp_path):
    files.replace(str(tmp_path / "file"), "new", good)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_the_test_sees_the_new_text_and_the_sentence_has_the_path(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(Refused) as refused:
        files.replace(str(path), "new", lambda new: f"{new} has {Path(new).read_text()}.")
    assert str(refused.value) == f"{path} stays as it is, because the new one is refused: {path} has new."
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(Refused, match="cannot be written: no such file or directory."):
        files.replace(str(tmp_path / "no" / "file"), "new", good)


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path):
    with pytest.raises(Refused, match="cannot be read: no such file or directory."):
        files.load(str(tmp_path / "file"))
    (tmp_path / "file").write_bytes(b"\xff")
    with pytest.raises(Refused, match="is not written in UTF-8."):
        files.load(str(tmp_path / "file"))
