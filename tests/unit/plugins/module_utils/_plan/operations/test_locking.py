# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run needs the locks of its members; which it goes on without, and what it says otherwise."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.locking import (
    heartbeat_timeout,
    read,
    refusals,
    to_lock,
    waits,
)

TAKEN = {"item": "lb1", "taken": True}
HELD = {"item": "lb2", "msg": "lb2 is locked: ...", "held_by": {"user": "kim"}, "answered": True}
SILENT = {"item": "lb2", "msg": "lb2 cannot be reached", "answered": False}
UNFIT = {"item": "lb2", "msg": "lb2: its Python is too old", "answered": True}
DEPLOYMENT = {"requires_all": True, "goes_on_without_silent": True}
REMOVAL = {"requires_all": False, "goes_on_without_silent": True}
DRILL = {"requires_all": True}
WAY_ON = "To change the members that answer, repeat the same command with --limit '!lb2'."


def said(*attempts, here=("lb1", "lb2"), lock=None):
    return refusals([{"results": [attempt]} for attempt in attempts], here, lock or DEPLOYMENT)


def test_a_run_with_all_its_locks_goes_on_also_where_a_host_was_not_asked():
    assert said(TAKEN, {**TAKEN, "item": "lb2"}) == []
    assert refusals([{}, {"results": [TAKEN]}], ["lb1", "web"], DEPLOYMENT) == []


@pytest.mark.parametrize("lock", [DEPLOYMENT, REMOVAL, DRILL])
@pytest.mark.parametrize("here", [("lb1",), ("lb1", "lb2")])
def test_a_member_that_another_run_has_locked_stops_every_run(lock, here):
    assert said(TAKEN, HELD, here=here, lock=lock) == [HELD["msg"]]


def test_a_run_that_needs_every_member_is_told_how_to_go_on_without_a_silent_one():
    assert said(TAKEN, SILENT) == [SILENT["msg"], WAY_ON]
    assert said(TAKEN, SILENT, lock=DRILL) == [SILENT["msg"]]


def test_a_run_that_leaves_a_silent_member_out_goes_on():
    assert said(TAKEN, SILENT, here=["lb1"]) == []
    assert said(TAKEN, SILENT, here=["lb1"], lock=DRILL) == [SILENT["msg"]]


def test_where_nobody_answers_there_is_no_way_on():
    assert said({**SILENT, "item": "lb1", "msg": "lb1 cannot be reached"}, SILENT) == [
        "lb1 cannot be reached",
        SILENT["msg"],
    ]


def test_a_member_that_answers_and_cannot_be_used_stops_a_run_also_from_outside_its_limit():
    assert said(TAKEN, UNFIT, here=["lb1"]) == [UNFIT["msg"]]


def test_a_removal_goes_on_without_what_it_cannot_reach():
    assert said(TAKEN, SILENT, lock=REMOVAL) == said(TAKEN, UNFIT, lock=REMOVAL) == []


def test_a_reason_is_said_once():
    assert said(HELD, HELD) == [HELD["msg"]]


@pytest.mark.parametrize(
    "began, wait",
    [([0.0], 150), ([99.0, 0.0], 150), ([50.1], 75), ([80.0], 35), ([1000.0], 35)],
    ids=["slow", "of the first lock", "rounded up", "fast", "a clock that was set back"],
)
def test_members_wait_for_half_as_long_again_as_a_slow_run_took_so_far(began, wait):
    attempts = [{"item": "lb3", "msg": "lb3 cannot be reached"}, *({"at": at} for at in began)]
    assert heartbeat_timeout(attempts, 34.5, 100.0) == wait


def test_a_host_locks_itself_and_the_first_one_those_that_are_not_in_the_play():
    members = ["lb9", "lb1", "lb2"]
    assert to_lock(members, ["lb1", "lb2"], "lb1") == ["lb1", "lb9"]
    assert to_lock(members, ["lb1", "lb2"], "lb2") == ["lb2"]
    assert to_lock(["lb8", "lb9"], ["client", "lb1"], "client") == ["lb8", "lb9"], "as in a drill"
    assert to_lock(["lb8", "lb9"], ["client", "lb1"], "lb1") == []


def test_a_run_waits_for_members_that_return_unless_it_mends_them():
    (sentence,) = waits(["lb1", "lb2"], mends=False)
    assert sentence.startswith("lb1, lb2: a run was interrupted")
    assert waits(["lb1"], mends=True) == waits([], mends=False) == []


def test_what_an_interrupted_run_has_armed_is_known_from_all_locks():
    own = {"results": [{"item": "lb1", "interrupted": "first"}, {"item": "lb9", "msg": "no route"}]}
    other = {"results": [{"item": "lb2", "interrupted": "other"}, {"item": "lb3", "interrupted": ""}]}
    found = read([own, other, {}], own, "lb1")
    assert (found.interrupted, found.interrupted_as) == (["lb1", "lb2"], "first")
    assert found.attempted == own["results"][:1]
    assert read([{}], {}, "lb1") == ([{}], [], [], "")
