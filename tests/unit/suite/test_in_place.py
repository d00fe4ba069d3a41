# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In the quick scope Ansible does in its own process what needs no host, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.plugins import strategy
from support import prepared_ansible
from support.callback import in_place


class Forked:
    def __init__(self, task):
        self.task = task


@pytest.fixture
def once(monkeypatch):
    """What a run has done to find out once what is the same at each task; this process goes on as before."""
    done = []
    monkeypatch.setattr(in_place.remembered, "remember", lambda: done.append("remember"))
    monkeypatch.setattr(in_place.archives, "share", done.append)
    monkeypatch.delenv("MOLECULE_EPHEMERAL_DIRECTORY", raising=False)
    monkeypatch.setattr(in_place, "gc", SimpleNamespace(freeze=lambda: None, set_threshold=done.append))
    return done


@pytest.fixture
def worker(monkeypatch, once):
    """Returns the class of what does an action, in a run of some scope."""
    monkeypatch.setattr(strategy, "WorkerProcess", Forked)
    monkeypatch.setattr(in_place, "ForkedWorker", Forked)

    def of(action, scope):
        monkeypatch.setenv("SCOPE", scope)
        in_place.CallbackModule().v2_playbook_on_start(None)
        return type(strategy.WorkerProcess(task=SimpleNamespace(action=action)))

    return of


@pytest.mark.parametrize("action", ["ansible.builtin.set_fact", "ansible.builtin.include_tasks", "onprem.lb.refuse"])
def test_what_needs_no_host_is_done_in_place(worker, action):
    assert worker(action, "quick") is prepared_ansible.Worker


@pytest.mark.parametrize("action", ["ansible.builtin.command", "onprem.lb.host_info", "onprem.lb.member_lock"])
def test_modules_run_side_by_side(worker, action):
    assert worker(action, "quick") is Forked


def test_what_is_the_same_at_each_task_is_found_out_once(worker, once):
    worker("onprem.lb.host_info", "quick")
    assert once == ["remember", in_place.SELDOM]


def test_the_runs_of_a_scenario_share_their_archives(worker, once, monkeypatch, tmp_path):
    monkeypatch.setenv("MOLECULE_EPHEMERAL_DIRECTORY", str(tmp_path))
    worker("onprem.lb.host_info", "quick")
    assert tmp_path in once


def test_the_full_scope_runs_as_users_do(worker, once):
    assert worker("ansible.builtin.set_fact", "full") is Forked
    assert once == []
