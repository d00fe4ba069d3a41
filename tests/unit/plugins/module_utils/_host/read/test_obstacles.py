# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What would refuse a deployment halfway is found before it begins, and nothing changes by that."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import system
from ansible_collections.onprem.lb.plugins.module_utils._host.read import obstacles
from ansible_collections.onprem.lb.plugins.module_utils._host.states import restoring, snapshot
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files
from support.marks import as_root


def refuse(monkeypatch, owner, name, number):
    """Let a call fail as it does on a host that refuses it."""

    def refused(*_arguments, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(owner, name, refused)


def test_a_file_that_can_be_written_is_no_obstacle_and_is_not_touched(tmp_path):
    there = tmp_path / "haproxy.cfg"
    there.write_text("old")
    for path in (there, tmp_path):
        os.utime(path, (1, 1))
    wanted = [str(there), str(tmp_path / "new.cfg"), str(tmp_path / "haproxy.service.d" / "onprem-lb.conf")]
    assert obstacles.of_files(wanted) == {}
    assert (os.listdir(tmp_path), there.read_text(), there.stat().st_mtime) == (["haproxy.cfg"], "old", 1)


def test_a_folder_in_which_no_file_can_be_created_is_an_obstacle_even_where_it_is_not_there_yet():
    found = obstacles.of_files(["/sys/haproxy/haproxy.cfg"])
    assert found["/sys/haproxy/haproxy.cfg"].startswith("/sys/haproxy/haproxy.cfg cannot be written (")


@pytest.mark.parametrize(
    "number, sentence",
    [
        (errno.EROFS, "(Read-only file system): mount its file system read-write."),
        (errno.EPERM, "(Operation not permitted): remove the immutable attribute (`chattr -i`) from it or its folder."),
        (errno.EACCES, "(Permission denied): use become."),
        (errno.ENOSPC, "(No space left on device): make room on its file system."),
        (errno.EIO, "(Input/output error): make it writable."),
    ],
)
def test_the_sentence_has_the_mend(monkeypatch, tmp_path, number, sentence):
    path = str(tmp_path / "haproxy.cfg")
    refuse(monkeypatch, tempfile, "TemporaryFile", number)
    assert obstacles.of_files([path]) == {path: f"{path} cannot be written {sentence}"}


@pytest.mark.parametrize(
    "number, mend", [(errno.ENOSPC, "make room on"), (errno.EDQUOT, "make room within the quota of")]
)
def test_a_file_system_on_which_a_file_can_be_created_but_not_filled_is_an_obstacle(
    monkeypatch, tmp_path, number, mend
):
    path = str(tmp_path / "haproxy.cfg")
    refuse(monkeypatch, obstacles.os, "posix_fallocate", number)
    sentence = f"{path} cannot be written ({os.strerror(number)}): {mend} its file system."
    assert obstacles.of_files([path]) == {path: sentence}


@as_root
def test_a_file_system_that_is_full_is_an_obstacle(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], check=True)
    try:
        path = str(tmp_path / "haproxy.cfg")
        assert obstacles.of_files([path]) == {}
        (tmp_path / "log").write_bytes(bytes((2 << 20) - obstacles.ROOM + 4096))
        assert obstacles.of_files([path]) == {
            path: f"{path} cannot be written (No space left on device): make room on its file system."
        }
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_an_immutable_file_in_a_folder_that_is_not_is_an_obstacle(monkeypatch, tmp_path):
    there, new = tmp_path / "haproxy.cfg", tmp_path / "keepalived.conf"
    there.write_text("")
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: file)
        refuse(monkeypatch, obstacles.os, "open", errno.EPERM)
        assert list(obstacles.of_files([str(there), str(new)])) == [str(there)]


def test_a_link_is_replaced_whatever_becomes_of_its_target(monkeypatch, tmp_path):
    link = tmp_path / "haproxy.cfg"
    link.symlink_to(__file__)
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: file)
        refuse(monkeypatch, obstacles.os, "open", errno.EPERM)
        assert obstacles.of_files([str(link)]) == {}


def test_a_masked_unit_has_a_sentence_with_its_mend():
    sentence = "haproxy.service is masked, so that it cannot start: run `systemctl unmask haproxy.service`."
    assert obstacles.of_masked_units(["haproxy.service"]) == {"haproxy.service": sentence}


def test_without_a_folder_of_manifests_no_kubelet_would_run_a_static_pod(tmp_path, monkeypatch):
    monkeypatch.setattr(obstacles, "MANIFESTS", str(tmp_path / "manifests"))
    assert obstacles.of_pods(["onprem-lb-router"]) == {
        "onprem-lb-router": f"There is no folder {tmp_path}/manifests: create it, and name it in the kubelet's "
        "configuration (staticPodPath)."
    }
    (tmp_path / "manifests").mkdir()
    assert obstacles.of_pods(["onprem-lb-router"]) == {}


BYTES = b"x" * (3 << 20)
CONTENT = BYTES.decode()
WRITERS = {
    "a record": lambda path: records.write(path, {"content": CONTENT}),
    "a file of a run": lambda path: files._write_candidate(files.Change(path, None, CONTENT, 0o600, None), beside=True),
    "a file that returns": lambda path: restoring._write(snapshot.File(path, 0o600, 0, 0, content=BYTES), ""),
    "the agent": lambda path: system.Host.write(None, path, BYTES),
}


@as_root
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_disk_that_fills_up_while_a_file_is_written_is_said_with_the_file(tmp_path, write):
    """The system's own fault names none: only opening a file does."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], check=True)
    try:
        path = str(tmp_path / "file")
        with pytest.raises(OSError) as fault:
            write(path)
        assert str(fault.value) == f"[Errno 28] No space left on device: '{path}'"
        assert os.listdir(tmp_path) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def file_system(**values):
    usual = {"f_flag": 0, "f_blocks": 100, "f_bfree": 100, "f_frsize": obstacles.ROOM, "f_files": 10, "f_ffree": 10}
    return SimpleNamespace(**{**usual, **values})


NO_ROOM = "cannot be written (No space left on device): make room on its file system."


@pytest.mark.parametrize(
    "seen, sentence",
    [
        ({}, ""),
        ({"f_bfree": 0}, NO_ROOM),
        ({"f_bfree": 1, "f_frsize": obstacles.ROOM - 1}, NO_ROOM),
        ({"f_ffree": 0}, NO_ROOM),
        ({"f_files": 0, "f_ffree": 0}, ""),
        ({"f_blocks": 0, "f_bfree": 0}, ""),
        ({"f_flag": os.ST_RDONLY}, "cannot be written (Read-only file system): mount its file system read-write."),
    ],
)
def test_a_file_system_without_room_is_named_once_with_its_mend(tmp_path, monkeypatch, seen, sentence):
    monkeypatch.setattr(os, "statvfs", lambda _path: file_system(**seen))
    folders = [str(tmp_path), str(tmp_path / "none" / "deeper")]
    assert obstacles.of_folders(folders) == ([f"{' and '.join(folders)} {sentence}"] if sentence else [])
    assert obstacles.of_folders([]) == []
