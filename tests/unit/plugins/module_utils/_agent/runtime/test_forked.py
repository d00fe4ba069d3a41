# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process of its own that keeps nothing of its parent."""

from __future__ import annotations

import json
import os
import signal
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.forked import Forked
from support.marks import as_root
from support.waiting import LIMIT_S


def answer(what):
    """Return a function for the other process that sends what another one returns."""

    def serve(end):
        end.send(json.dumps(what()).encode())
        end.recv(1)

    return serve


@pytest.fixture
def ask():
    started = []

    def ask(what):
        started.append(Forked("test-forked", answer(what)))
        connection = started[-1].connection
        connection.settimeout(LIMIT_S)
        return json.loads(connection.recv(65536))

    yield ask
    for process in started:
        process.connection.close()
        process.end(5)
        assert not os.path.exists(f"/proc/{process.pid}")


def status(word):
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(line.split()[1] for line in lines if line.startswith(word))


def test_it_has_no_descriptors_but_stderr_and_its_connection(ask):
    with socket.create_server(("127.0.0.1", 0)) as ours, open(os.devnull, encoding="ascii"):
        os.set_inheritable(ours.fileno(), True)
        found = ask(lambda: {at: link(at) for at in os.listdir("/proc/self/fd") if link(at)})
    assert {at: path for at, path in found.items() if at != "2"} == {
        "0": "/dev/null",
        "1": "/dev/null",
        **{at: path for at, path in found.items() if path.startswith("socket:") and at != "2"},
    }
    assert sum(path.startswith("socket:") for at, path in found.items() if at != "2") == 1


def link(at):
    try:
        return os.readlink(f"/proc/self/fd/{at}")
    except OSError:
        return ""


def test_it_has_a_name_and_a_session_of_its_own(ask):
    name, session, pid = ask(lambda: (status("Name:"), os.getsid(0), os.getpid()))
    assert name == "test-forked"
    assert session == pid != os.getpid()


def test_it_has_none_of_its_parents_signal_handlers(ask):
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        caught, blocked = ask(lambda: (status("SigCgt:"), status("SigBlk:")))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])
        signal.signal(signal.SIGUSR1, before)
    assert int(caught, 16) & 1 << signal.SIGUSR1 - 1 == 0
    assert int(blocked, 16) == 0


def echo(end):
    data = end.recv(100)
    while data:
        end.send(data)
        data = end.recv(100)


def test_a_service_manager_that_signals_all_processes_does_not_end_it():
    process = Forked("test-forked", echo)
    process.connection.settimeout(LIMIT_S)
    process.connection.send(b"ready?")
    assert process.connection.recv(100) == b"ready?"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(process.pid, number)
    process.connection.send(b"still?")
    assert process.connection.recv(100) == b"still?"
    process.connection.close()
    process.end(5)


@as_root
def test_it_is_not_real_time_even_if_its_parent_is(ask):
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pytest.skip("no real-time here")
    try:
        assert ask(lambda: os.sched_getscheduler(0)) == os.SCHED_OTHER
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.parametrize("call", ["setpriority", "sched_setscheduler"])
def test_it_serves_in_a_sandbox_that_refuses_another_priority(ask, monkeypatch, call):
    def refuse(*_arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, call, refuse)
    assert ask(lambda: "served") == "served"


def wait(process):
    """Return how it ended, the connection tells when."""
    process.connection.settimeout(LIMIT_S)
    process.connection.recv(1)
    ending = process.ending()
    while ending is None:
        ending = process.ending()
    process.connection.close()
    return ending


def test_how_it_ended_is_reported():
    assert wait(Forked("test-forked", lambda end: None)) == "exit code 0"
    assert wait(Forked("test-forked", lambda end: os._exit(3))) == "exit code 3"
    assert wait(Forked("test-forked", lambda end: os.kill(os.getpid(), signal.SIGKILL))) == "signal 9"


def test_a_fault_ends_it_with_its_story_on_stderr_and_never_returns_to_the_caller(capfd):
    def fail(_end):
        raise RuntimeError("something unforeseen")

    assert wait(Forked("test-forked", fail)) == "exit code 1"
    assert "RuntimeError: something unforeseen" in capfd.readouterr().err


def test_one_that_does_not_end_is_killed():
    process = Forked("test-forked", lambda end: signal.pause())
    process.connection.close()
    process.end(0.1)
    assert not os.path.exists(f"/proc/{process.pid}")
