# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No other playbook begins a task while a drill measures."""

from __future__ import annotations

import fcntl
import threading

import pytest
from support.callback import one_drill
from support.waiting import until


@pytest.fixture
def lock(tmp_path, monkeypatch):
    path = tmp_path / "lab" / "drill.lock"
    monkeypatch.setattr(one_drill, "LOCK", path)
    monkeypatch.setattr(one_drill.wait_for_drills, "__defaults__", (path,))
    monkeypatch.delenv("ONE_DRILL", raising=False)
    return path


def playbook():
    callback = one_drill.CallbackModule()
    callback.v2_playbook_on_start(None)
    return callback


def is_free(lock):
    with open(lock, "ab") as mine:
        try:
            fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_drill_has_the_lock_until_its_playbook_ends(lock, monkeypatch):
    monkeypatch.setenv("ONE_DRILL", "1")
    drill = playbook()
    drill.v2_playbook_on_task_start(None, False)
    assert not is_free(lock)
    del drill
    assert is_free(lock)


@pytest.mark.parametrize(
    "event, arguments",
    [("v2_playbook_on_task_start", (None, False)), ("v2_playbook_on_handler_task_start", (None,))],
)
def test_a_task_of_another_playbook_begins_when_the_drill_has_ended(lock, event, arguments):
    other = playbook()
    assert is_free(lock)
    with open(lock, "ab") as drill:
        fcntl.flock(drill, fcntl.LOCK_EX)
        task = threading.Thread(target=getattr(other, event), args=arguments)
        task.start()
        task.join(0.2)
        assert task.is_alive()
    until(lambda: not task.is_alive(), "it does not begin")
    assert is_free(lock)
