# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A matrix that was interrupted goes on with the stages that have not passed on this commit."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from suite import __main__ as main
from suite.passed import Passed, commit_of
from suite.results import Result, Row
from suite.runner import Runner, Stage
from suite.stages import Request

ROW = Row("default:debian12", Result(passed=31, orders=7), 342.5, 77.0)


def test_a_stage_that_has_passed_is_kept_for_its_commit_alone(tmp_path):
    Passed(tmp_path, "one").add(ROW)
    assert Passed(tmp_path, "one").rows() == [ROW]
    assert Passed(tmp_path, "two").rows() == []
    assert Passed(tmp_path, "one").rows() == []  # another commit has been run since


def test_a_part_that_is_run_by_itself_runs_again_and_counts_for_the_matrix(tmp_path):
    part = Passed(tmp_path, "one", repeats=True)
    part.add(ROW)
    assert part.rows() == []
    assert Passed(tmp_path, "one").rows() == [ROW]


@pytest.mark.parametrize(
    "group, runs, rows", [("test", (), [ROW]), ("test", ("default:debian12",), []), ("unit", (), [])]
)
def test_only_the_matrix_leaves_out_what_has_passed(tmp_path, monkeypatch, group, runs, rows):
    monkeypatch.setattr(main, "LOGS", tmp_path)
    monkeypatch.setattr(main, "commit_of", lambda _checkout: "one")
    Passed(tmp_path / "passed", "one").add(ROW)
    full = Request(True, "root", "", Path("bin"), python="python3", logs=Path("logs"), has_oldest=True, runs=runs)
    assert main.read_passed(group, full).rows() == rows
    assert main.read_passed(group, replace(full, full=False)).folder is None


@pytest.mark.parametrize("result", [Result(), Result(1, failures=("a",)), Result(1, skips=("no root",))])
def test_what_has_not_passed_whole_is_not_kept(tmp_path, result):
    passed = Passed(tmp_path, "one")
    passed.add(ROW._replace(result=result))
    assert passed.rows() == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"result": 1}'])
def test_a_record_that_cannot_be_read_has_not_passed(tmp_path, text):
    passed = Passed(tmp_path, "one")
    passed.add(ROW)
    next(tmp_path.rglob("*.json")).write_text(text)
    assert passed.rows() == []


def test_files_that_differ_from_their_commit_keep_nothing(tmp_path):
    def git(*arguments):
        subprocess.run(("git", "-C", tmp_path, *arguments), check=True, stdout=subprocess.DEVNULL)

    assert commit_of(tmp_path) is None
    git("init")
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--allow-empty", "-m", "one")
    assert commit_of(tmp_path)
    (tmp_path / "new").touch()
    assert commit_of(tmp_path) is None
    passed = Passed(tmp_path / "passed", None)
    passed.add(ROW)
    assert passed.rows() == [] and not (tmp_path / "passed").exists()


def test_a_second_run_has_a_row_for_each_stage_and_runs_those_that_had_failed(tmp_path):
    def run():
        script = f"echo {{0}} >>{tmp_path}/events; test {{0}} != bad || test -e {tmp_path}/mended"
        stages = [Stage(name, ("sh", "-c", script.format(name))) for name in ("good", "bad")]
        stages.append(Stage("after", ("sh", "-c", script.format("after")), needs=("good", "bad")))
        said = []
        rows = Runner(stages, tmp_path / "logs", said.append, Passed(tmp_path / "passed", "one")).run()
        return {row.name: row.result.passed for row in rows}, said

    assert run()[0] == {"good": 1, "bad": 0, "after": 0}
    (tmp_path / "mended").touch()
    rows, said = run()
    assert rows == {"good": 1, "bad": 1, "after": 1}
    assert "passed before, on this commit: good" in said[0]
    *first, second, last = (tmp_path / "events").read_text().split()
    assert (sorted(first), second, last) == (["bad", "good"], "bad", "after")
