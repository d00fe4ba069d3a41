# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who locks whom, what refuses to go on, and what a run does with members that an interrupted one has armed."""

from __future__ import annotations

import pytest
import yaml
from support.paths import ROLES
from support.recorded_hosts import locked
from support.recorded_layouts import HOSTS, stage

LOCK = {"members": ["lb1", "lb2"], "purpose": "a test", "break_variable": "b", "requires_all": True}


def lock(answers=None, stages=("configure",), **given):
    values = {"layout_lock": {**LOCK, **given}, "__layout_stages": list(stages)}
    return stage("lock.yml", {"member_lock": locked, **(answers or {})}, **values)


def interrupted(**roles):
    return {"member_lock": lambda call: {**locked(call), "interrupted": roles.get(call.on, "")}}


def test_each_member_locks_itself():
    play = lock()
    assert play.code == 0 and [(call.host, call.on) for call in play.calls] == [("lb1", "lb1"), ("lb2", "lb2")]


def test_the_first_member_of_the_play_locks_those_outside():
    play = lock(members=["lb9", "lb1", "lb2"])
    assert sorted((call.host, call.on) for call in play.calls) == [("lb1", "lb1"), ("lb1", "lb9"), ("lb2", "lb2")]


def test_where_no_member_is_in_the_play_its_first_host_locks_them():
    play = lock(members=["lb8", "lb9"])
    assert sorted((call.host, call.on) for call in play.calls) == [("lb1", "lb8"), ("lb1", "lb9")]


def test_every_host_ends_where_one_member_is_locked_by_another_run():
    held = {
        "held_by": {"user": "a", "controller": "c", "since": "now", "pid": 1, "purpose": "p", "boot": "", "started": ""}
    }
    play = lock({"member_lock": lambda call: held if call.on == "lb2" else locked(call)})
    assert play.code == 2 and {failure.host for failure in play.failures} >= {*HOSTS["pair"]}
    assert "lb2 is locked: a on c began p" in str(play.faults())


def test_a_run_that_writes_names_the_variable_that_accepts_a_downgrade_and_others_do_not_look():
    assert [call.given.get("downgrade_variable") for call in lock(downgrade_variable="d").calls] == ["d", "d"]
    assert [call.given.get("downgrade_variable") for call in lock().calls] == [None, None]


@pytest.mark.parametrize("role", ["pair", "ipi"])
def test_both_layouts_write_in_deployment_and_removal(role):
    tasks = yaml.safe_load((ROLES / role / "tasks" / "main.yml").read_text())
    locks = [task["vars"]["layout_lock"] for each in tasks for task in each.get("block", []) if "lock.yml" in str(task)]
    assert [each["downgrade_variable"] for each in locks if each["mends"]] == [f"{role}_downgrade"]


@pytest.mark.parametrize(
    "mends, stages, goes_on", [(True, ["configure"], True), (True, ["verify"], False), (False, ["configure"], False)]
)
def test_only_a_run_that_changes_the_settings_goes_on_with_an_interrupted_one(mends, stages, goes_on):
    play = lock(interrupted(lb1="first"), stages, mends=mends)
    assert (play.code == 0) is goes_on
    assert play.did("member_state") == (["lb1 member_state taken_over"] if goes_on else [])
    assert goes_on or "lb1: a run was interrupted" in str(play.faults())


def test_the_first_one_is_taken_over_between_what_the_others_are_told():
    play = lock(interrupted(lb1="other", lb2="first"), mends=True)
    assert play.did("member_state") == [
        *("lb1 member_state announced", "lb2 member_state taken_over", "lb1 member_state taken_over"),
    ]
