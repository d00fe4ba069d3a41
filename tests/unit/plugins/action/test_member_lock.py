# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of the lock: whose it is, whether that run has died, and when a lock is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.onprem.lb.plugins.action import member_lock
from ansible_collections.onprem.lb.plugins.action.member_lock import has_died, record_of, refusal, started
from ansible_collections.onprem.lb.plugins.module_utils._host.write import lock

NOBODY = {**record_of(1, "nothing"), "started": "0"}
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


def test_nothing_is_known_of_a_run_elsewhere_or_where_the_system_tells_nothing(other, monkeypatch, tmp_path):
    record = record_of(other.pid, "a drill")
    monkeypatch.setattr(member_lock, "started", lambda _pid: None)  # /proc hides the processes of other users
    assert not has_died(record)
    monkeypatch.undo()
    other.kill()
    other.wait()
    assert has_died(record) and has_died({**record, "controller": "renamed"})
    assert not has_died({**record, "boot": f"{record['boot']}x"}) and not has_died({})
    monkeypatch.setattr(member_lock, "BOOT", tmp_path / "none")
    assert not has_died(record_of(other.pid, "a drill"))


def test_a_name_with_spaces_and_brackets_does_not_shift_the_fields(tmp_path):
    program = tmp_path / "a ) 1 2 (b"
    program.symlink_to(sys.executable)
    with subprocess.Popen([str(program), "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert int(started(process.pid)) >= int(started(os.getpid())) > 0
        process.kill()


def test_the_refusal_names_the_run_and_the_mend():
    record = {"controller": "bastion", "pid": 4711, "user": "anna", "purpose": "a drill", "since": "noon"}
    assert refusal("lb1", record, "pair_break_lock") == (
        "lb1 is locked: anna on bastion began a drill at noon, as process 4711. Wait until that run has ended. "
        "If it has died, add -e pair_break_lock=true."
    )
    assert refusal("lb1", {}, "pair_break_lock") == (
        "lb1 is locked: /run/onprem-lb.lock is there, but it names no run. If it has died, add -e pair_break_lock=true."
    )
    assert refusal("lb1", record, None).endswith("Wait until that run has ended.")


def test_every_member_accepts_the_record_of_a_controller_with_strange_names(monkeypatch, tmp_path):
    monkeypatch.setattr(member_lock.socket, "gethostname", lambda: "h\x1b[0m" * 100)
    monkeypatch.setattr(member_lock.getpass, "getuser", lambda: "\ud800\n")
    record = record_of(os.getpid(), "x" * 999)
    path = str(tmp_path / "lock")
    lock.take(path, record)
    assert lock.take(path, {**record, "pid": 1}).held_by == record


class Play:
    """Runs the action on one host, whose lock is a file."""

    def __init__(self, path):
        self.path = str(path)
        self.settings = SimpleNamespace(strategy="linear", serial=[])

    def __call__(self, state="present", **variables):
        names = {"break_variable": "pair_break_lock", "downgrade_variable": "pair_downgrade"}
        arguments = {"state": state, "purpose": "a deployment", **names}
        action = member_lock.ActionModule(
            SimpleNamespace(
                args=arguments, async_val=0, check_mode=False, diff=False, delegate_to=None, play=self.settings
            ),
            *(SimpleNamespace(_shell=SimpleNamespace(tmpdir="/unused")), SimpleNamespace(), SimpleNamespace()),
            templar=SimpleNamespace(template=lambda value: value),
            shared_loader_obj=None,
        )
        action._execute_module = self.execute
        return action.run(task_vars={"inventory_hostname": "lb1", **variables})

    def execute(self, name, arguments, task_vars):
        assert name == "onprem.lb.member_lock"
        if arguments["state"] == "absent":
            return {"held_by": lock.release(self.path, arguments["holder"])}
        return {"held_by": lock.take(self.path, arguments["holder"], arguments.get("replaces")).held_by}

    def holder(self):
        """Return whose lock it is, as a run sees it that has none; None if it is free."""
        found = lock.take(self.path, NOBODY).held_by
        lock.release(self.path, NOBODY)
        return found


@pytest.fixture
def play(tmp_path):
    return Play(tmp_path / "lock")


def test_the_lock_belongs_to_the_parent_of_the_process_that_runs_the_action(play):
    assert not play().get("failed")
    assert play.holder()["pid"] == os.getppid() and play.holder()["purpose"] == "a deployment"
    assert not play().get("failed") and not play("absent").get("failed") and play.holder() is None


def test_the_lock_of_a_run_that_lives_is_respected_until_it_is_broken(play, other):
    record = record_of(other.pid, "a drill")
    lock.take(play.path, record)
    for variables in ({}, {"pair_break_lock": "no"}, {"pair_break_lock": "maybe"}, {"ipi_break_lock": True}):
        refused = play(**variables)
        assert refused["failed"] and refused["msg"].startswith("lb1 is locked: ") and play.holder() == record
    assert not play(pair_break_lock="true").get("failed") and play.holder()["pid"] == os.getppid()


def test_the_lock_of_a_dead_run_is_taken_over(play, other):
    lock.take(play.path, record_of(other.pid, "a drill"))
    other.kill()
    other.wait()
    assert not play().get("failed") and play.holder()["pid"] == os.getppid()


def test_a_lock_that_names_no_run_is_broken_only_on_request(play):
    Path(play.path).write_text("nonsense")
    assert play()["failed"]
    assert not play(pair_break_lock=True).get("failed") and play.holder()["pid"] == os.getppid()


@pytest.mark.parametrize("value, accepted", [(None, False), ("no", False), ("maybe", False), ("true", True)])
def test_the_module_is_told_whether_the_user_accepts_a_downgrade(play, value, accepted):
    given = []
    play.execute = lambda _name, arguments, **_others: given.append(arguments["downgrades"]) or {"held_by": None}
    play(ipi_downgrade=True, **({} if value is None else {"pair_downgrade": value}))
    assert given == [accepted]


def test_a_host_that_cannot_be_reached_is_named_with_the_cause(play):
    def execute(*_arguments, **_others):
        raise AnsibleConnectionFailure("ssh: connect to host 192.0.2.11 port 22:\n Connection refused\n")

    play.execute = execute
    assert play() == {
        "failed": True,
        "msg": "lb1 cannot be reached as root: ssh: connect to host 192.0.2.11 port 22: Connection refused",
        "answered": False,
    }
    play.execute = execute
    with pytest.raises(AnsibleConnectionFailure):
        play("absent")  # the task that releases the lock ignores it


PASSWORD = "give the password with --ask-become-pass."
SUDOERS = "allow that there with visudo, or set ansible_user to one who may become root."


@pytest.mark.parametrize(
    "said, mend",
    [
        ("Missing sudo password", PASSWORD),
        ("Incorrect sudo password", PASSWORD),
        ("sudo: a password is required", PASSWORD),
        ("su: Authentication failure", PASSWORD),
        ("ops is not in the sudoers file.  This incident will be reported.", SUDOERS),
        ("ops is not in the sudoers file.", SUDOERS),
        ("Sorry, user ops is not allowed to execute '/bin/sh -c ...' as root on lb1.", SUDOERS),
        ("Sorry, user ops may not run sudo on lb1.", SUDOERS),
        ("/bin/sh: 1: sudo: not found", "install sudo there, or set ansible_become_method."),
    ],
)
@pytest.mark.parametrize("channel", ["msg", "module_stderr"])
def test_where_nobody_becomes_root_the_sentence_has_the_mend(play, said, mend, channel):
    play.execute = lambda *_arguments, **_others: {"failed": True, channel: f"\n{said}\n"}
    line = " ".join(said.split()).rstrip(".")
    assert play()["msg"].endswith(f"{line}: {mend}") and play()["msg"].startswith("lb1: ")


def test_a_host_on_which_the_module_fails_is_named(play):
    play.execute = lambda *_arguments, **_others: {"failed": True, "msg": "/run is full,\n and so is /tmp."}
    assert play()["msg"] == "lb1: /run is full, and so is /tmp."
    # ansible-core 2.16 has the cause beside its message.
    output = {"module_stdout": "a line\nThis account is not available.\n", "module_stderr": "\n"}
    play.execute = lambda *_arguments, **_others: {"failed": True, "msg": "MODULE FAILURE\nSee stdout", **output}
    assert play()["msg"] == "lb1: the module did not run: a line This account is not available."


NONE_THERE = "Ansible finds no Python: install python3 there"
TOO_OLD = "its Python is too old: install Python {} or later there"
ADVICE = "Note: See 'pyenv help global' for multiple\n      Python versions to be found at the same time."
# As versions of ansible-core word it, whose results differ.
PYTHONS = {
    "none, 2.16": ({"msg": "MODULE FAILURE", "module_stderr": "/bin/sh: 1: /usr/bin/python3: not found\n"}, NONE_THERE),
    "none, pyenv": (
        {"msg": "MODULE FAILURE", "module_stdout": f"pyenv: python3.12: command not found\n\n{ADVICE}\n"},
        NONE_THERE,
    ),
    "none, 2.17": ({"msg": "The module failed, you probably need to set the interpreter.\nSee stdout"}, NONE_THERE),
    "none, 2.19": ({"msg": "The module interpreter '/usr/bin/python3' was not found."}, NONE_THERE),
    "3.6, 2.16": (
        {"msg": "MODULE FAILURE", "module_stdout": "SyntaxError: future feature annotations is not defined"},
        TOO_OLD.format("3.8"),
    ),
    "3.8, 2.20": (
        {"msg": "ansible-core requires a minimum of Python version 3.9. Current version: 3.8.20"},
        TOO_OLD.format("3.9"),
    ),
    "3.8, 2.21": (
        {"msg": "Ansible requires Python 3.9 or newer on the target. Current version: 3.8.18"},
        TOO_OLD.format("3.9"),
    ),
}


@pytest.mark.parametrize("result, cause", PYTHONS.values(), ids=PYTHONS)
def test_a_host_without_a_python_for_the_modules_is_named_with_what_to_do(play, result, cause):
    play.execute = lambda *_arguments, **_others: {"failed": True, **result}
    assert play()["msg"] == f"lb1: {cause}, or name one in ansible_python_interpreter."


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"strategy": "free"}, "lb1: the members wait for each other, and the strategy is free: set strategy: linear."),
        ({"strategy": "ansible.builtin.host_pinned"}, "lb1: the members wait for each other, and the strategy is"),
        ({"serial": [1]}, "lb1: the members are planned together, and the play takes them in batches: remove serial."),
    ],
)
def test_a_play_that_does_not_keep_its_hosts_together_is_refused_before_the_lock(play, settings, sentence):
    vars(play.settings).update(settings)
    refused = play()
    assert refused["failed"] and refused["msg"].startswith(sentence) and play.holder() is None
    assert not play("absent").get("failed")
