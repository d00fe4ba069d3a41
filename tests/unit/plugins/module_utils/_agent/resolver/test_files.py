# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/resolv.conf is replaced as a whole, and what it was comes back byte by byte."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.resolver import files as resolv_conf

OURS = "# Managed by Ansible, onprem.lb.resolver.\nnameserver 192.0.2.11\n"
NEWER = "# Managed by Ansible, onprem.lb.resolver.\nnameserver 192.0.2.12\noptions timeout:1\n"
THEIRS = "search " + "a.example " * 20 + "\nnameserver 192.0.2.1\n"


@pytest.fixture(params=["a file", "a mount point"])
def path(request, tmp_path, monkeypatch):
    found = tmp_path / "resolv.conf"
    found.write_text(THEIRS)
    if request.param == "a mount point":
        monkeypatch.setattr(os.path, "ismount", lambda path: path == str(found))
    return found


def replace(path, text, supersede=False):
    resolv_conf.replace(str(path), text, supersede, os.rename)


def kept(path):
    return path.parent / resolv_conf.kept_path("resolv.conf")


def test_what_it_was_comes_back_byte_by_byte_and_nothing_else_is_left(path):
    replace(path, OURS)
    assert (path.read_text(), kept(path).read_text()) == (OURS, THEIRS)
    replace(path, NEWER)
    assert (path.read_text(), kept(path).read_text()) == (NEWER, THEIRS)
    assert resolv_conf.restore(str(path))
    assert path.read_text() == THEIRS and os.listdir(path.parent) == ["resolv.conf"]


def test_a_mount_point_stays_the_same_file_and_a_file_is_renamed_into_place(path):
    before = path.stat().st_ino
    replace(path, OURS)
    assert (path.stat().st_ino == before) is os.path.ismount(str(path))


def test_a_file_of_the_same_device_that_is_mounted_over_it_is_known_by_the_kernel_s_list(tmp_path, monkeypatch):
    """Python compares devices alone."""
    mounts, path = tmp_path / "mountinfo", str(tmp_path / "resolv.conf")
    mounts.write_text(f"36 35 98:0 /mnt1 {path} rw,noatime master:1 - ext3 /dev/root rw\n")
    monkeypatch.setattr(resolv_conf, "MOUNTS", str(mounts))
    assert resolv_conf.is_mount_point(path) and not resolv_conf.is_mount_point(f"{path}.new")
    mounts.unlink()
    assert not resolv_conf.is_mount_point(path)


def test_whatever_step_a_reader_comes_after_there_is_a_name_server_and_no_mixture(path, monkeypatch):
    seen = []

    def watched(call):
        def step(*arguments, **keywords):
            result = call(*arguments, **keywords)
            seen.append([line for line in path.read_text().splitlines() if line.startswith("nameserver")])
            return result

        return step

    for name in ("pwrite", "ftruncate", "rename", "unlink", "link"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    resolv_conf.replace(str(path), OURS, False, os.rename)
    resolv_conf.restore(str(path))
    assert len(seen) >= 3
    assert {tuple(each) for each in seen} == {("nameserver 192.0.2.11",), ("nameserver 192.0.2.1",)}


@pytest.mark.parametrize("path", ["a mount point"], indirect=True)
def test_a_mount_point_has_its_new_length_before_its_new_text(path, monkeypatch):
    """A reader may still have the length of before, and would read a part."""
    written, pwrite = [], os.pwrite

    def noted(handle, data, at):
        written.append((at, len(data) - os.fstat(handle).st_size))
        return pwrite(handle, data, at)

    monkeypatch.setattr(os, "pwrite", noted)
    replace(path, OURS)
    resolv_conf.restore(str(path))
    assert [difference for at, difference in written if at == 0] == [0, 0]


def test_a_symbolic_link_comes_back_as_one(tmp_path):
    path, real = tmp_path / "resolv.conf", tmp_path / "stub"
    real.write_text(THEIRS)
    path.symlink_to("stub")
    replace(path, OURS)
    assert not path.is_symlink() and real.read_text() == THEIRS
    resolv_conf.restore(str(path))
    assert os.readlink(path) == "stub" and not os.path.lexists(kept(path))


def test_an_interrupted_run_has_kept_it_already(path):
    kept(path).write_text(THEIRS)
    replace(path, OURS)
    assert resolv_conf.restore(str(path)) and path.read_text() == THEIRS


def test_an_interrupted_run_that_had_kept_it_only_leaves_nothing_at_a_removal(path):
    kept(path).write_text(THEIRS)
    assert resolv_conf.restore(str(path))
    assert os.listdir(path.parent) == ["resolv.conf"]


def test_one_of_others_stays_at_a_removal_and_so_does_the_kept_one(path):
    replace(path, OURS)
    path.write_text("nameserver 192.0.2.9\n")
    assert not resolv_conf.restore(str(path))
    assert (path.read_text(), kept(path).read_text()) == ("nameserver 192.0.2.9\n", THEIRS)


def test_a_kept_one_that_is_of_no_use_gives_way(path):
    kept(path).write_text("nameserver 192.0.2.9\n")
    replace(path, OURS, supersede=True)
    assert kept(path).read_text() == THEIRS


def test_where_there_was_none_there_is_none_again(tmp_path):
    path = tmp_path / "resolv.conf"
    replace(path, OURS)
    assert path.read_text() == OURS and path.stat().st_mode & 0o777 == 0o644
    assert resolv_conf.restore(str(path)) and os.listdir(tmp_path) == []
