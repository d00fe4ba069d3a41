# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a checks process: replaced when it dies or hangs, ended with its parent, and quick to let go of it."""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import threading
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import checks_process, server
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Callbacks, ChecksProcess
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.client import Checks
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import TCP, Check
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import accounts, forked, watchdog
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.watchdog import Watchdog
from support.agent.checks import Vrrp, readable, script, track
from support.agent.loops import LIMIT, SECOND, Time, run_until
from support.agent.programs import ME, alive, pids, shell, status, text
from support.marks import as_root


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

    monkeypatch.setattr(checks_process, "Forked", Mortal)
    monkeypatch.setattr(checks_process, "Channel", lambda *arguments: ChannelOfMortal(*arguments, lifetime=lives[0]))
    Checks.start(time, print, lambda text: None)
    time.advance(5 * SECOND)
    pauses = [after - before for before, after in zip(starts, starts[1:])]
    assert pauses[:8] == [0, 50_000, 100_000, 200_000, 400_000, 800_000, SECOND, SECOND]
    lives[0] = 20 * SECOND
    time.advance(70 * SECOND)
    assert starts[-1] - starts[-2] == 20 * SECOND


def test_a_process_that_hangs_is_replaced_and_a_quiet_one_is_not(vrrp, tmp_path, monkeypatch):
    path, check = track(tmp_path)
    monkeypatch.setattr(checks_process, "MAX_SILENCE", watchdog.MAX_SILENCE)
    vrrp.apply(check)
    vrrp.hears("track", value=0)
    monkeypatch.setattr(checks_process, "MAX_SILENCE", LIMIT)
    hung = vrrp.checks.pid
    os.kill(hung, signal.SIGSTOP)
    path.write_text("1", encoding="ascii")
    vrrp.hears("track", value=1)
    quiet = vrrp.checks.pid
    assert vrrp.messages == ["The process vrrp-checks has not reported for 3 s and is started again."]
    fed, feed, heard = [], Watchdog.feed, len(vrrp.results)
    monkeypatch.setattr(Watchdog, "feed", lambda self, limit: (fed.append(limit), feed(self, limit)))
    run_until(vrrp.loop, lambda: len(fed) == 2)  # it has nothing to report, and says so
    assert len(vrrp.results) == heard
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
    assert messages == ["The process vrrp-checks cannot be started: resource temporarily unavailable."]


def test_a_process_that_takes_nothing_is_not_waited_for(vrrp, tmp_path):
    os.kill(vrrp.checks.pid, signal.SIGSTOP)
    _path, check = track(tmp_path)
    for number in range(50):  # not more: each one that ends closes an inotify, for which the kernel takes milliseconds
        vrrp.apply(check._replace(fall=number + 2, host=10_000 * "h"))
    vrrp.apply(check)
    assert vrrp.checks._local._channel.behind
    os.kill(vrrp.checks.pid, signal.SIGCONT)
    vrrp.hears("track", value=0)
    assert len(vrrp.results) == 1


@pytest.fixture
def played(monkeypatch):
    """A daemon's side of a checks process that the test plays: what is reported, and what reads some messages."""
    (ours, theirs), time, results = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET), Time(), []

    class Played:
        pid, connection = 1, ours

        def __init__(self, _name, _serve):
            pass

    def read(*messages, left=0):
        for message in messages:
            theirs.send(json.dumps(message).encode())
        for _each in messages[left:]:
            time.is_ready(ours.fileno())

    monkeypatch.setattr(checks_process, "Forked", Played)
    checks = ChecksProcess(time, Callbacks(results.append, print, print), "checks", lambda _end: None)
    checks.apply([Check("web", TCP)], ME)
    checks.start()
    yield results, read
    theirs.close()
    ours.close()


def result(up, known=True):
    return [server.RESULT, 1, up, 0, "", known]


def test_of_the_results_that_wait_for_a_daemon_that_stood_still_the_newest_counts(played):
    results, read = played
    read(result(True))
    read(result(False), result(True))
    assert [each.up for each in results] == [True]
    read(result(True), result(False), [server.ALIVE])
    assert [each.up for each in results] == [True, False]


def test_a_result_that_says_nothing_of_the_target_is_another_one(played):
    results, read = played
    for known in (True, True, False, False, True):
        read(result(True, known))
    assert [each.known for each in results] == [True, False, True]


def test_a_result_does_not_wait_for_ever_behind_other_messages(played):
    results, read = played
    read(result(True), *[[server.ALIVE]] * checks_process.MAX_WAITING, left=1)
    assert [each.up for each in results] == [True]


