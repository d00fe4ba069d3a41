# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts: real programs, well behaved or not."""

from __future__ import annotations

import os
import pwd
import signal
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import subprocesses
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.scripts import Script
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import accounts
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from support.agent.loops import LIMIT, SECOND, Runs, Time, run_until
from support.agent.programs import ME, alive, in_a_child, pids, shell, text
from support.marks import as_root

# The C library uses signals 32 and 33 itself, and lets no program change their actions.
LIBC = 0b11 << 31


@pytest.fixture
def script(loop, children):
    made = []

    def make(command, user=ME, timeout=LIMIT):
        made.append(Runs(loop, Script(loop, children, command, user, timeout)))
        return made[-1]

    yield make
    for runs in made:
        runs.probe.stop()


def expire(runs):
    """Its time is over when the test says so: a busy machine may take long to start a program."""
    runs.probe._timed_out()


def children_of_ours():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
        return children.read().split()


@pytest.mark.parametrize(
    "line, success, detail",
    [
        ("exit 0", True, "exit code 0"),
        ("exit 3", False, "exit code 3"),
        ("exit 127", False, "exit code 127"),
        ("kill -9 $$", False, "signal 9"),
    ],
)
def test_the_exit_code_is_the_answer(script, line, success, detail):
    outcome = script(shell(line)).one()
    assert (outcome.success, outcome.detail, outcome.known) == (success, detail, True)
    assert outcome.duration > 0


@pytest.mark.parametrize(
    "command, detail",
    [
        ("/nowhere", "cannot run /nowhere: no such file or directory"),
        ("/etc/passwd", "cannot run /etc/passwd: permission denied"),
        ("relative", "cannot run relative: no such file or directory"),
    ],
)
def test_a_program_that_cannot_be_run_is_a_failure_that_says_why(script, command, detail):
    outcome = script((command,)).one()
    assert (outcome.success, outcome.detail, outcome.known) == (False, detail, False)


def test_a_program_that_is_stopped_at_once_gets_its_sigterm(loop, children):
    """Although it begins in a process that ignores SIGTERM, as the checks process does. SIGKILL would come later."""
    endings, before = [], signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        for _each in range(5):
            children.start(shell("exec sleep 60"), ME, endings.append).stop()
        run_until(loop, lambda: len(endings) == 5)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert endings == ["signal 15"] * 5


def test_the_arguments_are_the_programs_own_and_no_shells(script, tmp_path):
    result = tmp_path / "result"
    script(("/bin/sh", "-c", 'printf "%s\\n" "$@" >"$0"', str(result), "a b", "$HOME", "*")).one()
    assert text(result).splitlines() == ["a b", "$HOME", "*"]


@pytest.fixture
def stdin():
    """Something to be read from, which a terminal would be."""
    kept, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)
    yield
    os.dup2(kept, 0)
    for descriptor in (kept, reader, writer):
        os.close(descriptor)


@pytest.fixture
def deaf():
    """To SIGQUIT, as what a shell starts in the background."""
    kept = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGQUIT, kept)


def test_it_finds_nothing_around_it_but_what_is_the_same_everywhere(script, stdin, deaf, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "of the agent")
    result = tmp_path / "result"
    found = 'env; pwd; umask; readlink /proc/$$/fd/0 /proc/$$/fd/2; grep -E "Sig(Ign|Blk)" /proc/$$/status'
    assert script(shell(f"({found}) >{result}")).one().success
    lines = text(result).splitlines()
    assert "SECRET" not in text(result)
    assert f"PATH={accounts.PATH}" in lines
    assert f"HOME={pwd.getpwnam(ME).pw_dir}" in lines
    assert f"USER={ME}" in lines
    assert {"/", "0022"} <= set(lines)
    assert lines.count("/dev/null") == 2
    masks = [int(line.split()[1], 16) & ~LIBC for line in lines if line.startswith("Sig")]
    assert masks == [0, 0]


def test_it_has_no_descriptors_of_ours(script, tmp_path):
    result = tmp_path / "result"
    kept = [str(number) for number in range(3, 1000) if inheritable(number)]  # pytest's own parent's
    look = f"import os; open({str(result)!r}, 'w').write(' '.join(os.listdir('/proc/self/fd')))"
    with open(os.devnull, encoding="ascii"):
        assert script((sys.executable, "-c", look)).one().success
    found = [number for number in text(result).split() if number not in kept]
    assert found == ["0", "1", "2", "3", "4"]  # the last two are the result, and the folder that is being read


