# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of a checkout in which a break is tried."""

from __future__ import annotations

import subprocess

import pytest
from mutants import copies
from mutants.copies import Copy
from mutants.sample import Mutant

CODE = "def add(one, other):\n    return one + other\n"
STAGES = [["test_imported.py"], ["."]]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Two tests of a file: one that imports it, and one that adds."""
    root = tmp_path_factory.mktemp("a") / "checkout"
    root.mkdir()
    subprocess.run(["git", "init", "--quiet", root], check=True)
    (root / ".gitignore").write_text("ignored\n")
    (root / "ignored").write_text("")
    (root / "code.py").write_text(CODE)
    (root / "sums.py").write_text(CODE)
    (root / "test_imported.py").write_text("import sums\n\ndef test_it(): pass\n")
    (root / "test_sums.py").write_text("import sums\n\ndef test_it():\n    assert sums.add(1, 2) == 3\n")
    return root


@pytest.fixture(scope="module")
def copy(checkout):
    """One for all tests, because pytest is compiled in each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it would compile plugins that its tests lack
        return Copy(checkout.with_name("copy"), checkout)


def mutant(body):
    return Mutant("sums.py", 2, f"def add(one, other):\n    {body}\n", "")


def test_a_break_is_found_by_any_stage_or_survives_all_and_none_is_taken_for_another(copy, checkout):
    """They have the same size, and come within a second."""
    bodies = ["return one - other", "return other + one", "return one * other"]
    outcomes = [copy.judge(mutant(body), STAGES).outcome for body in bodies]
    assert outcomes == [copies.FOUND, copies.SURVIVES, copies.FOUND]
    for root in (checkout, copy.folder):
        assert (root / "sums.py").read_text() == CODE
    assert not (copy.folder / "ignored").exists()


def test_a_break_that_ends_never_is_ended(copy, monkeypatch):
    monkeypatch.setattr(copies, "LIMIT_S", 3.0)
    assert copy.judge(mutant("__import__('time').sleep(1e6)"), STAGES[1:]).outcome == copies.TOO_SLOW


def test_tests_that_fail_without_a_break_judge_nothing(copy):
    (copy.folder / "failing.py").write_text("def test_it(): assert False\n")
    assert copy.judge(mutant("return 0"), [["failing.py"]]).outcome == copies.FAILS_ANYWAY
