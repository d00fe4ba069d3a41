# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a process runs, with real processes and with a /proc made here."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import kernel, processes
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.processes import Process
from support.agent.loops import Runs, run_until

SLEEP = shutil.which("sleep")
# Names are the whole host's, and another run of these tests may be under way.
NAME = f"proxy-{os.getpid()}"
LONG = f"{NAME}-with-a-long-name"


@pytest.fixture
def launch(loop, tmp_path):
    """Start programs of any name; the test ends them or the fixture does."""
    started = []

    def start(name=NAME):
        program = tmp_path / name
        if not program.exists():
            shutil.copy(SLEEP, str(program))
        started.append(subprocess.Popen([str(program), "60"]))
        run_until(loop, lambda: named(started[-1].pid, name))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def named(pid, name):
    """It has its name and its arguments, which come a moment after the rest of a program."""
    with open(f"/proc/{pid}/comm", encoding="ascii") as comm, open(f"/proc/{pid}/cmdline", encoding="ascii") as line:
        return comm.read() == name[:15] + "\n" and line.read()


class Watched:
    """A process check; ``deaths`` are those that it noticed by itself."""

    def __init__(self, loop, name=NAME):
        self.deaths = []
        self.loop = loop
        self.probe = Process(loop, name, lambda: self.deaths.append(loop.now()))
        self.runs = Runs(loop, self.probe)

    def up(self):
        self.runs.start()
        return self.runs.outcomes[-1].success

    def notices(self):
        run_until(self.loop, lambda: self.deaths)
        self.deaths.clear()


@pytest.fixture
def watched(loop):
    watched = Watched(loop)
    yield watched
    watched.probe.stop()


def test_it_is_up_as_long_as_the_process_lives_and_its_death_is_noticed_at_once(watched, launch):
    assert watched.runs.one()[:2] == (False, f"no process {NAME}")
    process = launch()
    assert watched.runs.one()[:2] == (True, f"process {process.pid}")
    process.kill()
    watched.notices()
    assert not watched.up()


def test_a_zombie_is_dead(watched, launch):
    process = launch()
    assert watched.up()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not watched.up()


def test_one_of_several_is_enough(watched, launch):
    """As when haproxy is reloaded, and old and new processes overlap."""
    old = launch()
    assert watched.up()
    new = launch()
    old.kill()
    watched.notices()
    assert watched.runs.one()[:2] == (True, f"process {new.pid}")
    new.kill()
    watched.notices()
    assert not watched.up()


def test_one_that_becomes_another_program_is_another_program(watched, tmp_path):
    program = tmp_path / NAME
    program.write_text("#!/bin/sh\nread line\nexec sleep 60\n", encoding="ascii")
    program.chmod(0o755)
    process = subprocess.Popen([str(program)], stdin=subprocess.PIPE)
    try:
        run_until(watched.loop, watched.up)
        process.stdin.write(b"\n")
        process.stdin.flush()
        run_until(watched.loop, lambda: not watched.up())
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "name, found",
    [(LONG, True), (LONG + "r", False), (LONG[:15], True), (LONG[:14], False)],
    ids=["whole", "longer", "as it was cut", "shorter"],
)
def test_a_name_that_the_kernel_has_cut_is_recognized_by_the_first_argument(loop, launch, name, found):
    launch(LONG)
    watched = Watched(loop, name)
    assert watched.up() is found
    watched.probe.stop()


def test_a_process_that_changed_its_name_is_recognized_by_its_first_argument(watched):
    process = subprocess.Popen([f"/usr/sbin/{NAME}", "60"], executable=SLEEP)
    try:
        run_until(watched.loop, watched.up)
        assert watched.runs.outcomes[-1].detail == f"process {process.pid}"
    finally:
        process.kill()
        process.wait()


def test_without_descriptors_of_processes_a_death_is_found_by_the_next_run(watched, launch, monkeypatch):
    """Before Linux 5.3, and in some sandboxes."""
    monkeypatch.setattr(kernel, "pidfd_open", lambda pid: None)
    process = launch()
    assert watched.up()
    process.kill()
    process.wait()
    assert not watched.up()
    assert watched.deaths == []


def test_one_that_died_while_it_was_being_looked_at_is_not_taken(watched, launch, monkeypatch):
    opened = kernel.pidfd_open
    dying, living = launch(), launch()

    def kill_first(pid):
        descriptor = opened(pid)
        if pid == dying.pid:
            dying.kill()
            dying.wait()
        return descriptor

    monkeypatch.setattr(kernel, "pidfd_open", kill_first)
    assert watched.runs.one().detail == f"process {living.pid}"


def test_no_descriptors_remain(loop, launch, no_leak):
    watched = Watched(loop)
    for _life in range(3):
        process = launch()
        assert watched.up()
        process.kill()
        watched.notices()
    launch()
    assert watched.up()
    watched.probe.stop()


@pytest.mark.parametrize(
    "comm, cmdline, name, named",
    [
        ("haproxy", "/usr/sbin/haproxy\0-Ws\0", "haproxy", True),
        ("haproxy", "haproxy: worker\0", "haproxy", True),
        ("haproxy", "", "haproxy", True),
        ("haproxy", "", "haprox", False),
        ("haproxy-wi", "", "haproxy", False),
        ("MainThread", "/usr/bin/node\0server.js\0", "node", True),
        ("sh", "/bin/sh\0haproxy\0", "haproxy", False),
        ("a) R 1 (b", "a) R 1 (b\0", "a) R 1 (b", True),
        ("a-long-name-of-", "a-long-name-of-one\0", "a-long-name-of-one", True),
        ("a-long-name-of-", "a-long-name-of-two\0", "a-long-name-of-one", False),
        ("a-long-name-of-", "something of its own\0", "a-long-name-of-one", True),
    ],
)
@pytest.mark.parametrize(
    "state, alive", [("R", True), ("S", True), ("D", True), ("T", True), ("Z", False), ("X", False)]
)
def test_names_and_states(tmp_path, comm, cmdline, name, named, state, alive):
    folder = tmp_path / "42"
    folder.mkdir()
    (folder / "comm").write_text(comm + "\n", encoding="ascii")
    (folder / "cmdline").write_text(cmdline, encoding="ascii")
    (folder / "stat").write_text(f"42 ({comm}) {state} 1 42 42", encoding="ascii")
    (tmp_path / "43").mkdir()  # it has just died
    (tmp_path / "self").mkdir()
    assert list(dict.fromkeys(processes.candidates(name, str(tmp_path)))) == ([42] if named and alive else [])
