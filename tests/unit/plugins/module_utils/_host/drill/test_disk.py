# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems that a drill fills: which, how much, and what is refused. The commands fill a small one."""

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import disk, faults
from ansible_collections.onprem.lb.plugins.module_utils._host.drill.disk import MIB, Disk
from support.waiting import until

DISKS = {"/run": ("tmpfs", 100 * MIB, "/run"), "/run/lock": ("tmpfs", 5 * MIB, "/run/lock")}
DISKS.update(dict.fromkeys(("/var/log", "/var/lib", "/tmp"), ("ext4", 900 * MIB, "/")))


def df(command):
    """What `df` prints of a folder, and `find` of one in which everybody may write."""
    if command[0] == "find":
        return 0, "/tmp\n" if command[1] == "/tmp" else "", ""
    kind, free, target = DISKS.get(command[-1], ("", 0, ""))
    if not kind:
        return 1, "", f"df: {command[-1]}: No such file or directory\n"
    return 0, f"Type Avail Mounted on\n{kind} {free} {target}\n", ""


def read(*folders, memory=1000 * MIB):
    return disk.read(folders, df, lambda: memory)


def test_each_file_system_is_filled_once():
    assert read("/run", "/var/log", "/var/lib", "/run/lock") == [
        Disk("/run", 100 * MIB),
        Disk("/var/lib", 900 * MIB),
        Disk("/run/lock", 5 * MIB),
    ]


@pytest.mark.parametrize(
    "folders, memory, sentence",
    [
        (["/none"], 1000, "disk_full cannot fill /none: df: /none: No such file or directory"),
        (
            ["/tmp"],
            1000,
            "disk_full does not fill world-writable folders, such as /tmp: name one above it.",
        ),
        (["run"], 1000, "disk_full needs folders, and 'run' is none that can be written in a command."),
        (
            ["/run; reboot"],
            1000,
            "disk_full needs folders, and '/run; reboot' is none that can be written in a command.",
        ),
        (
            ["/var/log", "/run"],
            199,
            "disk_full would take 100 MiB of memory to fill /run, and 199 MiB are available: name another folder.",
        ),
    ],
)
def test_what_cannot_be_filled_is_refused_in_a_sentence(folders, memory, sentence):
    with pytest.raises(faults.Refused) as refused:
        read(*folders, memory=memory * MIB)
    assert str(refused.value) == sentence


def test_memory_that_suffices_is_no_reason_to_refuse():
    assert read("/run", memory=200 * MIB) == [Disk("/run", 100 * MIB)]


def test_the_memory_that_is_available_is_read(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:     2048 kB\n")
    assert disk.available_memory(str(tmp_path / "meminfo")) == 2 * MIB
    assert disk.available_memory() > 0


@pytest.fixture
def small(tmp_path):
    """A folder with a file system of 1 MiB."""
    if os.geteuid():
        pytest.skip("only root may mount a file system")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", tmp_path], check=True)
    yield tmp_path
    until(
        lambda: subprocess.run(["umount", tmp_path], check=False, capture_output=True).returncode == 0, "still in use"
    )


def test_a_full_file_system_takes_nothing_more_until_it_is_reverted(small):
    (small / "own").write_text("kept")
    (own,) = disk.read([str(small)], _run, disk.available_memory)
    script = faults.script_for("disk_full", faults.Target(disks=[own._replace(free=own.free // 2)]))
    assert _shell(script.inject) == 0
    with pytest.raises(OSError, match="No space left"), open(small / "more", "w") as file:
        file.write("x" * 4096)
    assert _shell(script.revert) == 0
    (small / "more").write_text("x" * 4096)
    assert (small / "own").read_text() == "kept" and not (small / disk.NAME).exists()


def test_what_grew_meanwhile_is_no_fault(small):
    (own,) = disk.read([str(small)], _run, disk.available_memory)
    (small / "more").write_bytes(b"x" * (own.free // 2))
    assert _shell(disk.full([own]).inject) == 0
    with pytest.raises(OSError, match="No space left"), open(small / "other", "w") as file:
        file.write("x" * 4096)
    with contextlib.suppress(FileNotFoundError):
        (small / disk.NAME).unlink()


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def _shell(command):
    assert not set(command) & set("$%")  # systemd would expand them
    return subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True).returncode
