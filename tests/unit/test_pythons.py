# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of a machine's Pythons run the tests of what runs on a target."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import pythons
from pythons import Interpreter

OLD, MIDDLE, NEW = (Interpreter((3, minor), f"/usr/bin/python3.{minor}") for minor in (8, 11, 13))
OLDEST = "3.8, the oldest that is promised"


@pytest.mark.parametrize(
    "here, ours, runs",
    [
        ([MIDDLE, NEW, OLD], MIDDLE, {OLDEST: OLD, "3.13, the newest here": NEW}),
        ([OLD, MIDDLE], MIDDLE, {OLDEST: OLD}),
        ([OLD, MIDDLE], NEW, {OLDEST: OLD}),
        ([OLD, NEW], OLD, {"3.13, the newest here": NEW}),
        ([], MIDDLE, {OLDEST: None}),
    ],
)
def test_the_oldest_is_always_asked_for_and_the_newest_where_the_others_do_not_run_it(here, ours, runs):
    assert pythons.chosen(here, ours.version) == runs


def test_of_each_name_the_first_that_answers_is_taken_and_no_other_asked():
    files = [Path(folder, name) for folder in ("/shims", "/usr/bin", "/opt") for name in ("python3.8", "python3.11")]
    asked = []

    def ask(file):
        asked.append(str(file))
        return "" if file.parent.name == "shims" else f"3 {file.suffix[1:]} final {file}\n"

    assert pythons.found(files, ask) == [OLD, MIDDLE]
    assert asked == ["/shims/python3.8", "/shims/python3.11", "/usr/bin/python3.8", "/usr/bin/python3.11"]


@pytest.mark.parametrize(
    "said, interpreter",
    [
        ("3 8 final /usr/bin/python3.8\n", OLD),
        ("3 8 final /my programs/python3.8\n", OLD._replace(path="/my programs/python3.8")),
        ("3 15 candidate /usr/bin/python3.15\n", None),
        ("", None),
    ],
)
def test_only_a_released_python_that_answers_counts(said, interpreter):
    assert pythons.understood(said) == interpreter


def test_pyenvs_folder_comes_before_the_path_and_only_interpreters_are_candidates(tmp_path):
    on_path, pyenv = tmp_path / "bin", tmp_path / "pyenv"
    there = pyenv / "versions" / "3.8.18" / "bin"
    for folder in (on_path, there):
        folder.mkdir(parents=True)
        for name in ("python3", "python3.8", "python3.8-config", "python3.8m"):
            (folder / name).touch()
    path = os.pathsep.join(["", str(tmp_path / "none"), str(on_path)])
    assert pythons.candidates(path, [tmp_path / "nowhere", pyenv]) == [there / "python3.8", on_path / "python3.8"]
