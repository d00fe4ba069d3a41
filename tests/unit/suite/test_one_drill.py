# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing else changes the hosts while a drill measures, and no run is held up on its way."""

from __future__ import annotations

import fcntl
import threading
from types import SimpleNamespace

import pytest
from support import drill_lock
from support.callback import one_drill
from support.waiting import MOMENT_S, until

RUN, CONVERGE, SIDE_EFFECT = "/collection/playbooks/site.yml", "/molecule/converge.yml", "/molecule/default/quick.yml"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(drill_lock.take, "__defaults__", (tmp_path / "lab",))
    monkeypatch.setattr(drill_lock.wait_for_drills, "__defaults__", (tmp_path / "lab",))
    monkeypatch.delenv("ONE_DRILL", raising=False)
    return tmp_path / "lab"


def playbook(path):
    callback = one_drill.CallbackModule()
    callback.v2_playbook_on_start(SimpleNamespace(_file_name=path))
    return callback


def is_free(folder):
    folder.mkdir(exist_ok=True)
    with open(folder / "drill.lock", "ab") as mine:
        try:
            fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def start(function, *arguments):
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def begin(function, *arguments):
    """Begin something that waits; return its thread, which still waits."""
    thread = start(function, *arguments)
    thread.join(4 * MOMENT_S)
    assert thread.is_alive()
    return thread


def ends(thread):
    return until(lambda: not thread.is_alive(), "it does not begin")


def test_a_drill_has_the_lock_until_its_playbook_ends(folder, monkeypatch):
    monkeypatch.setenv("ONE_DRILL", "1")
    drill = playbook("/collection/playbooks/drill.yml")
    drill.v2_playbook_on_task_start(None, False)
    assert not is_free(folder)
    del drill
    assert is_free(folder)


@pytest.mark.parametrize(
    "event, arguments",
    [("v2_playbook_on_task_start", (None, False)), ("v2_playbook_on_handler_task_start", (None,))],
)
def test_a_task_of_a_playbook_that_runs_others_begins_when_the_drill_has_ended(folder, event, arguments):
    other = playbook(SIDE_EFFECT)
    assert is_free(folder)
    with drill_lock.take(drill_lock.ALONE):
        task = begin(getattr(other, event), *arguments)
    assert ends(task) and is_free(folder)


@pytest.mark.parametrize("path", [RUN, CONVERGE])
def test_a_run_is_not_held_up_on_its_way_by_a_drill_that_waits(folder, path):
    run = playbook(path)
    drill = begin(drill_lock.take, drill_lock.ALONE)
    assert ends(start(run.v2_playbook_on_task_start, None, False)) and drill.is_alive()
    del run
    assert ends(drill)


def test_a_run_that_begins_while_a_drill_waits_begins_after_it(folder):
    with drill_lock.take(drill_lock.SHARED):
        drill = begin(lambda: drill_lock.take(drill_lock.ALONE).close())
        late = begin(playbook, RUN)
    assert ends(drill) and ends(late)


def test_neither_is_one_that_another_playbook_imports_from_its_first_play_to_its_last(folder):
    importing = playbook(SIDE_EFFECT)
    for path in (RUN, "/collection/playbooks/layouts/ipi.yml"):
        importing.v2_playbook_on_play_start(SimpleNamespace(name="", get_path=lambda path=path: f"{path}:8"))
    drill = begin(drill_lock.take, drill_lock.ALONE)
    assert ends(start(importing.v2_playbook_on_task_start, None, False)) and drill.is_alive()
    importing.v2_playbook_on_play_start(SimpleNamespace(name="", get_path=lambda: f"{SIDE_EFFECT}:8"))
    assert ends(drill)
