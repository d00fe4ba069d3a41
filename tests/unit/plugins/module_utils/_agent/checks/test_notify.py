# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are told of a change: in order, never for ever, and never in silence when they fail."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import notify
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.notify import Notifications
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import accounts
from support.agent.loops import LIMIT, SECOND, run_until
from support.agent.programs import ME, shell, text


class Case:
    def __init__(self, loop, children, limit=notify.LIMIT):
        self.loop, self.said = loop, []
        self.notifications = Notifications(loop, children, self.said.append, limit)

    def run(self, *command):
        self.notifications.add(command, ME)

    def finish(self):
        over = []
        self.notifications.finish(lambda: over.append(True))
        run_until(self.loop, lambda: over)
        return self.said


@pytest.fixture
def case(loop, children):
    return Case(loop, children)


@pytest.fixture
def program(tmp_path):
    """A program that takes longer with the first call than with those after it."""
    path = tmp_path / "program"
    path.write_text(f'#!/bin/sh\nsleep "$1"; echo "$2" >>{tmp_path}/news\n', encoding="ascii")
    path.chmod(0o755)
    return str(path)


def test_the_calls_of_a_program_run_one_after_the_other(case, program, tmp_path):
    for delay, word in (("0.2", "Backup"), ("0.1", "Active"), ("0", "Fault")):
        case.run(program, delay, word)
    assert case.finish() == []
    assert text(tmp_path / "news").split() == ["Backup", "Active", "Fault"]


def test_a_slow_program_does_not_delay_another_one(case, program, tmp_path):
    case.run(*shell(f"until [ -s {tmp_path}/news ]; do sleep 0.01; done; echo slow >>{tmp_path}/news"))
    case.run(program, "0", "quick")
    case.finish()
    assert text(tmp_path / "news").split() == ["quick", "slow"]


@pytest.mark.parametrize(
    "command, said",
    [
        (("/bin/sh", "-c", "exit 2"), "notify: /bin/sh -c exit 2: exit code 2."),
        (("/nowhere", "Active"), "notify: /nowhere Active: cannot run /nowhere: no such file or directory."),
    ],
)
def test_a_failure_is_said_and_the_next_call_is_made(case, tmp_path, command, said):
    case.run(*command)
    case.run(command[0], *shell(f"echo on >{tmp_path}/news")[1:])
    assert case.finish()[0] == said
    assert text(tmp_path / "news") == ("on\n" if command[0] == "/bin/sh" else "")


def test_a_user_who_does_not_exist_is_said(case, monkeypatch):
    monkeypatch.setattr(accounts, "may_change", lambda: True)
    case.notifications.add(("/bin/true",), "no-such-user")
    case.notifications.add(("/bin/true",), ME)
    assert case.finish() == ["notify: /bin/true: cannot run /bin/true: there is no user no-such-user."]


def test_a_program_that_takes_too_long_is_ended_and_the_next_call_is_made(loop, children, tmp_path):
    case = Case(loop, children, SECOND // 2)

    def say(text):
        case.said.append(text)
        case.notifications._limit = LIMIT  # of the next one

    case.notifications._log = say
    case.run(*shell("sleep 600"))
    case.run(*shell(f"echo on >{tmp_path}/news"))
    assert case.finish() == ["notify: /bin/sh -c sleep 600: no end within 0.5 s."]
    assert text(tmp_path / "news") == "on\n"


def test_of_too_many_calls_the_oldest_are_left_out(case, program, tmp_path, monkeypatch):
    monkeypatch.setattr(notify, "MAX_QUEUED", 2)
    case.run(program, "0.1", "first")
    for word in ("second", "third", "fourth"):
        case.run(program, "0", word)
    (said,) = case.finish()
    assert said.startswith(f"notify: {program} 0 second is left out: 2 later calls wait. ")
    assert text(tmp_path / "news").split() == ["first", "third", "fourth"]


def test_a_call_that_waits_is_not_queued_again_unless_another_state_comes_between(case, tmp_path):
    told = tmp_path / "program"
    told.write_text(f'#!/bin/sh\nuntil [ -e {tmp_path}/go ]; do sleep 0.01; done\necho "$@" >>{tmp_path}/news\n')
    told.chmod(0o755)
    for state in ("MASTER", "MASTER", "MASTER", "BACKUP", "MASTER", "MASTER"):
        for name in ("a", "b"):
            case.run(str(told), "INSTANCE", name, state, "100")
    (tmp_path / "go").touch()
    assert case.finish() == []
    lines = [line.split() for line in text(tmp_path / "news").splitlines()]
    assert [state for _kind, name, state, _priority in lines if name == "a"] == ["MASTER", "MASTER", "BACKUP", "MASTER"]
    assert [state for _kind, name, state, _priority in lines if name == "b"] == ["MASTER", "BACKUP", "MASTER"]


def test_of_too_many_calls_the_last_one_about_an_instance_is_always_made_and_one_line_says_so(
    case, tmp_path, monkeypatch
):
    monkeypatch.setattr(notify, "MAX_QUEUED", 4)
    told = tmp_path / "program"
    told.write_text(f'#!/bin/sh\nuntil [ -e {tmp_path}/go ]; do sleep 0.01; done\necho "$@" >>{tmp_path}/news\n')
    told.chmod(0o755)
    for name in "abcdefg":  # more instances than calls may wait
        case.run(str(told), "INSTANCE", name, "BACKUP", "100")
    for state in 10 * ("MASTER", "BACKUP"):
        case.run(str(told), "INSTANCE", "flaps", state, "100")
    (tmp_path / "go").touch()
    assert len(case.finish()) == 1
    lines = [line.split()[1:3] for line in text(tmp_path / "news").splitlines()]
    assert [line for line in lines if line[0] != "flaps"] == [[name, "BACKUP"] for name in "abcdefg"]
    assert lines[-1] == ["flaps", "BACKUP"] and len(lines) < 12


def test_nothing_to_do_is_finished_at_once(case):
    assert case.finish() == []
