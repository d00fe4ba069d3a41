# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall's real host: what it asks of an AnsibleModule, whose move keeps a file's SELinux context."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.system import Host


class Module:
    """What Host needs of AnsibleModule; ``ran`` has each command and its input, ``moved`` each destination."""

    def __init__(self, tmpdir):
        self.tmpdir, self.ran, self.moved = str(tmpdir), [], []

    def get_bin_path(self, name):
        return f"/usr/sbin/{name}" if name == "nft" else None

    def run_command(self, command, data=None):
        self.ran.append((command, data, self.run_command_environ_update["LC_ALL"]))
        return 0, "out", "err"

    def atomic_move(self, source, destination):
        self.moved.append(destination)
        os.rename(source, destination)


@pytest.fixture
def module(tmp_path):
    (tmp_path / "tmp").mkdir()
    return Module(tmp_path / "tmp")


def test_commands_are_run_by_their_paths_and_in_no_other_language(module):
    host = Host(module)
    assert host.run(["nft", "-f", "-"], "add table x") == (0, "out", "err")
    assert host.run(["nft", "list"]) == (0, "out", "err")
    assert module.ran == [(["/usr/sbin/nft", "-f", "-"], "add table x", "C"), (["/usr/sbin/nft", "list"], None, "C")]


def test_a_program_that_is_not_there_ends_as_a_shell_says_it(module):
    assert Host(module).run(["ufw", "status"]) == (127, "", "ufw is not installed")
    assert module.ran == []


def test_a_file_is_written_with_its_mode_by_ansibles_own_move(module, tmp_path):
    path = tmp_path / "sub" / "open-firewall"
    host = Host(module)
    assert host.read(str(path)) is None
    host.write(str(path), "#!/bin/sh\n", 0o755)
    assert (host.read(str(path)), path.stat().st_mode & 0o777) == ("#!/bin/sh\n", 0o755)
    assert module.moved == [str(path)] and os.listdir(module.tmpdir) == []


def test_a_folder_goes_with_its_last_file_and_not_before(module, tmp_path):
    host, folder = Host(module), tmp_path / "sub"
    for name in ("mine", "theirs"):
        host.write(str(folder / name), "", 0o644)
    host.remove(str(folder / "mine"))
    assert os.listdir(folder) == ["theirs"]
    host.remove(str(folder / "theirs"))
    assert not folder.exists()
