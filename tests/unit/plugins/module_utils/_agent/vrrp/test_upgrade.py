# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a new version comes beside the old one, with real processes; what they then do is in test_lifecycle."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket, upgrade_state
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop, microseconds
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import upgrade
from support.agent.loops import run_until
from support.paths import MODULE_UTILS
from support.waiting import LIMIT_S

BEGIN = """
import json, os, signal, sys, time
from _agent.vrrp.upgrade import OldProcess
before = OldProcess.of(os.environ)
"""
# Writes what it has inherited and from which process, and runs until it is killed.
GOOD = """
known = before.request_handover()
with open(sys.argv[1] + ".new", "w") as file:
    opened = [os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")]
    json.dump({"pid": os.getpid(), "parent": os.getppid(), "group": os.getpgid(0), "environ": dict(os.environ),
               "known": known, "text": before.text, "door": before.status_path, "opened": opened,
               "socket": before.status_socket.getsockname()}, file)
before.commit()
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""


class Old:
    """The old version; the new one is whatever program a test starts."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        self.loop = Loop()
        self.said = folder / "said"
        self.door = status_socket.listen(str(folder / "sock"))
        self.ready, self.ended, self.pids = [], [], []

    def starts(self, program, **environ):
        command = [sys.executable, "-c", program, str(self.said)]
        self.monkeypatch.setattr(upgrade.upgrade_state, "command_line", lambda: command)
        environ = {"PYTHONPATH": str(MODULE_UTILS), **environ}
        left = {"config": "{}", "door": [str(self.folder / "sock"), self.door.fileno()]}
        return upgrade.NewProcess(self.loop, environ, left, self._ready, self.ended.append)

    def _ready(self):
        self.ready.append(True)

    def until_ready(self, new):
        run_until(self.loop, lambda: bool(self.ready or self.ended))
        self.pids.append(new.pid)
        assert self.ready and not self.ended
        return new

    def close(self):
        for pid in filter(None, self.pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.door.close()
        self.loop.close()


@pytest.fixture
def old(tmp_path, monkeypatch):
    monkeypatch.setattr(upgrade, "COMMIT_TIMEOUT", LIMIT_S)
    made = Old(tmp_path, monkeypatch)
    yield made
    made.close()


def lives(pid):
    """Whether it does, and is not only waiting for its parent to hear of its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def opened():
    """What this process has open. What an earlier test has left is closed at any time."""
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return {os.readlink(link) for link in links if os.path.islink(link)}


def test_the_new_process_gets_the_state_and_resumes(old):
    before = opened()
    new = old.until_ready(old.starts(BEGIN + GOOD, WATCHDOG_PID="1", WATCHDOG_USEC="5", ONPREM_LB_HANDOVER="99"))
    known = {"daemon": ["\u00fc" * 300_000]}  # of many instances
    assert new.commit(known)
    run_until(old.loop, old.said.exists)
    said = json.loads(old.said.read_text())
    assert (said["known"], said["text"], said["door"]) == (known, "{}", str(old.folder / "sock"))
    assert (said["pid"], said["socket"]) == (new.pid, str(old.folder / "sock"))
    assert lives(new.pid) and old.ended == [] and old.ready == [True]
    # The new process feeds the watchdog, and its own children inherit nothing of the handover.
    assert said["environ"]["WATCHDOG_USEC"] == "5"
    assert not {"WATCHDOG_PID", upgrade_state.VARIABLE} & set(said["environ"])
    assert not [name for name in said["opened"] if "memfd" in name]
    assert not opened() - before


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as pids:
        return {int(pid) for pid in pids.read().split()}


def test_the_new_process_is_no_child_of_the_old_one_so_that_systemd_notices_its_end(old):
    others = children()
    new = old.until_ready(old.starts(BEGIN + GOOD))
    assert new.commit({})
    run_until(old.loop, old.said.exists)
    said = json.loads(old.said.read_text())
    assert said["parent"] != os.getpid() and said["group"] == os.getpgid(0)
    assert new.pid not in children()
    # Who has started it is reaped.
    run_until(old.loop, lambda: not children() - others)


@pytest.mark.parametrize("program", ["", "raise SystemExit(1)", BEGIN, BEGIN + "os.abort()"])
def test_one_that_ends_before_it_is_ready_is_said(old, program):
    old.starts(program)
    run_until(old.loop, lambda: bool(old.ended))
    assert old.ended == ["it has ended, and the log says why"] and not old.ready


def test_one_that_is_not_ready_in_time_is_said_and_ended(old, monkeypatch):
    monkeypatch.setattr(upgrade, "READY_TIMEOUT", 600_000_000)
    new = old.starts(BEGIN + "time.sleep(600)")
    run_until(old.loop, lambda: new.pid)
    monkeypatch.setattr(old.loop, "now", lambda: microseconds() + upgrade.READY_TIMEOUT)
    run_until(old.loop, lambda: bool(old.ended))
    assert old.ended == ["it is not ready in time"] and not old.ready
    run_until(old.loop, lambda: not lives(new.pid))


def test_one_that_hangs_before_it_has_sent_its_process_id_is_ended_too(old, monkeypatch):
    monkeypatch.setattr(upgrade, "READY_TIMEOUT", 300_000)
    others = children()
    new = old.starts("import time; time.sleep(600)")
    (hanging,) = children() - others
    old.pids.append(hanging)
    run_until(old.loop, lambda: bool(old.ended))
    assert old.ended == ["it is not ready in time"] and not new.pid
    run_until(old.loop, lambda: hanging not in children())


def test_a_process_that_was_reaped_is_not_killed(old, monkeypatch):
    """Its id may be another process's by now."""
    others = children()
    new = old.until_ready(old.starts(BEGIN + GOOD))
    run_until(old.loop, lambda: not children() - others)
    killed = []
    monkeypatch.setattr(upgrade.os, "kill", lambda pid, _number: killed.append(pid))
    new.close()
    assert killed == [new.pid]


def test_a_program_that_is_not_there_is_an_error_and_leaves_nothing_open(old, monkeypatch):
    before = opened()
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(FileNotFoundError):
        old.starts("")
    assert not opened() - before
    assert not os.get_inheritable(old.door.fileno())


@pytest.mark.parametrize("then", ["os.abort()", "time.sleep(600)", "before._send('what?'); time.sleep(600)"])
def test_a_new_process_that_does_not_commit_is_killed(old, monkeypatch, then):
    monkeypatch.setattr(upgrade, "COMMIT_TIMEOUT", 0.3)
    new = old.until_ready(old.starts(f"{BEGIN}before.request_handover()\n{then}"))
    assert not new.commit({"since": 1})
    run_until(old.loop, lambda: not lives(new.pid))


def test_one_that_is_given_up_ends(old):
    new = old.until_ready(old.starts(BEGIN + GOOD))
    new.close()
    run_until(old.loop, lambda: not lives(new.pid))
    assert not old.said.exists() and old.ended == []


def test_a_new_process_whose_upgrade_is_cancelled_aborts(old):
    """The new process has not connected yet, and finds that the old one has closed the connection."""
    program = f"{BEGIN.replace('before =', 'time.sleep(0.3); before =')}open(sys.argv[1], 'w')"
    old.starts(program).close()
    begun = old.loop.now()
    run_until(old.loop, lambda: old.loop.now() > begun + 600_000)
    assert not old.said.exists()


def test_a_process_that_no_old_one_started_has_no_old_process():
    assert upgrade.OldProcess.of({"HOME": "/"}) is None
