# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that leaves something behind fails, and another one passes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.leaks import VARIABLE
from support.netns.links import skip_reason
from support.paths import ROOT
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(skip_reason()), reason=str(skip_reason()))

AS_ROOT = """
from support import leaks
from support.leaks import nothing_is_left
leaks.LIMIT_S = 1
"""
AS_ANOTHER_USER = AS_ROOT + "leaks.own_namespaces = lambda: None"
TEST = """
import os, signal, subprocess, time
from pathlib import Path
from support.leaks import prefix

def test_leaving():
    {body}
"""
FORKED = """
    reader, writer = os.pipe()
    if os.fork() == 0:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        os.write(writer, str(pid).encode())
        os._exit(0)
    os.wait()
    Path("pid").write_text(os.read(reader, 10).decode())
"""
SLEEP = 'Path("pid").write_text(str(subprocess.Popen(["sleep", "60"], start_new_session=True{more}).pid))'
PROCESSES = {
    "a process": SLEEP.format(more=""),
    "a process with another environment": SLEEP.format(more=", env={}"),
    "a process that executes no program": FORKED,
}


@pytest.fixture
def ran(tmp_path):
    """Return a function that runs pytest on one test with this body, and returns the exit code and the output."""

    def run(body, conftest=AS_ROOT):
        (tmp_path / "conftest.py").write_text(conftest)
        (tmp_path / "test_it.py").write_text(TEST.format(body=body))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", tmp_path]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        output = tmp_path / "output"  # not a pipe, which a leftover process would hold open
        with output.open("w") as out:
            done = subprocess.run(
                [*command, tmp_path], cwd=tmp_path, env=environment, stdout=out, timeout=60, check=False
            )
        return done.returncode, output.read_text()

    yield run
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("what", PROCESSES)
def test_a_run_that_leaves_a_process_fails(ran, tmp_path, what):
    code, said = ran(PROCESSES[what])
    assert (code, f"left behind: process {(tmp_path / 'pid').read_text()} (" in said) == (1, True), said


def test_without_root_processes_are_identified_by_their_environment(ran):
    code, said = ran(PROCESSES["a process"], AS_ANOTHER_USER)
    assert (code, "(sleep 60)" in said) == (1, True), said


def test_a_run_that_leaves_a_network_namespace_fails(ran, tmp_path):
    code, said = ran('Path("name").write_text(prefix()); subprocess.run(["ip", "netns", "add", prefix()], check=True)')
    name = (tmp_path / "name").read_text()  # its /run/netns was the run's own, and has gone with it
    assert (code, f"left behind: network namespace {name}" in said) == (1, True), said


def test_a_run_that_leaves_a_file_in_run_fails(ran):
    code, said = ran('Path("/run/onprem-left").touch()')
    assert (code, "left behind: file /run/onprem-left" in said) == (1, True), said


def test_what_another_program_leaves_in_run_is_not_the_runs(ran, tmp_path):
    other = tmp_path / "other"
    file = Path("/run/haproxy-of-another-program")
    waits = f'open("{other}", "w").close()\n    while Path("{other}").exists(): time.sleep(0.01)'

    def leave():
        until(other.exists)
        file.touch()
        other.unlink()

    with ThreadPoolExecutor(1) as pool:
        left = pool.submit(leave)
        code, said = ran(waits)
        left.result()
    file.unlink()
    assert code == 0, said


def test_a_run_that_leaves_nothing_passes_after_the_last_processes_have_ended(ran):
    code, said = ran('subprocess.Popen(["sleep", "0.5"])')
    assert code == 0, said


def test_a_run_within_a_run_belongs_to_both(ran):
    code, said = ran(f'assert os.environ["{VARIABLE}"].split()[:-1] == {os.environ[VARIABLE].split()}')
    assert code == 0, said
