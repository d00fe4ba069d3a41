# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pythons of a machine that run the tests of the code for targets."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import pythons
from pythons import Interpreter

UNIT = Path(__file__).parent
OLD, MIDDLE, NEW = (Interpreter((3, minor), f"/usr/bin/python3.{minor}") for minor in (8, 11, 13))


@pytest.mark.parametrize(
    "here, ours, quick, full",
    [
        ([MIDDLE, NEW, OLD], MIDDLE, {"3.8": OLD}, {"3.8": OLD, "3.9": None, "3.10": None, "3.12": None, "3.13": NEW}),
        ([OLD, MIDDLE], NEW, {"3.8": OLD}, {"3.8": OLD, "3.9": None, "3.10": None, "3.11": MIDDLE}),
        ([OLD], OLD, {}, {}),
        ([], MIDDLE, {"3.8": None}, {"3.8": None}),
    ],
)
def test_the_quick_scope_runs_the_oldest_version_and_the_full_scope_all_up_to_the_newest(here, ours, quick, full):
    assert pythons.select(here, ours.version, full=False) == quick
    assert pythons.select(here, ours.version, full=True) == full


@pytest.mark.parametrize("here, runs", [([MIDDLE, OLD], True), ([MIDDLE, NEW], False), ([], False)])
def test_what_the_oldest_python_runs_is_left_out_only_where_there_is_one(monkeypatch, here, runs):
    monkeypatch.setattr(pythons, "available", lambda full: here)
    assert pythons.runs_oldest() == runs


def test_a_missing_version_is_reported_as_a_skipped_test_with_its_reason(tmp_path, capsys):
    report = tmp_path / "pythons-3.8.xml"
    assert pythons.run_version("3.8", None, report)
    assert capsys.readouterr().out == "pythons: 3.8: skipped: there is no Python 3.8 with venv on this machine\n"
    (suite,) = ElementTree.parse(report).getroot()
    assert {key: suite.get(key) for key in ("tests", "skipped", "errors", "failures")} == {
        **dict.fromkeys(("errors", "failures"), "0"),
        **dict.fromkeys(("tests", "skipped"), "1"),
    }
    assert suite.find("testcase/skipped").get("message") == "there is no Python 3.8 with venv on this machine"


def test_a_version_without_an_environment_fails(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pythons, "VENVS", tmp_path)
    report = tmp_path / "pythons-3.8.xml"
    assert not pythons.run_version("3.8", OLD._replace(path="/bin/false"), report)
    assert "returned non-zero exit status 1" in capsys.readouterr().out
    assert ElementTree.parse(report).find("testsuite/testcase/error") is not None


@pytest.mark.parametrize("uv_fails", [False, True])
def test_the_packages_are_installed_by_uv_and_by_pip_where_uv_cannot(tmp_path, monkeypatch, uv_fails):
    """uv takes a twentieth of the work. It does not read pip's configuration, which may name the only index."""
    monkeypatch.setattr(pythons, "VENVS", tmp_path)
    monkeypatch.setattr(pythons, "UV", tmp_path / "uv")
    pythons.UV.touch()
    ran = []

    def run(*command):
        (tmp_path / "3.8").mkdir(exist_ok=True)
        ran.append(" ".join(command))
        return subprocess.CompletedProcess(command, int(uv_fails and command[0] == str(pythons.UV)))

    monkeypatch.setattr(pythons, "run", run)
    assert pythons.create_environment(OLD) == tmp_path / "3.8" / "bin" / "python"
    installs = [line.partition(" install")[0] for line in ran if " install " in line]
    by_pip = [f"{tmp_path}/3.8/bin/python -m pip"]
    assert installs == [f"{tmp_path}/uv pip", *(by_pip if uv_fails else [])]
    assert any("ensurepip" in line for line in ran) == uv_fails
    ran.clear()
    pythons.create_environment(OLD)
    assert ran == []


def test_the_first_working_interpreter_of_a_name_is_used_and_no_other_one_is_probed():
    files = [Path(folder, name) for folder in ("/shims", "/usr/bin", "/opt") for name in ("python3.8", "python3.11")]
    asked = []

    def ask(file):
        asked.append(str(file))
        return "" if file.parent.name == "shims" else f"3 {file.suffix[1:]} final {file}\n"

    assert pythons.find(files, ask) == [OLD, MIDDLE]
    assert asked == ["/shims/python3.8", "/shims/python3.11", "/usr/bin/python3.8", "/usr/bin/python3.11"]


