# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages run in order, alone where required, and none is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest
from suite.runner import Runner, Stage
from support.paths import ROOT
from support.waiting import LIMIT_S, until

# Writes down when it began and ended.
NOTED = "echo begin {0} >>{1}/events; sleep 0.3; echo end {0} >>{1}/events"

# The same, and ends only once so many have begun.
SEVERAL = "until test $(grep -c begin {1}/events) -ge {2}; do sleep 0.01; done"
OVERLAPPING = f"echo begin {{0}} >>{{1}}/events; {SEVERAL}; echo end {{0}} >>{{1}}/events"


@pytest.fixture
def run(tmp_path):
    """Return the rows by name, and the output."""

    def run_stages(*stages, at_once=2):
        said = []
        rows = Runner(list(stages), tmp_path / "logs", said.append, at_once=at_once).run()
        return {row.name: row.result for row in rows}, "\n".join(said)

    return run_stages


@pytest.fixture
def events(tmp_path):
    return lambda: (tmp_path / "events").read_text().splitlines()


def noted(tmp_path, name, **options):
    return Stage(name, ("sh", "-c", NOTED.format(name, tmp_path)), **options)


def test_a_stage_begins_after_those_that_it_comes_after(run, tmp_path, events):
    run(noted(tmp_path, "b", after=("a",)), noted(tmp_path, "a"))
    assert events() == ["begin a", "end a", "begin b", "end b"]


@pytest.mark.parametrize("at_once", [2, 3])
def test_so_many_stages_run_side_by_side_and_the_next_one_waits(run, tmp_path, events, at_once):
    script = OVERLAPPING.replace("{2}", str(at_once))
    run(*(Stage(name, ("sh", "-c", script.format(name, tmp_path))) for name in "abcd"), at_once=at_once)
    assert sorted(events()[:at_once]) == [f"begin {name}" for name in "abc"[:at_once]]
    assert events()[at_once].startswith("end")


def test_the_processor_time_of_a_stage_is_its_own_with_that_of_its_children(tmp_path):
    busy = "import time; [0 for _ in iter(lambda: time.process_time() < 0.5, False)]"
    stages = [
        Stage("busy", ("sh", "-c", f"{sys.executable} -c '{busy}'; true")),
        Stage("idle", ("true",), after=("busy",)),
    ]
    rows = {row.name: row for row in Runner(stages, tmp_path / "logs", [].append).run()}
    assert rows["busy"].cpu_s >= 0.5 and rows["busy"].cpu_s > rows["idle"].cpu_s


def test_a_stage_that_runs_alone_has_no_other_beside_it(run, tmp_path, events):
    run(noted(tmp_path, "a"), noted(tmp_path, "b", alone=True), noted(tmp_path, "c"))
    at = events().index("begin b")
    assert events()[at + 1] == "end b"
    assert {"end a", "end c"} <= set(events()[:at]) or "end a" in events()[:at]


def test_a_stage_that_needs_a_failed_one_is_skipped_with_the_reason(run):
    rows, _said = run(Stage("setup", ("false",)), Stage("unit", ("true",), needs=("setup",)))
    assert rows["setup"].failures == ("exit code 1",)
    assert rows["unit"].skips == ("setup did not succeed",)


def test_a_stage_that_only_comes_after_a_failed_one_runs(run):
    rows, _said = run(Stage("unit", ("false",)), Stage("netns", ("true",), after=("unit", "not asked for")))
    assert rows["netns"].passed == 1


def test_a_stage_that_this_machine_cannot_run_is_skipped_with_the_reason(run):
    rows, said = run(Stage("packages", ("false",), missing="no rights"))
    assert rows["packages"].skips == ("no rights",)
    assert "packages: 0 passed, 0 failed, 1 skipped" in said


def test_a_stage_that_prepares_counts_only_when_it_fails(run):
    rows, _said = run(Stage("a", ("true",), counts="prepares"), Stage("b", ("false",), counts="prepares"))
    assert (rows["a"].passed, rows["b"].failures) == (0, ("exit code 1",))


def test_the_last_lines_of_a_failed_stage_are_shown(run):
    _rows, said = run(Stage("lint", ("sh", "-c", "echo first; echo what went wrong; exit 3")))
    assert "| what went wrong" in said


def test_results_of_pytest_are_read_from_its_junit_file(run, tmp_path):
    (tmp_path / "test_two.py").write_text("def test_a(): pass\ndef test_b(): assert False\n")
    junit = f"--junitxml={tmp_path}/logs/unit/junit.xml"
    rows, _said = run(
        Stage("unit", (sys.executable, "-m", "pytest", "-c/dev/null", junit, f"{tmp_path}/test_two.py"), counts="junit")
    )
    assert (rows["unit"].passed, len(rows["unit"].failures)) == (1, 1)


def test_ending_the_suite_ends_its_stages(tmp_path):
    """Runs the whole program, with a stage that records its process id and sleeps."""
    code = (
        "import pathlib, signal, sys\n"
        "from suite.runner import Runner, Stage\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "Runner([Stage('a', ('sh', '-c', f'echo $$ >{folder}/pid; exec sleep 600'))], folder / 'logs', print).run()\n"
    )
    pid_file = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL) as suite:
        pid = int(until(lambda: pid_file.exists() and pid_file.read_text().strip()))
        suite.send_signal(signal.SIGTERM)
        assert suite.wait(LIMIT_S) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_signal_during_the_start_of_a_stage_ends_that_stage_too(tmp_path):
    pid_file = tmp_path / "pid"
    code = (
        "import os, pathlib, signal, subprocess, sys\n"
        "from suite.runner import Runner, Stage\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "start = subprocess.Popen\n"
        "def popen(*arguments, **options):\n"
        "    process = start(*arguments, **options)\n"
        f"    pathlib.Path({str(pid_file)!r}).write_text(str(process.pid))\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return process\n"
        "subprocess.Popen = popen\n"
        f"Runner([Stage('a', ('sleep', '60'))], pathlib.Path({str(tmp_path)!r}) / 'logs', print).run()\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("STRICT", "yes", "STRICT is 'yes'; it may be 0 or 1."),
        ("SCOPE", "fast", "SCOPE is 'fast'; it may be quick or full."),
        ("RUNS", "default", "RUNS has 'default': it takes SCENARIO:IMAGE"),
    ],
)
def test_an_invalid_variable_is_refused_before_anything_runs(tmp_path, variable, value, said):
    shutil.copytree(ROOT / "tests" / "suite", tmp_path / "tests" / "suite")
    for needed in ("lab", "tests/support", "tests/pythons.py"):
        (tmp_path / needed).symlink_to(ROOT / needed)
    command = [sys.executable, str(tmp_path / "tests" / "suite"), "unit"]
    done = subprocess.run(command, env={**os.environ, variable: value}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert said in done.stderr
    assert " ..." not in done.stdout
