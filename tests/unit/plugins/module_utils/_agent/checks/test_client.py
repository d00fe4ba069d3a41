# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of it: checks in a process of their own, as the VRRP process sees them."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import client, server
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.client import Checks, Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import (
    FILE,
    HTTP,
    HTTPS,
    INTERFACE,
    PROCESS,
    SCRIPT,
    TCP,
    Check,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import accounts, forked
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from support.agent.loops import SECOND, Time, run_until
from support.agent.programs import ME, alive, pids, shell, text
from support.agent.servers import Server, answering

AGAIN = SECOND // 20  # the interval of checks whose second run is wanted


class Vrrp:
    """Replaces the VRRP process."""

    def __init__(self, loop):
        self.loop, self.results, self.messages, self.runs = loop, [], [], []
        self.checks = Checks.start(loop, self.results.append, self.messages.append, self.runs.append)

    def apply(self, *checks):
        self.checks.apply(checks, ME)

    def hears(self, name, **fields):
        """Wait for a result of a check; return the newest one."""

        def found():
            return [
                result for result in self.results if result.name == name and fields.items() <= result._asdict().items()
            ]

        run_until(self.loop, found)
        return found()[-1]

    def hears_nothing(self, duration=SECOND // 5):
        before, late = len(self.results), self.loop.now() + duration
        run_until(self.loop, lambda: self.loop.now() > late)
        assert self.results[before:] == []


@pytest.fixture
def vrrp(loop):
    vrrp = Vrrp(loop)
    yield vrrp
    pid = vrrp.checks.pid
    vrrp.checks.stop()
    assert not pid or not os.path.exists(f"/proc/{pid}")


def track(tmp_path, number=0):
    path = tmp_path / "track"
    path.write_text(str(number), encoding="ascii")
    return path, Check("track", FILE, file=str(path))


def script(line, name="script", **fields):
    return Check(name, SCRIPT, **{"interval": AGAIN, "command": shell(line), **fields})


def test_every_kind_of_check_answers_at_once(vrrp, tmp_path):
    with Server(answering(b"HTTP/1.1 503 No\r\n\r\n")) as server, socket.create_server(("127.0.0.1", 0)) as plain:
        vrrp.apply(
            Check("tcp", TCP, address="127.0.0.1", port=plain.getsockname()[1]),
            Check("http", HTTP, address="127.0.0.1", port=server.port),
            Check("process", PROCESS, process="no-such-process"),
            script("exit 2"),
            track(tmp_path, 7)[1],
            Check("eth0", INTERFACE, interface="eth0"),
        )
        run_until(vrrp.loop, lambda: len(vrrp.results) == 5)
    assert sorted(vrrp.results) == [
        Result("http", False, 0, "status 503"),
        Result("process", False, 0, "no process no-such-process"),
        Result("script", False, 0, "exit code 2"),
        Result("tcp", True, 0, "connected"),
        Result("track", False, 7, ""),
    ]


def test_a_check_that_this_python_cannot_make_is_down_and_the_others_go_on(loop, tmp_path, monkeypatch):
    """Some have no ssl."""
    monkeypatch.setitem(sys.modules, "ssl", None)
    vrrp = Vrrp(loop)
    try:
        https = Check("https", HTTPS, address="127.0.0.1", port=443)
        vrrp.apply(https, track(tmp_path, 7)[1])
        assert vrrp.hears("https", up=False).detail.startswith("cannot be checked: ")
        assert vrrp.runs == []
        vrrp.apply(https._replace(every=True), track(tmp_path, 7)[1])
        run_until(loop, lambda: [run.detail[:17] for run in vrrp.runs] == ["cannot be checked"])
        assert vrrp.hears("track", value=7)
        vrrp.apply(script("exit 0"))
        assert vrrp.hears("script", up=True)
    finally:
        vrrp.checks.stop()


def test_each_change_is_reported_once(vrrp, tmp_path):
    mark = tmp_path / "mark"
    vrrp.apply(script(f"test -e {mark}"))
    vrrp.hears("script", up=False)
    vrrp.hears_nothing()
    mark.touch()
    vrrp.hears("script", up=True)
    vrrp.hears_nothing()
    mark.unlink()
    run_until(vrrp.loop, lambda: len(vrrp.results) == 3)
    assert vrrp.results[-1] == Result("script", False, 0, "exit code 1")


def test_a_script_without_a_user_runs_as_the_script_user(vrrp, tmp_path, monkeypatch):
    vrrp.checks.apply([script("true", "theirs"), script("true", "own", user=ME)], "no-such-user")
    vrrp.hears("own", up=True)
    if accounts.may_change():
        assert vrrp.hears("theirs", up=False).detail == "cannot run /bin/sh: there is no user no-such-user"


def test_a_removed_check_is_neither_run_nor_reported(vrrp, tmp_path):
    mark = tmp_path / "pid"
    path, file = track(tmp_path)
    vrrp.apply(file, script(f"echo $$ >{mark}; exec sleep 60", timeout=60 * SECOND))
    vrrp.hears("track")
    run_until(vrrp.loop, lambda: pids(mark))
    vrrp.apply()
    run_until(vrrp.loop, lambda: not alive(pids(mark)[0]))
    path.write_text("1", encoding="ascii")
    vrrp.hears_nothing()


def test_what_has_not_changed_goes_on_undisturbed(vrrp, tmp_path):
    runs = tmp_path / "runs"
    steady = script(f"echo run >>{runs}; exit 1", interval=60 * SECOND)
    vrrp.apply(steady)
    vrrp.hears("script", up=False)
    path, file = track(tmp_path)
    vrrp.apply(file, steady)
    vrrp.hears("track", value=0)
    vrrp.hears_nothing()
    assert text(runs) == "run\n"


def test_what_has_changed_begins_anew(vrrp):
    vrrp.apply(script("exit 1", fall=3))
    vrrp.hears("script", up=False)
    vrrp.apply(script("exit 0", rise=3))
    assert vrrp.hears("script", up=True).detail == "exit code 0"
    assert len(vrrp.results) == 2


def test_the_late_result_of_what_has_changed_is_not_taken_for_the_new_ones(vrrp, tmp_path):
    path, file = track(tmp_path, 1)
    other = tmp_path / "other"
    other.write_text("2", encoding="ascii")
    vrrp.apply(file)
    vrrp.hears("track", value=1)
    path.write_text("9", encoding="ascii")
    connection = vrrp.checks._process.connection
    while not readable(connection):
        pass
    vrrp.apply(file._replace(file=str(other)))
    vrrp.hears("track", value=2)
    assert [result.value for result in vrrp.results] == [1, 2]


def readable(connection):
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def test_when_the_process_dies_it_is_started_again_with_all_checks(vrrp, tmp_path):
    path, file = track(tmp_path)
    vrrp.apply(file)
    vrrp.hears("track", value=0)
    before = vrrp.checks.pid
    os.kill(before, signal.SIGKILL)
    run_until(vrrp.loop, lambda: vrrp.checks.pid not in (0, before) and vrrp.messages)
    assert vrrp.messages == ["The checks process has ended (signal 9) and is started again."]
    vrrp.hears_nothing()
    assert len(vrrp.results) == 1  # it is as it was
    path.write_text("3", encoding="ascii")
    vrrp.hears("track", value=3)
    assert not os.path.exists(f"/proc/{before}")


def test_a_result_that_differs_from_that_of_a_former_process_is_reported(vrrp, tmp_path):
    path, check = track(tmp_path, 3)
    once = Check("once", SCRIPT, interval=AGAIN, fall=1000, command=("/bin/false",), every=True)
    known = [Result("track", False, 3, "3"), Result("once", True, 0, ""), Result("gone", True, 0, "")]
    vrrp.checks.apply((check, once), ME, known)
    run_until(vrrp.loop, lambda: len(vrrp.runs) > 2)
    vrrp.hears_nothing()
    path.write_text("4", encoding="ascii")
    assert vrrp.hears("track").value == 4
    os.kill(vrrp.checks.pid, signal.SIGKILL)
    runs = len(vrrp.runs)
    run_until(vrrp.loop, lambda: len(vrrp.runs) > runs + 2)
    assert [result.name for result in vrrp.results] == ["track"], "one failure of a thousand is none"


def test_a_change_while_there_was_no_process_is_reported(vrrp, tmp_path):
    path, file = track(tmp_path)
    vrrp.apply(file)
    vrrp.hears("track", value=0)
    os.kill(vrrp.checks.pid, signal.SIGSTOP)
    path.write_text("1", encoding="ascii")
    os.kill(vrrp.checks.pid, signal.SIGKILL)
    vrrp.hears("track", value=1)


class ChannelOfMortal:
    """Replaces the channel to a process that reports every second, until it dies."""

    def __init__(self, loop, _end, on_message, on_end, lifetime):
        self._loop, self._on_message, self._open = loop, on_message, True
        loop.after(lifetime, on_end)
        self._report()

    def _report(self):
        if self._open:
            self._on_message([server.ALIVE])
            self._loop.after(SECOND, self._report)

    def close(self):
        self._open = False


def test_a_process_that_dies_again_and_again_is_started_less_and_less_often(monkeypatch):
    time, starts, lives = Time(), [], [0]

    class Mortal:
        pid, connection = 1, None

        def __init__(self, _name, _serve):
            starts.append(time.now())

        def when_ended(self, _loop, call):
            call("exit code 1")

        def kill(self):
            pass

    monkeypatch.setattr(client, "Forked", Mortal)
    monkeypatch.setattr(client, "Channel", lambda *arguments: ChannelOfMortal(*arguments, lifetime=lives[0]))
    Checks.start(time, print, lambda text: None)
    time.advance(5 * SECOND)
    pauses = [after - before for before, after in zip(starts, starts[1:])]
    assert pauses[:8] == [0, 50_000, 100_000, 200_000, 400_000, 800_000, SECOND, SECOND]
    lives[0] = 20 * SECOND
    time.advance(70 * SECOND)
    assert starts[-1] - starts[-2] == 20 * SECOND


def test_a_process_that_hangs_is_replaced_and_a_quiet_one_is_not(vrrp, tmp_path):
    path, check = track(tmp_path)
    vrrp.apply(check)
    vrrp.hears("track", value=0)
    hung = vrrp.checks.pid
    os.kill(hung, signal.SIGSTOP)
    path.write_text("1", encoding="ascii")
    vrrp.hears("track", value=1)
    quiet = vrrp.checks.pid
    assert vrrp.messages == ["The checks process has not reported for 3 s and is started again."]
    vrrp.hears_nothing(4 * SECOND)
    assert vrrp.checks.pid == quiet != hung and not os.path.exists(f"/proc/{hung}")
    assert len(vrrp.messages) == 1


def test_a_process_that_cannot_be_started_is_tried_again(loop, monkeypatch):
    messages, fork = [], os.fork

    def fail():
        monkeypatch.setattr(os, "fork", fork)
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fail)
    agent = Checks.start(loop, print, messages.append)
    run_until(loop, lambda: agent.pid)
    agent.stop()
    assert messages == ["The checks process cannot be started: resource temporarily unavailable."]


def test_a_process_that_takes_nothing_is_not_waited_for(vrrp):
    os.kill(vrrp.checks.pid, signal.SIGSTOP)
    check = Check("server", TCP, address="127.0.0.1", port=9, interval=60 * SECOND)
    before = vrrp.loop.now()
    for number in range(1000):
        vrrp.apply(check._replace(fall=number))
    vrrp.apply(check._replace(type=PROCESS, process="no-such-process"))
    assert vrrp.loop.now() - before < 2 * SECOND
    os.kill(vrrp.checks.pid, signal.SIGCONT)
    vrrp.hears("server", detail="no process no-such-process")
    assert len(vrrp.results) == 1


def test_a_notify_program_is_run_and_its_failure_is_logged(vrrp, tmp_path):
    vrrp.checks.run(shell(f"echo told >{tmp_path}/news; exit 4"), ME)
    run_until(vrrp.loop, lambda: vrrp.messages)
    assert text(tmp_path / "news") == "told\n"
    assert vrrp.messages[0].endswith("exit code 4.")


def test_the_last_notify_programs_are_run_before_the_end(vrrp, tmp_path):
    """And those that a process which is just busy has not even heard of, whatever it has said itself meanwhile."""
    vrrp.apply(track(tmp_path)[1])
    while not readable(vrrp.checks._process.connection):
        pass
    os.kill(vrrp.checks.pid, signal.SIGSTOP)
    for word in ("one", "two"):
        vrrp.checks.run(shell(f"sleep 0.1; echo {word} >>{tmp_path}/news"), ME)
    awakening = threading.Timer(0.1, os.kill, (vrrp.checks.pid, signal.SIGCONT))
    awakening.start()
    vrrp.checks.stop()
    awakening.join()
    assert text(tmp_path / "news").split() == ["one", "two"]


def test_while_the_last_notify_programs_run_nothing_is_checked_any_more(vrrp, tmp_path):
    """The program counts from the moment when the check that was under way has been ended."""
    runs, mark, first, second = (tmp_path / name for name in ("runs", "mark", "first", "second"))
    endless = script(f"echo $$ >{mark}; exec sleep 60", "endless", timeout=60 * SECOND)
    vrrp.apply(script(f"echo run >>{runs}"), endless)
    run_until(vrrp.loop, lambda: pids(mark))
    vrrp.hears("script")
    ended = f"while kill -0 {pids(mark)[0]}; do sleep 0.01; done"
    vrrp.checks.run(shell(f"{ended}; wc -l <{runs} >{first}; sleep 0.3; wc -l <{runs} >{second}"), ME)
    vrrp.checks.stop()
    assert text(first) == text(second) != ""


def test_after_the_end_nothing_runs_and_nothing_is_started_again(loop, tmp_path):
    vrrp = Vrrp(loop)
    mark = tmp_path / "pid"
    vrrp.apply(script(f"trap '' TERM; echo $$ >{mark}; while :; do sleep 0.01; done", timeout=60 * SECOND))
    run_until(loop, lambda: pids(mark))
    os.kill(vrrp.checks.pid, signal.SIGKILL)  # it would be started again soon
    vrrp.checks.stop()
    run_until(loop, lambda: not alive(pids(mark)[0]))
    assert vrrp.checks.pid == 0
    vrrp.apply()
    vrrp.checks.run(("/bin/true",), ME)
    vrrp.checks.stop()
    late = loop.now() + SECOND // 10
    run_until(loop, lambda: loop.now() > late)
    assert vrrp.checks.pid == 0


def test_it_ends_with_its_parent_and_so_do_its_scripts(loop, tmp_path):
    """Whatever the parent died of."""
    mark = tmp_path / "pids"
    parent = os.fork()
    if not parent:
        try:
            own = Loop()
            agent = Checks.start(own, print, print)
            mark.write_text(f"{agent.pid}\n", encoding="ascii")
            stubborn = f"trap '' TERM; sleep 60 & echo $! >>{mark}; echo $$ >>{mark}; while :; do sleep 0.01; done"
            agent.apply([script(stubborn, timeout=60 * SECOND)], ME)
            own.run()
        finally:
            os._exit(1)
    try:
        run_until(loop, lambda: len(pids(mark)) == 3)
        assert all(map(alive, pids(mark)))
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
    run_until(loop, lambda: not any(map(alive, pids(mark))))


def test_after_the_end_one_that_was_to_be_started_again_is_not(loop):
    vrrp = Vrrp(loop)
    first = vrrp.checks.pid
    os.kill(first, signal.SIGKILL)
    run_until(loop, lambda: vrrp.checks.pid not in (0, first))  # at once, and the next one will take longer
    os.kill(vrrp.checks.pid, signal.SIGKILL)
    run_until(loop, lambda: not vrrp.checks.pid)
    vrrp.checks.stop()
    late = loop.now() + 4 * forked.MIN_DELAY
    run_until(loop, lambda: loop.now() > late)
    assert vrrp.checks.pid == 0


def test_that_programs_run_as_another_user_than_was_named_is_logged_once(loop, monkeypatch):
    monkeypatch.setattr(accounts, "may_change", lambda: False)
    vrrp = Vrrp(loop)
    try:
        vrrp.apply(script("true", "one", user="nobody"), script("true", "two", user="nobody"))
        vrrp.hears("two")
    finally:
        vrrp.checks.stop()
    assert [message for message in vrrp.messages if "nobody" in message] == [
        f"Programs run as {ME} and not as nobody: only root can become another user."
    ]


def test_the_process_has_its_name(vrrp):
    def name():
        with open(f"/proc/{vrrp.checks.pid}/comm", encoding="ascii") as comm:
            return comm.read().strip()

    run_until(vrrp.loop, lambda: name() == "vrrp-checks")
