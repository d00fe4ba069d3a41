# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module keepalived_hook: the program, written only where it differs, and carried through Ansible itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.modules import keepalived_hook
from support.modules import refusal, run
from support.paths import COLLECTIONS


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lib" / "hook"


def test_it_is_written_once_and_runs(path):
    wanted = {"path": str(path)}
    assert run(keepalived_hook, wanted, check=True)["changed"] and not path.exists()
    assert run(keepalived_hook, wanted)["changed"] and list(path.parent.iterdir()) == [path]
    assert not run(keepalived_hook, wanted)["changed"]
    ran = subprocess.run([path, "ended", "/none"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, "/none cannot be read: No such file or directory.\n")


def test_one_of_another_version_is_replaced(path):
    path.parent.mkdir()
    path.write_bytes(b"of before")
    assert run(keepalived_hook, {"path": str(path)})["changed"]
    assert path.read_bytes().startswith(b"#!")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "lib").write_text("a file")
    said = refusal(keepalived_hook, {"path": f"{tmp_path}/lib/hook"})
    assert said == f"{tmp_path}/lib/hook cannot be written: Not a directory."


def test_all_of_it_travels_inside_the_module(path, tmp_path):
    pytest.importorskip("ansible.cli")
    (tmp_path / "ansible.cfg").touch()
    environ = {
        **os.environ,
        "ANSIBLE_HOME": str(tmp_path),
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal",
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
    }
    command = [sys.executable, "-m", "ansible", "adhoc", "-i", "localhost,", "-c", "local", "localhost"]
    asked = [
        "-m",
        "onprem.lb.keepalived_hook",
        "-a",
        f"path={path}",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
    ]
    ran = subprocess.run([*command, *asked], capture_output=True, text=True, env=environ, timeout=120, check=False)
    said = json.loads(ran.stdout.partition("=>")[2] or "{}")
    assert said.get("changed"), ran.stdout + ran.stderr
    assert not run(keepalived_hook, {"path": str(path)})["changed"]
