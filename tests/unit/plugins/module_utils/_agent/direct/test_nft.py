# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nft as a program: what it is given, what it answers, and that nobody waits for it."""

from __future__ import annotations

import signal

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import nft
from support.agent.loops import run_until

pytestmark = pytest.mark.usefixtures("no_leak")


@pytest.fixture
def program(tmp_path, loop):
    """Returns a stand-in for nft that runs a shell script."""

    def make(script):
        path = tmp_path / "nft"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return nft.Nft(loop, str(path))

    return make


def ended(loop, begin):
    found = []
    begin(found.append)
    run_until(loop, lambda: found)
    return found[0]


def test_it_gets_the_file_and_its_output_is_returned(loop, program):
    text = "add table ip x\n" * 10_000  # more than a pipe takes
    found = ended(loop, lambda done: program('echo "$@"; cat').load(text, done))
    assert found == nft.Ended(f"-f -\n{text}")


def test_a_list_is_asked_for_in_json(loop, program):
    found = ended(loop, lambda done: program('echo "$@"').list(["counters"], done))
    assert found == nft.Ended("-j list counters\n")


@pytest.mark.parametrize(
    "script, fault",
    [
        ("echo 'Error: No such file.' >&2; echo more >&2; exit 1", "refuses: Error: No such file."),
        ("exit 3", "refuses: exit code 3."),
        ("kill -KILL $$", f"was ended by signal {int(signal.SIGKILL)}."),
    ],
)
def test_a_failure_is_a_sentence(loop, program, script, fault):
    runner = program(script)
    assert ended(loop, lambda done: runner.load("", done)).fault == f"{runner.program} {fault}"


def test_a_signal_to_all_processes_of_the_unit_does_not_end_it(loop, program):
    """The table would stay, and hand connections on with nobody who takes dead servers out."""
    assert ended(loop, lambda done: program("kill -TERM $$; echo done").load("", done)) == nft.Ended("done\n")


def test_a_program_that_is_missing_is_a_sentence(loop, tmp_path):
    runner = nft.Nft(loop, str(tmp_path / "none"))
    assert ended(loop, lambda done: runner.load("", done)).fault.endswith("cannot be run: no such file or directory.")


def test_one_that_hangs_is_killed(loop, program, monkeypatch):
    monkeypatch.setattr(nft, "TIMEOUT", 50_000)
    runner = program("exec sleep 60")
    assert ended(loop, lambda done: runner.load("", done)).fault.endswith("has not ended within 0 s.")


def test_the_next_one_begins_when_the_last_one_has_ended(loop, program, tmp_path):
    runner = program(f"cat >> {tmp_path}/all; echo end >> {tmp_path}/all")
    found = []
    for number in range(3):
        runner.load(f"{number}\n", found.append)
    assert len(runner.pids) == 1, "the others wait"
    run_until(loop, lambda: len(found) == 3)
    assert (tmp_path / "all").read_text().split() == ["0", "end", "1", "end", "2", "end"]
    assert len(set(runner.pids)) == 3


def test_what_python_ignores_is_not_ignored_there(loop, program):
    found = ended(loop, lambda done: program("grep SigIgn /proc/self/status").load("", done))
    assert int(found.output.split()[1], 16) >> (signal.SIGPIPE - 1) & 1 == 0
