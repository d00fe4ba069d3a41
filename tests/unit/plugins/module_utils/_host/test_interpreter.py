# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stays on a host runs with a Python that stays there: a virtual environment goes when its owner wants it to."""

from __future__ import annotations

import os
import subprocess
import sys
import types
import venv
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import interpreter
from support.paths import MODULES, ROOT

TARGETS = [*MODULES.glob("*.py"), *(ROOT / "plugins" / "module_utils" / "_host").rglob("*.py")]


def ask(python, code):
    """Return what a Python prints that has the module beside it."""
    code = f"import sys; sys.path.insert(0, {str(Path(interpreter.__file__).parent)!r}); import interpreter; {code}"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("symlinks", [True, False], ids=["links", "copies"])
def test_that_of_a_virtual_environment_is_the_one_that_it_was_made_of(tmp_path, symlinks):
    venv.create(tmp_path, symlinks=symlinks, with_pip=False)
    found = ask(tmp_path / "bin" / "python", "print(interpreter.lasting())")
    assert os.access(found, os.X_OK) and not found.startswith(f"{tmp_path}/")
    assert ask(found, "print(sys.prefix == sys.base_prefix, *sys.version_info[:2])").split() == [
        "True",
        *map(str, sys.version_info[:2]),
    ]


def process(folder, executable):
    return types.SimpleNamespace(
        executable=executable, prefix=f"{folder}/venv", base_prefix=f"{folder}", version_info=(3, 11, 2)
    )


@pytest.mark.parametrize("general, found", [("python3.11", "python3"), ("python3.9", "python3.11")])
def test_the_name_that_a_new_release_of_the_system_keeps_is_taken_where_it_means_the_same(tmp_path, general, found):
    (tmp_path / "bin").mkdir()
    for name in ("python3.11", "python3.9"):
        (tmp_path / "bin" / name).touch(mode=0o755)
    (tmp_path / "bin" / "python3").symlink_to(general)
    assert interpreter.lasting(process(tmp_path, f"{tmp_path}/venv/bin/python")) == f"{tmp_path}/bin/{found}"


def test_one_that_is_gone_is_not_named(tmp_path):
    running = f"{tmp_path}/venv/bin/python"
    assert interpreter.lasting(process(tmp_path, running)) == running


def test_any_other_one_stays_as_it_was_given(tmp_path):
    given = types.SimpleNamespace(
        executable="/opt/python/bin/python3.12", prefix="/opt/python", base_prefix="/opt/python"
    )
    assert interpreter.lasting(given) == "/opt/python/bin/python3.12"


@pytest.mark.parametrize("path", TARGETS, ids=lambda path: path.name)
def test_nothing_on_a_host_is_started_with_another_one(path):
    """A drill's stranger is a source that stands alone, and ends with its event."""
    assert path.name == "stranger.py" or "sys.executable" not in path.read_text()


def test_a_program_is_isolated_from_the_environment_of_who_starts_it():
    assert interpreter.run_by("/usr/bin/python3", b"#!any\nPK") == b"#!/usr/bin/python3 -IS\nPK"


def test_the_checksum_of_a_program_is_the_same_whichever_python_runs_it():
    known = interpreter.checksum(b"#!any\nPK\nand more")
    assert interpreter.checksum(interpreter.run_by("/usr/bin/python3", b"#!any\nPK\nand more")) == known
    assert interpreter.checksum(b"#!any\nPK\nand other") != known
