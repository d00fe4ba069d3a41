# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run arms the return of its members: after which silence, and only where something changes."""

from __future__ import annotations

import time

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from support.recorded_layouts import PLAN
from support.recorded_plays import prepare
from support.roles import calls, stage_of_run, tasks, variables_of

SET_FACT, STATE, DEBUG = "ansible.builtin.set_fact", "onprem.lb.member_state", "ansible.builtin.debug"
INCLUDE = "ansible.builtin.include_tasks"
RUN = "20260131T120000Z"
PLANNED = {"engine": "agent", "replaces": "", "firewall": {"interfaces": []}}


@pytest.fixture(autouse=True)
def the_collections_filters():
    prepare()


def member(seconds_so_far=0.0, paths=("/etc/haproxy/haproxy.cfg",), undo_after=35, silence="35", **undo):
    """Return the variables of lb2 before it arms its return."""
    changes = bool(paths)
    undo = {**PLAN["undo"], **undo}
    return {
        **variables_of("layout"),
        "inventory_hostname": "lb2",
        "ansible_check_mode": False,
        "ansible_play_hosts_all": ["lb1", "lb2"],
        "ansible_play_hosts": ["lb1", "lb2"],
        "__agent_deployed": {"steps": list(paths)},
        "__layout_first": "lb1",
        "__layout_is_first": False,
        "layout_definition": {"prefix": "pair"},
        "__layout_settings": {"undo_after": undo_after},
        "__layout_plan": {**PLAN, "members": dict.fromkeys(("lb1", "lb2"), PLANNED), "undo": undo},
        "__layout_lock": {"results": [{"item": "lb2", "interrupted": "", "at": time.time() - seconds_so_far}]},
        "__layout_host": {"missing_packages": [], "held_back": {}, "static_pods": [], "selinux": False},
        "__layout_differing": [paths],
        "__layout_undo": {"run": ""},  # which the first task of undo/arm.yml decides
        "layout_undo": {},
        "hostvars": {
            "lb1": {
                "__layout_changes": changes,
                "__layout_compared": {"now": RUN, "silence": silence},
                "inventory_hostname": "lb1",
            },
            "lb2": {"__layout_changes": changes, "inventory_hostname": "lb2"},
        },
    }


def armed(*given, **more):
    """What lb2 does when it arms its return."""
    variables = member(*given, **more)
    own = Templar(loader=DataLoader(), variables=variables).template(stage_of_run("Compare")[SET_FACT])
    ((_fact, decided),) = calls("layout", variables, SET_FACT, tasks_from="undo/arm.yml")
    saved = calls("layout", {**variables, **decided}, STATE, tasks_from="undo/arm.yml")
    return own, decided["__layout_undo"], saved


def test_a_run_that_is_slow_may_be_silent_for_longer():
    assert float(armed(0)[0]["__layout_compared"]["silence"]) == 35
    assert float(armed(100)[0]["__layout_compared"]["silence"]) >= 150


def test_all_members_wait_equally_long_and_have_the_name_of_one_run():
    _own, undo, ((_module, saved),) = armed(silence="150")
    assert (undo["run"], undo["role"], undo["after"]) == (RUN, "other", 155)
    assert (saved["run"], saved["after"]) == (RUN, 155)


def test_a_run_that_waits_for_the_verdict_on_a_check_may_be_silent_for_so_much_longer():
    _own, undo, ((_module, saved),) = armed(silence="35", judged=103.0)
    assert (undo["after"], undo["settle"], saved["after"]) == (143, 5, 143)


@pytest.mark.parametrize("given", [{"paths": ()}, {"undo_after": 0}])
def test_a_run_that_changes_nothing_or_must_not_be_undone_arms_nothing(given):
    _own, undo, saved = armed(**given)
    assert undo["run"] == "" and saved == []


def said(**given):
    """Return what the run says of its interruption."""
    first = {"__layout_is_first": True, "inventory_hostname": "lb1"}
    variables = {**member(**given), **first, "__layout_armed": {"returned_within": 55}}
    ((_fact, decided),) = calls("layout", variables, SET_FACT, tasks_from="undo/arm.yml")
    return [
        call["msg"].strip()
        for _debug, call in calls("layout", {**variables, **decided}, DEBUG, tasks_from="undo/arm.yml")
    ]


def test_a_run_says_what_becomes_of_it_when_it_is_interrupted():
    assert said() == ["If this run is interrupted, lb1, lb2 return to what they run now, within 55 s."]


@pytest.mark.parametrize(
    "given, reason",
    [
        ({"members": [], "first": "", "reason": "lb2 has a file."}, "lb2 has a file."),
        ({"undo_after": 0}, "pair_undo_after is 0."),
    ],
)
def test_a_run_that_arms_nothing_says_why_if_it_changes_something(given, reason):
    assert said(**given) == [f"If this run is interrupted, no member returns on its own: {reason}"]
    assert said(**given, paths=()) == []


@pytest.mark.parametrize(
    "answer, when",
    [({"returned_within": 189}, "within 189 s"), ({"unreachable": True, "msg": "no route"}, "on its own")],
)
def test_a_run_that_is_not_proved_says_within_which_time_its_members_return(answer, when):
    given = {**member(), "__layout_abandoned": answer}
    ((_debug, call),) = calls(
        "layout", {**given, "__layout_proved": "", "__layout_undo": {"run": RUN}}, DEBUG, tasks_from="undo/abandon.yml"
    )
    assert call["msg"].startswith(f"This run is not confirmed, so lb2 returns {when} to what it ran before: journalctl")


def test_a_heartbeat_is_announced_to_the_others_before_the_first_one_gets_it_and_then_they_do():
    """The order that `test_undo_orders` plays."""
    asked = [(task[STATE]["state"], task["when"]) for task in tasks("layout", "undo/heartbeat.yml") if STATE in task]
    role = "__layout_undo.role"
    assert asked == [
        ("announced", f"{role} == 'other'"),
        ("postponed", f"{role} == 'first'"),
        ("postponed", f"{role} != 'first'"),
    ]
    taken_over = [(task["loop"], task[STATE]["state"]) for task in tasks("layout", "undo/resume.yml")]
    attempted = "{{ __layout_locks.attempted | selectattr('interrupted', "
    assert taken_over == [
        (attempted + "'equalto', 'other') }}", "announced"),
        (attempted + "'equalto', 'first') }}", "taken_over"),
        (attempted + "'in', ['other', 'alone']) }}", "taken_over"),
    ]


def test_a_run_gives_heartbeats_before_what_takes_long():
    signs = "undo/heartbeat.yml"
    names = [task.get(INCLUDE) for task in tasks("layout", "configure.yml")]
    assert names[-1] == signs  # the verification comes next
    assert tasks("layout", "routers/prove.yml")[0][INCLUDE] == signs  # the proof comes next
    assert tasks("layout", "routers/together.yml")[0][INCLUDE] == signs