def test_each_test_is_run_by_one_of_the_processes():
    """Each has its own folders, and leaves those of the others out."""
    ignored = {name: {word for word in line if word.startswith("--ignore=")} for name, line in pythons.parts().items()}
    given = [Path(word) for line in pythons.parts().values() for word in line if word.startswith("/")]
    assert len(given) == len({*given})
    assert {*pythons.TESTS} <= {str(path.relative_to(pythons.UNIT)) for path in given}
    inner = [path for path in given if {*path.parents} & {*given}]
    assert inner and all(f"--ignore={path}" in ignored["others"] for path in inner)
    assert all(f"--ignore={path}" in each for path in pythons.LEFT_OUT for each in ignored.values())


@pytest.mark.parametrize("failing", ["", "follow"])
def test_a_version_passes_if_each_of_its_processes_does(tmp_path, monkeypatch, failing):
    monkeypatch.setattr(pythons, "create_environment", lambda interpreter: tmp_path / "python")
    reports = []

    def run(*command):
        (report,) = [word.partition("=")[2] for word in command if word.startswith("--junitxml=")]
        reports.append(Path(report).name)
        is_failing = bool(failing) and failing in report
        said = "E   why\n1 failed\n" if is_failing else "2 passed\n"
        return subprocess.CompletedProcess(command, int(is_failing), said)

    monkeypatch.setattr(pythons, "run", run)
    passed, output = pythons.run_tests(OLD, tmp_path / "pythons-3.8.xml")
    assert passed == (not failing) and ("E   why" in output) == bool(failing)
    assert sorted(reports) == [f"pythons-3.8-{name}.xml" for name in sorted(pythons.parts())]
    if passed:
        assert output == "; ".join(f"{name}: 2 passed" for name in pythons.parts())


@pytest.mark.parametrize(
    "said, interpreter",
    [
        ("3 8 final /usr/bin/python3.8\n", OLD),
        ("3 8 final /my programs/python3.8\n", OLD._replace(path="/my programs/python3.8")),
        ("3 15 candidate /usr/bin/python3.15\n", None),
        ("", None),
    ],
)
def test_only_a_released_python_counts(said, interpreter):
    assert pythons.parse(said) == interpreter


def test_pyenvs_folder_comes_before_the_path_and_only_interpreters_are_candidates(tmp_path):
    on_path, pyenv = tmp_path / "bin", tmp_path / "pyenv"
    there = pyenv / "versions" / "3.8.18" / "bin"
    for folder in (on_path, there):
        folder.mkdir(parents=True)
        for name in ("python3", "python3.8", "python3.8-config", "python3.8m", "python3.11"):
            (folder / name).touch()
    path = os.pathsep.join(["", str(tmp_path / "none"), str(on_path)])
    oldest = [there / "python3.8", on_path / "python3.8"]
    every = [there / "python3.11", oldest[0], on_path / "python3.11", oldest[1]]
    assert pythons.candidates(path, [tmp_path / "nowhere", pyenv], full=False) == oldest
    assert pythons.candidates(path, [tmp_path / "nowhere", pyenv], full=True) == every


def test_what_runs_under_other_pythons_is_the_code_for_targets_without_what_needs_ansible():
    unit = pythons.UNIT
    assert pythons.runs(unit / "_agent" / "vrrp" / "test_daemon.py") and pythons.runs(unit / "_shared" / "test_vrid.py")
    others = [*pythons.LEFT_OUT, unit / "_plan" / "test_a.py", unit / "_agent" / "vrrp"]
    assert not [path for path in others if pythons.runs(path)]


def test_in_the_quick_scope_each_test_file_is_run_either_by_unit_or_under_the_oldest_python(request):
    unit = request.config.pluginmanager.get_plugin(str(UNIT / "conftest.py"))
    once = SimpleNamespace(getoption=lambda _name: True)
    files = [*UNIT.rglob("test_*.py")]
    times = {path: len(parts_that_run(path)) + (not unit.pytest_ignore_collect(path, once)) for path in files}
    assert len(files) > 100 and {path: count for path, count in times.items() if count != 1} == {}


def parts_that_run(path):
    """Return the processes for the oldest Python that are given a file and do not leave it out."""
    found = []
    for name, line in pythons.parts().items():
        given = {Path(word) for word in line if word.startswith("/")}
        ignored = {Path(word.partition("=")[2]) for word in line if word.startswith("--ignore=")}
        if given & {*path.parents} and not ignored & {path, *path.parents}:
            found.append(name)
    return found