def inheritable(number):
    try:
        return os.get_inheritable(number)
    except OSError:
        return False


@pytest.fixture
def groups():
    """Supplementary groups of root that the user nobody does not have."""
    kept = os.getgroups()
    os.setgroups([0, 4, 6])
    yield
    os.setgroups(kept)


@as_root
def test_it_runs_as_the_user_who_is_named_with_that_users_groups_alone(script, groups, open_folder):
    result = open_folder / "result"
    result.touch()
    result.chmod(0o666)
    line = f"id -un >{result}; id -G >>{result}; grep -E 'Cap(Prm|Eff)' /proc/$$/status >>{result}"
    assert script(shell(line), "nobody").one().success
    nobody = pwd.getpwnam("nobody")
    name, found, *capabilities = text(result).splitlines()
    assert name == "nobody"
    assert sorted(map(int, found.split())) == sorted(os.getgrouplist("nobody", nobody.pw_gid))
    assert [line.split()[1] for line in capabilities] == ["0" * 16] * 2


@pytest.mark.parametrize("of_agent, of_program", [("-900\n", "0"), ("0\n", "0\n"), ("300\n", "300\n")])
def test_a_program_is_not_spared_when_memory_runs_out_as_the_agent_is(tmp_path, of_agent, of_program):
    score = tmp_path / "oom_score_adj"
    score.write_text(of_agent)
    subprocesses._restore_oom_score(str(score))
    assert score.read_text() == of_program


@as_root
def test_it_cannot_become_root_again(script):
    assert not script(("/bin/kill", "-0", "1"), "nobody").one().success


@as_root
def test_a_user_who_does_not_exist_is_a_failure(script):
    outcome = script(("/bin/true",), "no-such-user").one()
    assert outcome[:2] == (False, "cannot run /bin/true: there is no user no-such-user")


def test_only_root_becomes_another_user():
    def may_change():
        before = accounts.may_change()
        accounts.named("nobody").assume()
        return before, accounts.may_change()

    assert in_a_child(may_change) == [os.geteuid() == 0, False]


def test_without_root_a_script_runs_as_the_agents_user(monkeypatch):
    monkeypatch.setattr(accounts, "may_change", lambda: False)
    account = accounts.named("nobody")
    assert (account.name, account.uid, account.groups) == (ME, os.geteuid(), ())


