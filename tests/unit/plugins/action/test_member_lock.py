# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of the lock: whose it is, whether that run has died, and when a lock is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.action import member_lock
from ansible_collections.onprem.lb.plugins.action.member_lock import has_died, machine, record_of, refusal, started
from ansible_collections.onprem.lb.plugins.module_utils._host import lock

SLEEP = [sys.executable, "-c", "input()"]


@pytest.fixture
def other():
    """A process of another run."""
    with subprocess.Popen(SLEEP, stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_run_that_lives_has_not_died(other):
    record = record_of(other.pid, "a drill")
    assert not has_died(record) and not has_died(record_of(1, "init")) and not has_died(record_of(os.getpid(), "this"))


@pytest.mark.parametrize("is_reaped", [True, False])
def test_a_run_that_was_killed_has_died(other, is_reaped):
    record = record_of(other.pid, "a drill")
    other.kill()
    if is_reaped:
        other.wait()
    else:
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert has_died(record)


def test_another_process_with_its_number_is_not_the_run(other):
    assert has_died({**record_of(other.pid, "a drill"), "started": "1"})


def test_nothing_is_known_of_a_run_elsewhere(other):
    record = record_of(other.pid, "a drill")
    other.kill()
    other.wait()
    for at in range(len(machine())):
        elsewhere = [f"{part}x" if at == number else part for number, part in enumerate(machine())]
        assert not has_died({**record, "machine": elsewhere})
    for pid in (None, "7", 0, -1):
        assert not has_died({**record, "pid": pid})
    assert not has_died({})


def test_a_name_with_spaces_and_brackets_does_not_shift_the_fields(tmp_path):
    program = tmp_path / "a ) 1 2 (b"
    program.symlink_to(sys.executable)
    with subprocess.Popen([str(program), "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert int(started(process.pid)) >= int(started(os.getpid())) > 0
        process.kill()


def test_the_refusal_names_the_run_and_the_mend():
    record = {"machine": ["bastion", "x"], "pid": 4711, "user": "anna", "purpose": "a drill", "since": "noon"}
    assert refusal("lb1", record, "pair_break_lock") == (
        "lb1 is locked: anna on bastion began a drill at noon, as process 4711. Wait until that run has ended. "
        "If it has died there, add -e pair_break_lock=true."
    )
    assert refusal("lb1", {}, None) == (
        "lb1 is locked: somebody on an unknown machine began a run at an unknown time, as process unknown. "
        "Wait until that run has ended."
    )


class Play:
    """Runs the action on one host, whose lock is a file."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, state="present", **variables):
        arguments = {"state": state, "purpose": "a deployment", "break_variable": "pair_break_lock"}
        action = member_lock.ActionModule(
            SimpleNamespace(args=arguments, async_val=0, check_mode=False, diff=False, delegate_to=None),
            *(SimpleNamespace(_shell=SimpleNamespace(tmpdir="/unused")), SimpleNamespace(), SimpleNamespace()),
            templar=SimpleNamespace(template=lambda value: value),
            shared_loader_obj=None,
        )
        action._execute_module = self.execute
        return action.run(task_vars={"inventory_hostname": "lb1", **variables})

    def execute(self, name, arguments, task_vars):
        assert name == "onprem.lb.member_lock"
        if arguments["state"] == "absent":
            return {"held_by": None, "released": lock.release(self.path, arguments["holder"])}
        return {"held_by": lock.take(self.path, arguments["holder"], arguments.get("replaces"))}


@pytest.fixture
def play(tmp_path):
    return Play(tmp_path / "lock")


def test_the_lock_belongs_to_the_parent_of_the_process_that_runs_the_action(play):
    assert not play().get("failed")
    record = lock.read(play.path)
    assert record["pid"] == os.getppid() and record["purpose"] == "a deployment"
    assert not play().get("failed") and play("absent")["released"] and lock.read(play.path) is None


def test_the_lock_of_a_run_that_lives_is_respected_until_it_is_broken(play, other):
    record = record_of(other.pid, "a drill")
    lock.take(play.path, record)
    for variables in ({}, {"pair_break_lock": "no"}, {"pair_break_lock": "maybe"}, {"ipi_break_lock": True}):
        refused = play(**variables)
        assert refused["failed"] and refused["msg"].startswith("lb1 is locked: ") and lock.read(play.path) == record
    assert not play(pair_break_lock="true").get("failed") and lock.read(play.path)["pid"] == os.getppid()


def test_the_lock_of_a_dead_run_is_taken_over(play, other):
    lock.take(play.path, record_of(other.pid, "a drill"))
    other.kill()
    other.wait()
    assert not play().get("failed") and lock.read(play.path)["pid"] == os.getppid()
