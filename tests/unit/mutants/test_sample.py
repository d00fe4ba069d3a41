# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which breaks are tried, how they are named, and which tests judge them."""

from __future__ import annotations

import pytest
from mutants import sample
from support import mirrors
from support.paths import ROOT


def test_a_seed_draws_the_same_breaks_of_python_and_of_tasks_each_time():
    drawn = sample.draw(12, seed=3)
    assert drawn == sample.draw(12, seed=3) and drawn != sample.draw(12, seed=4)
    assert {mutant.path.endswith(".yml") for mutant in drawn} == {True, False}
    assert len({(mutant.path, mutant.text) for mutant in drawn}) == 12
    for mutant in drawn:
        assert mutant.text != (ROOT / mutant.path).read_text()


@pytest.mark.parametrize(
    "after, line, what",
    [
        ("a\nB\nc\n", 2, "b -> B"),
        ("a\nc\n", 2, "b -> nothing"),
        ("a\nb\n", 3, "c -> nothing"),
        ("X\n", 1, "a b c -> X"),
        ("a\nb\nc\n", 0, ""),
    ],
)
def test_a_break_is_named_by_the_lines_that_differ(after, line, what):
    assert sample.difference("a\nb\nc\n", after) == (line, what)


def test_a_long_break_is_shortened():
    assert sample.difference("x\n", "y" * 500)[1] == f"x -> {'y' * sample.SHOWN}..."


@pytest.mark.parametrize(
    "path, stages",
    [
        (
            "plugins/module_utils/_shared/vrid.py",
            [["tests/unit/plugins/module_utils/_shared/test_vrid.py"], ["tests/unit/plugins/module_utils/_shared"]],
        ),
        ("plugins/module_utils/_shared/markdown.py", [["tests/unit/plugins/module_utils/_shared"]]),
        ("plugins/modules/vrid.py", [["tests/unit/plugins/modules/test_vrid.py"], ["tests/unit/plugins/modules"]]),
    ],
)
def test_the_tests_of_its_name_come_before_those_of_its_folder(path, stages):
    assert sample.stages(path) == stages


@pytest.mark.parametrize("tests, stages", [(["test_a.py", "test_b.py"], [["test_a.py", "test_b.py"]]), ([], [])])
def test_a_file_of_tasks_is_judged_by_the_tests_that_play_it(monkeypatch, tests, stages):
    monkeypatch.setattr(mirrors, "tests_of", lambda _path: tests)
    assert sample.stages("roles/layout/tasks/lock.yml") == stages


def test_a_file_with_several_tests_of_its_name_has_all_of_them():
    (first, *_folder) = sample.stages("plugins/module_utils/_agent/proxy/worker/session.py")
    assert [path.rpartition("/")[2] for path in first] == [
        "test_session.py",
        "test_session_resets.py",
        "test_session_timeouts.py",
    ]


@pytest.mark.parametrize("is_yaml", [True, False])
def test_each_file_that_may_be_broken_has_tests(is_yaml):
    for path in sample.files(ROOT, is_yaml):
        for tests in sample.stages(path) or [[]]:
            assert tests and all((ROOT / test).exists() for test in tests), path
