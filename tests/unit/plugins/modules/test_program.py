# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module program: each program in one file, written only where it differs, and carried through Ansible itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.modules import program
from ansible_collections.onprem.lb.plugins.plugin_utils.programs import packed
from support import modules
from support.paths import COLLECTIONS

NAMES = ("agent", "keepalived_hook")


def complete(given):
    """Return the arguments as the action plugin completes them."""
    return {**given, "packed": packed(given.get("name", "agent"))}


def run(module, given, **others):
    return modules.run(module, complete(given), **others)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lib" / "program"


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_once(path, name):
    wanted = {"name": name, "path": str(path)}
    assert run(program, wanted, check=True)["changed"] and not path.exists()
    assert run(program, wanted)["changed"] and list(path.parent.iterdir()) == [path]
    assert not run(program, wanted)["changed"]


def test_the_agent_is_the_usual_one_and_its_python_runs_it(path):
    done = run(program, {"path": str(path)})
    said = subprocess.run([done["python"], str(path), "metrics", "--help"], check=True, capture_output=True, text=True)
    assert "--certificate" in said.stdout


def test_the_hook_runs_by_itself(path):
    run(program, {"name": "keepalived_hook", "path": str(path)})
    ran = subprocess.run([path, "ended", "/none"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, "/none cannot be read: No such file or directory.\n")


@pytest.mark.parametrize("name", NAMES)
def test_another_version_is_replaced(path, name):
    path.parent.mkdir()
    path.write_bytes(b"of before")
    assert run(program, {"name": name, "path": str(path)})["changed"]
    assert path.read_bytes().startswith(b"#!")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "lib").write_text("a file")
    assert modules.refusal(program, complete({"path": f"{tmp_path}/lib/agent.pyz"})) == (
        f"{tmp_path}/lib/agent.pyz cannot be written: Not a directory."
    )


def test_without_the_action_plugin_it_says_so():
    said = "packed is missing: the action plugin of this module gives it, and was not run."
    assert modules.refusal(program, {"path": "/nowhere/agent.pyz"}) == said


@pytest.mark.parametrize("name, options", [("agent", []), ("keepalived_hook", ["-B", "90", "-P", "1"])])
def test_the_action_plugin_hands_it_over_in_the_background_too(path, tmp_path, name, options):
    pytest.importorskip("ansible.cli")
    (tmp_path / "ansible.cfg").touch()
    environ = {
        **os.environ,
        "ANSIBLE_HOME": str(tmp_path),
        "ANSIBLE_ASYNC_DIR": str(tmp_path / "async"),
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal",
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
    }
    command = [sys.executable, "-m", "ansible", "adhoc", "-i", "localhost,", "-c", "local", "localhost"]
    asked = [
        "-m",
        "onprem.lb.program",
        "-a",
        f"name={name} path={path}",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
        *options,
    ]
    ran = subprocess.run([*command, *asked], capture_output=True, text=True, env=environ, timeout=120, check=False)
    said = json.loads(ran.stdout.rpartition("=>")[2] or "{}")
    assert said.get("changed"), ran.stdout + ran.stderr
    assert not run(program, {"name": name, "path": str(path)})["changed"]


def test_what_was_handed_over_is_not_said(path):
    assert run(program, {"path": str(path)})["invocation"]["module_args"]["packed"] == "NOT_LOGGED"
    assert packed("agent") not in modules.refusal(program, complete({"path": str(path), "mode": "0600"}))