def test_a_program_that_takes_too_long_is_a_failure_when_the_time_is_over(script):
    outcome = script(shell("sleep 600"), timeout=SECOND // 10).one()
    assert outcome[:2] == (False, "no end within 0.1 s")
    assert outcome.duration >= SECOND // 10


def test_what_it_has_started_ends_with_it(loop, children, script, tmp_path):
    """Whether that heeds SIGTERM or not."""
    family = tmp_path / "pids"
    stubborn = tmp_path / "stubborn"
    stubborn.write_text(f"trap '' TERM; echo $$ >>{family}; while :; do sleep 1; done", encoding="ascii")
    line = f"sleep 60 & echo $! >>{family}; sh {stubborn} & echo $$ >>{family}; wait"
    runs = script(shell(line))
    runs.start()
    run_until(loop, lambda: len(pids(family)) == 3)
    assert all(map(alive, pids(family)))
    expire(runs)
    run_until(loop, lambda: not any(map(alive, pids(family))))
    run_until(loop, lambda: not children.running)


def test_one_that_does_not_heed_sigterm_is_killed_a_second_later(loop, children, script, tmp_path):
    mark = tmp_path / "pid"
    runs = script(shell(f"trap '' TERM; echo $$ >{mark}; while :; do sleep 0.01; done"))
    runs.start()
    run_until(loop, lambda: pids(mark))
    before = loop.now()
    expire(runs)
    run_until(loop, lambda: not children.running)
    assert not alive(pids(mark)[0])
    assert loop.now() - before >= subprocesses.KILL_DELAY


def test_one_that_heeds_sigterm_may_tidy_up(loop, children, script, tmp_path):
    mark, ready = tmp_path / "mark", tmp_path / "ready"
    runs = script(shell(f"trap 'echo tidy >{mark}; exit' TERM; echo >{ready}; while :; do sleep 0.01; done"))
    runs.start()
    run_until(loop, ready.exists)
    expire(runs)
    run_until(loop, lambda: not children.running)
    assert text(mark) == "tidy\n"


def test_what_has_left_its_group_delays_nothing(loop, children, script, tmp_path):
    mark = tmp_path / "pid"
    runs = script(shell(f"setsid sh -c 'echo $$ >{mark}; exec sleep 60' & sleep 60"))
    runs.start()
    run_until(loop, lambda: pids(mark))
    try:
        expire(runs)
        run_until(loop, lambda: not children.running)
        assert alive(pids(mark)[0])
    finally:
        os.kill(pids(mark)[0], signal.SIGKILL)


def test_what_it_leaves_running_in_the_background_delays_nothing(script, tmp_path):
    mark = tmp_path / "pid"
    outcome = script(shell(f"sleep 600 & echo $! >{mark}")).one()
    os.kill(pids(mark)[0], signal.SIGKILL)  # it is there
    assert outcome.success


def test_no_second_one_is_started_while_the_first_one_is_dying(loop, script, tmp_path):
    mark = tmp_path / "starts"
    leave = f"sleep 0.1; echo out >>{mark}; exit"
    runs = script(shell(f"trap '{leave}' TERM; echo in >>{mark}; while :; do sleep 0.01; done"))
    runs.start()
    run_until(loop, lambda: text(mark) == "in\n")
    expire(runs)
    runs.start()
    run_until(loop, lambda: text(mark) == "in\nout\nin\n")
    expire(runs)
    assert [outcome.success for outcome in runs.outcomes] == [False, False]


class Asleep:
    """Programs that run for ever."""

    stopping = False

    def start(self, *_command):
        return self

    def stop(self):
        self.stopping = True


def test_for_as_long_as_this_process_was_late_no_program_takes_too_long():
    time, outcomes = Time(), []
    Script(time, Asleep(), ["sleep"], ME, SECOND).start(outcomes.append)
    for _each in range(3):
        time.stand_still(2 * SECOND)
        time.advance(0)
    assert outcomes == []
    time.advance(SECOND)
    assert [outcome.detail for outcome in outcomes] == ["no end within 1 s"]


def test_one_that_never_dies_is_a_failure_each_time(loop, script, monkeypatch):
    """As a program that waits for a lost file server: not even SIGKILL ends it."""
    runs = script(shell("sleep 600"), timeout=SECOND // 10)
    with monkeypatch.context() as patch:
        patch.setattr(subprocesses.Child, "send", lambda self, number: None)
        assert [runs.one().detail for _run in range(3)] == ["no end within 0.1 s"] * 3


def test_one_that_is_given_up_is_ended_and_says_nothing(loop, children, script):
    runs = script(shell("sleep 60"))
    runs.start()
    runs.probe.stop()
    run_until(loop, lambda: not children.running)
    assert runs.outcomes == []


def test_it_dies_with_who_has_started_it(loop, tmp_path):
    """Even if that one is killed, and cannot end anything itself."""
    mark = tmp_path / "pid"
    parent = os.fork()
    if not parent:
        try:
            own = Loop()
            subprocesses.Children(own).start(shell(f"echo $$ >{mark}; exec sleep 60"), ME, print)
            own.run()
        finally:
            os._exit(1)
    try:
        run_until(loop, lambda: pids(mark))
        assert alive(pids(mark)[0])
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
    run_until(loop, lambda: not alive(pids(mark)[0]))


def test_no_zombies_and_no_descriptors_remain(script, no_leak):
    before = children_of_ours()
    for line in ("exit 0", "exit 1", "kill -9 $$"):
        script(shell(line)).one()
    script(("/nowhere",)).one()
    assert children_of_ours() == before


def test_a_process_too_many_is_a_failure(script, monkeypatch, no_leak):
    def fail():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fail)
    outcome = script(("/bin/true",)).one()
    assert outcome[:2] == (False, "cannot run /bin/true: resource temporarily unavailable")
