# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host says of the files that a run compares with those that it wants."""

from __future__ import annotations

import os
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import interpreter
from ansible_collections.onprem.lb.plugins.module_utils._host.read import on_disk
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import wanted
from support.programs import Programs

OUTDATED = "ActiveState=active\nNeedDaemonReload=yes\nMainPID=7\nInvocationID=5e1f\n"


def read(items, systemctl=OUTDATED):
    known = Programs({"systemctl": systemctl})
    return on_disk.read(Reader(known.run, known.find), items)


@pytest.mark.parametrize("mode, text", [("0640", "text ü\n"), ("0600", "raw \udcff byte\n"), ("0644", "")])
def test_a_file_that_was_written_as_wanted_has_the_checksum_and_the_mode_of_the_wish(tmp_path, mode, text):
    item = {"path": str(tmp_path / "a.conf"), "content": text, "mode": mode}
    change = files.Change(item["path"], None, text, int(mode, 8), "none")
    files.replace_all([change], lambda _name: None, lambda _command: (0, "", ""), os.rename, dry=False)
    host = {"files": {path: file._asdict() for path, file in read([item]).items()}}
    assert wanted.not_in_force([item], host) == []
    assert wanted.not_in_force([{**item, "content": text + "#"}], host) == [item["path"]]


def test_a_file_that_does_not_exist_has_no_checksum(tmp_path):
    path = str(tmp_path / "none")
    assert read([{"path": path}]) == {path: on_disk.OnDisk()}


def test_a_part_of_a_unit_that_systemd_has_not_read_is_stale():
    path = "/etc/systemd/system/onprem-lb-test-that-does-not-exist.service"
    found = read([{"path": path, "unit": "onprem-lb-test-that-does-not-exist.service"}])
    assert found[path].stale == [f"systemd has not read {path} since it changed."]


@pytest.mark.parametrize(
    "python, body, is_stale",
    [(sys.executable, b"this", False), (sys.executable, b"another", True), ("/usr/bin/another", b"this", True)],
)
def test_a_hook_of_another_release_or_of_another_python_is_stale(tmp_path, monkeypatch, python, body, is_stale):
    monkeypatch.setattr(interpreter, "lasting", lambda: sys.executable)
    path = tmp_path / "hook"
    path.write_bytes(interpreter.run_by(python, b"#!\n" + body))
    item = {"path": str(path), "keepalived_hook": interpreter.checksum(b"#!of the controller\nthis")}
    assert read([item])[str(path)].stale == ([f"{path} is of another release."] if is_stale else [])


def test_a_hook_that_is_not_there_is_stale(tmp_path):
    item = {"path": str(tmp_path / "hook"), "keepalived_hook": interpreter.checksum(b"#!\nthis")}
    assert read([item])[item["path"]].stale


def test_a_pipe_that_a_user_names_is_not_read(tmp_path):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    assert read([{"path": path}]) == {path: on_disk.OnDisk()}