def test_a_notify_program_is_run_and_its_failure_is_logged(vrrp, tmp_path):
    vrrp.checks.run(shell(f"echo told >{tmp_path}/news; exit 4"), ME)
    run_until(vrrp.loop, lambda: vrrp.messages)
    assert text(tmp_path / "news") == "told\n"
    assert vrrp.messages[0].endswith("exit code 4.")


def test_the_last_notify_programs_are_run_before_the_end(vrrp, tmp_path):
    """And those that a process which is just busy has not even heard of, whatever it has said itself meanwhile."""
    vrrp.apply(track(tmp_path)[1])
    while not readable(vrrp.checks._local._process.connection):
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


@pytest.mark.parametrize("lost", ["unread", "under way", "while there is none"])
def test_a_notify_program_that_a_lost_process_has_not_run_runs_in_the_next_one(vrrp, tmp_path, lost):
    news, began, first = tmp_path / "news", tmp_path / "began", vrrp.checks.pid
    once = f"test -e {began} || {{ echo $$ >{began}; exec sleep 60; }}" if lost == "under way" else "true"
    vrrp.checks.run(shell(f"echo before >>{news}"), ME)
    run_until(vrrp.loop, lambda: text(news) and not vrrp.checks._local._calls)
    if lost == "unread":
        os.kill(first, signal.SIGSTOP)
    if lost == "while there is none":
        vrrp.checks._local._process_hangs()
        assert vrrp.checks.pid == 0
    for state in ("MASTER", "BACKUP"):
        vrrp.checks.run(shell(f"{once}; echo {state} >>{news}"), ME)
    if lost == "under way":
        run_until(vrrp.loop, lambda: pids(began))
    if lost != "while there is none":
        os.kill(first, signal.SIGKILL)
    run_until(vrrp.loop, lambda: text(news).endswith("BACKUP\n"))
    assert text(news).split() == ["before", "MASTER", "BACKUP"]


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


def test_the_look_up_of_a_user_delays_no_other_check_and_is_no_silence(loop, monkeypatch, tmp_path):
    """A directory that does not answer: the look-up takes until the time limit of the script."""
    ask = pwd.getpwnam
    monkeypatch.setattr(accounts, "may_change", lambda: True)
    monkeypatch.setattr(pwd, "getpwnam", lambda name: time_out() if name == "remote" else ask(name))
    vrrp = Vrrp(loop)
    try:
        first = vrrp.checks.pid
        path, check = track(tmp_path)
        vrrp.apply(script("true", user="remote", timeout=4 * SECOND, interval=4 * SECOND), check)
        vrrp.hears("track", value=0)
        path.write_text("1", encoding="ascii")
        vrrp.hears("track", value=1)
        assert vrrp.hears("script", up=False).detail == "no end within 4 s"
        assert (vrrp.checks.pid, vrrp.messages) == (first, [])
    finally:
        vrrp.checks.stop()


def time_out():
    signal.pause()


def test_checks_over_the_network_have_a_process_of_their_own(vrrp, tmp_path):
    assert vrrp.checks.network_pid == 0, "there are none yet"
    with socket.create_server(("127.0.0.1", 0)) as plain:
        tcp = Check("tcp", TCP, address="127.0.0.1", port=plain.getsockname()[1], interval=SECOND // 10)
        vrrp.apply(tcp, track(tmp_path)[1])
        vrrp.hears("tcp", up=True)
        vrrp.hears("track", value=0)
        assert vrrp.checks.network_pid not in (0, vrrp.checks.pid)
    assert Path(f"/proc/{vrrp.checks.network_pid}/comm").read_text() == "vrrp-net-checks\n"
    vrrp.hears("tcp", up=False)
    os.kill(vrrp.checks.network_pid, signal.SIGKILL)
    run_until(vrrp.loop, lambda: vrrp.messages and vrrp.checks.network_pid)
    with socket.create_server(("127.0.0.1", tcp.port)):
        vrrp.hears("tcp", up=True)


@as_root
def test_the_process_that_strangers_answer_has_no_rights(vrrp):
    vrrp.apply(Check("tcp", TCP, address="127.0.0.1", port=9))
    vrrp.hears("tcp", up=False)
    found = status(vrrp.checks.network_pid)
    assert found["Uid"] == found["Gid"] == ["65534"] * 4
    assert {int(found[what][0], 16) for what in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert (found["Groups"], found["NoNewPrivs"]) == ([], ["1"])
