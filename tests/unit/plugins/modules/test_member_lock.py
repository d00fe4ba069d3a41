# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a member whose record of an earlier run cannot be read, and of one that a newer version has set up."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.read import newer
from ansible_collections.onprem.lb.plugins.module_utils._host.write import lock
from ansible_collections.onprem.lb.plugins.modules import member_lock
from support.modules import refusal, run


def test_a_damaged_record_is_named_with_its_mend_and_nothing_is_locked(monkeypatch, tmp_path):
    monkeypatch.setattr(lock, "PATH", str(tmp_path / "lock"))
    monkeypatch.setattr(records, "DUE", str(tmp_path / "due.json"))
    (tmp_path / "due.json").write_text("{")
    said = refusal(member_lock, {"state": "present", "purpose": "a run", "holder": {"pid": 1}})
    assert said.startswith(f"{tmp_path}/due.json is damaged") and said.endswith("Remove this file, and repeat the run.")
    assert not (tmp_path / "lock").exists()


def test_whoever_is_not_root_learns_both_ways_in_which_that_may_be(monkeypatch):
    monkeypatch.setattr(member_lock.os, "access", lambda _folder, _mode: False)
    said = refusal(member_lock, {"state": "present", "purpose": "a run", "holder": {"pid": 1}})
    assert said.endswith("this takes root: set become: true, and no ansible_become_user but root.")


@pytest.fixture
def newer_here(monkeypatch, tmp_path):
    """A member that a newer version has set up; returns its lock."""
    monkeypatch.setattr(lock, "PATH", str(tmp_path / "lock"))
    monkeypatch.setattr(newer, "RECORDS", str(tmp_path / "members.json"))
    monkeypatch.setattr(records, "RETURNED", str(tmp_path / "returned.json"))
    (tmp_path / "members.json").write_text('{"written by": "99.0.0"}')
    return tmp_path / "lock"


MINE = {"state": "present", "purpose": "a run", "holder": {"boot": "b", "pid": 1, "started": "s"}}
OVERWRITES = {**MINE, "downgrade_variable": "pair_downgrade"}


@pytest.mark.parametrize("check", [False, True])
def test_a_run_that_overwrites_what_a_newer_version_wrote_is_refused_before_it_locks(newer_here, check):
    said = refusal(member_lock, OVERWRITES, check=check)
    assert said.startswith("onprem.lb 99.0.0 wrote ") and said.endswith("or go on with -e pair_downgrade=true.")
    assert not newer_here.exists()


def test_one_that_the_user_accepts_and_one_that_overwrites_nothing_lock_the_member(newer_here):
    assert run(member_lock, {**OVERWRITES, "downgrades": True})["taken"] and newer_here.exists()
    newer_here.unlink()
    assert run(member_lock, MINE)["taken"] and newer_here.exists()
    assert not run(member_lock, {**OVERWRITES, "state": "absent"}).get("failed")
