# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ends a run that is not proved, who is confirmed first, and how a member that is not proved returns."""

from __future__ import annotations

import pytest
import yaml
from support.recorded_hosts import host_info
from support.recorded_layouts import HOSTS, ROUTER, RUN, layout, stage, undo
from support.recorded_plays import run, tasks_of
from support.roles import ROLES

TWO = "192.0.2.10 is held by lb1 and lb2."
LOCKS = {
    name: {"__layout_lock": {"results": [{"item": name, "taken": True, "interrupted": "", "at": 0}]}}
    for name in HOSTS["pair"]
}


def both(*facts):
    """Return the facts of both members, of several sources together."""
    return {name: {key: value for each in facts for key, value in each[name].items()} for name in HOSTS["pair"]}


def of_both(**facts):
    return dict.fromkeys(HOSTS["pair"], facts)


@pytest.mark.parametrize(
    "found", [{"faults": [TWO]}, {"faults": ["no holder"]}, {}, {"failed": True, "msg": "no module"}]
)
def test_a_run_that_finds_two_holders_or_none_or_nothing_fails(found):
    play = stage("verify.yml", {"layout_info": found})
    assert play.code == 2 and len(play.failures) == 2


def test_a_run_that_finds_one_holder_of_each_vip_succeeds():
    play = stage("verify.yml", {"layout_info": {"faults": []}})
    assert (
        play.code == 0
        and [call.given for call in play.of("layout_info")] == [{"plan": {"as": "expected"}, "servers": True}] * 2
    )


@pytest.mark.parametrize("check, verify", [(True, True), (False, False)])
def test_nothing_is_verified_in_check_mode_or_where_that_is_not_wanted(check, verify):
    definition = {"verify": verify, "prefix": "pair", "members": []}
    play = stage("verify.yml", {"layout_info": {"faults": [TWO]}}, check=check, layout_definition=definition)
    assert play.code == 0 and play.calls == []


@pytest.mark.parametrize("first, second", [("lb1", "lb2"), ("lb2", "lb1")])
def test_the_member_that_returns_first_is_confirmed_first(first, second):
    play = stage("undo/confirm.yml", facts=both(undo(first), LOCKS))
    assert play.did("member_state") == [f"{first} member_state confirmed", f"{second} member_state confirmed"]
    assert [call.given["run"] for call in play.calls] == [RUN, RUN]
    assert {play.facts[name]["__layout_proved"] for name in HOSTS["pair"]} == {RUN}


def test_nobody_is_confirmed_while_a_member_that_returns_is_missing():
    play = stage("undo/confirm.yml", facts=both(undo(members=("lb1", "lb2", "lb3")), LOCKS))
    assert play.calls == [] and "__layout_proved" not in play.facts["lb1"]


def test_a_member_outside_the_limit_that_was_taken_over_is_confirmed_too():
    outside = {"item": "lb9", "interrupted": "other", "taken": True}
    facts = both(undo(), of_both(__layout_lock={"results": [outside, {"item": "lb1", "interrupted": "first"}]}))
    play = stage("undo/confirm.yml", facts=facts)
    assert sorted(play.did("member_state")[2:]) == ["lb9 member_state confirmed"] * 2


def unlocked(answers=None, facts=None, check=False, **values):
    values = {"__layout_follow_paused": {}, "__layout_router_stopped": {}, "__layout_router_pod_stopped": {}, **values}
    return stage("unlock.yml", answers, both(LOCKS, facts or of_both()), check, **values)


def test_a_run_that_is_not_proved_has_its_members_return_and_releases_them():
    play = unlocked(facts=undo())
    assert play.did("member_state") == ["lb1 member_state abandoned", "lb2 member_state abandoned"]
    assert play.did("member_lock") == ["lb1 member_lock absent", "lb2 member_lock absent"]
    assert str(play.said).count("returns within 55 s to what it ran before") == 2


def test_one_that_is_proved_has_nobody_return():
    play = unlocked(facts=both(undo(), of_both(__layout_proved=RUN)))
    assert play.did("member_state") == [] and len(play.did("member_lock")) == 2


@pytest.mark.parametrize("answer", [{"failed": True, "msg": "no room"}, {"unreachable": True}])
def test_every_member_is_released_even_if_one_cannot_be_told_to_return(answer):
    play = unlocked({"member_state": lambda call: answer if call.on == "lb1" else {}}, undo())
    assert play.code == 0 and play.faults() == []
    assert play.did("member_lock") == ["lb1 member_lock absent", "lb2 member_lock absent"]


def test_a_member_that_cannot_be_released_keeps_no_other_one_locked():
    play = unlocked({"member_lock": lambda call: {"unreachable": True} if call.on == "lb1" else {}})
    assert play.code == 0 and play.did("member_lock") == ["lb1 member_lock absent", "lb2 member_lock absent"]


def each_task(tasks):
    for task in tasks:
        yield task
        for part in ("block", "rescue", "always"):
            yield from each_task(task.get(part, []))


def test_a_member_whose_silence_is_ignored_ends_the_run_of_no_other_one():
    """Where any error is fatal, as in our plays, Ansible ends the play for all although a task ignores it."""
    found = [task for path in ROLES.rglob("tasks/**/*.yml") for task in each_task(yaml.safe_load(path.read_text()))]
    ignoring = [task for task in found if task.get("ignore_unreachable")]
    assert ignoring
    assert [
        task for task in ignoring if not task.get("ignore_errors") and task.get("any_errors_fatal") is not False
    ] == []


def test_a_lock_that_was_not_taken_is_not_released():
    facts = of_both(__layout_lock={"results": [{"item": "lb1", "msg": "locked"}, {"item": "lb2", "taken": False}]})
    assert stage("unlock.yml", facts=facts).did("member_lock") == []


FOLLOWS = {"__layout_follow_paused": {"changed": True}, "__layout_follow_wanted": True}


@pytest.mark.parametrize("answer", [{}, {"failed": True, "msg": "no unit"}, {"unreachable": True}])
def test_what_follows_the_cluster_starts_again_and_its_failure_keeps_nobody_locked(answer):
    play = unlocked({"systemd_service": answer}, **FOLLOWS)
    assert play.code == 0 and len(play.did("member_lock")) == 2
    assert play.did("systemd_service") == [
        f"{name} systemd_service started onprem-lb-follow.service" for name in HOSTS["pair"]
    ]
    assert str(play.said).count("does not follow its cluster until the next run") == (2 if answer.get("failed") else 0)


@pytest.mark.parametrize(
    "values",
    [
        {"check": True},
        {"facts": undo()},
        {"__layout_follow_paused": {"changed": False}},
        {"__layout_follow_wanted": False},
        {"__layout_units_written": {"changed": True}},
        {"member": {"replaces": "native"}},
    ],
    ids=["check mode", "the member returns", "it was not stopped", "it is not wanted", "it runs", "the engine changes"],
)
def test_what_follows_the_cluster_is_left_alone_otherwise(values):
    assert unlocked(**{**FOLLOWS, **values}).did("systemd_service") == []


@pytest.mark.parametrize("sole", ["", "lb2"])
@pytest.mark.parametrize("stopped", ["__layout_router_stopped", "__layout_router_pod_stopped"])
def test_a_failed_run_says_whose_router_it_has_left_stopped(stopped, sole):
    play = unlocked({"host_info": {"active_units": []}}, plan={"sole_router": sole}, **{stopped: {"changed": True}})
    said = str(play.faults())
    assert (
        play.code == 2
        and "The router of lb1 is stopped" in said
        and f"{sole or 'the others'} alone can hold them" in said
    )
    assert len(play.did("member_lock")) == 2


@pytest.mark.parametrize(
    "running, values, started",
    [
        ({"active_units": []}, {}, True),
        ({"active_units": []}, {"__keepalived_written": {"changed": True}}, False),
        ({"active_units": ["keepalived.service"]}, {}, False),
        ({"unreachable": True}, {}, False),
        ({"failed": True, "msg": "no python"}, {}, False),
    ],
    ids=["none runs", "it has other settings by now", "one runs", "one is out of reach", "one cannot be read"],
)
def test_where_the_router_that_was_to_run_alone_does_not_run_the_others_start_as_before(running, values, started):
    host = host_info("lb1", active_units=["keepalived.service"])
    play = unlocked(
        {"host_info": running},
        plan={"sole_router": "lb2", "members": {name: {} for name in HOSTS["pair"]}},
        __layout_router_stopped={"changed": True},
        __layout_host=host,
        **values,
    )
    assert ("lb1 systemd_service started keepalived.service" in play.did("systemd_service")) is started


@pytest.mark.parametrize(
    "values",
    [
        {"check": True},
        {"facts": undo()},
        {"__layout_router_stopped": {}},
        {"__layout_seen": {"failed": False}},
        {"answers": {"host_info": {"active_units": ["keepalived.service"]}}},
    ],
    ids=["check mode", "the member returns", "it was not stopped", "it is verified", "it runs"],
)
def test_it_says_nothing_of_a_router_that_runs_or_that_starts_by_itself(values):
    answers = {"host_info": {"active_units": []}}
    play = unlocked(**{"answers": answers, "__layout_router_stopped": {"changed": True}, **values})
    assert play.code == 0 and play.faults() == []


def test_a_run_that_never_locked_anything_releases_nothing():
    play = run(tasks_of("layout", "unlock.yml"), HOSTS)
    assert play.code == 0 and play.calls == []


# --- checks whose definition changes ------------------------------------------------------------------------------

RUN_OF_STORAGE = {"name": "storage", "command": "/usr/local/bin/storage", "timeout": 10, "user": "root"}
STORAGE = {"name": "storage", "run": RUN_OF_STORAGE, "weight": 0, "lives": True, "judged": 100.0}
ONCE = {"vips": [], "services": [], "targets": [], "units": ["keepalived.service"]}


def tried(on_lb1, on_lb2, check=False, **of_check):
    """Play the stage before the first change, in which the checks of both members are run."""
    member = {"checks": [{**STORAGE, **of_check}], "expected": {"units": ["keepalived.service"]}}
    member["router"] = {**ROUTER, "scripts": [{"name": "storage"}]}
    whole = {**layout(member)["__layout_plan"]}
    answers = {"lb1": on_lb1, "lb2": on_lb2}
    return stage(
        "check.yml",
        {"layout_info": lambda call: {"checks": {"storage": {"fault": answers[call.on], "before": ""}}}},
        check=check,
        member=member,
        __layout_plans={"plans": [whole], "faults": [], "lines": []},
        __layout_components=[],
    )


@pytest.mark.parametrize("check", [False, True])
def test_a_check_that_changes_is_run_once_on_each_member_in_check_mode_too(check):
    play = tried("", "", check)
    assert play.code == 0
    assert [(call.on, call.given["checks"], call.given["limit"]) for call in play.of("layout_info")] == [
        ("lb1", [RUN_OF_STORAGE], 0),
        ("lb2", [RUN_OF_STORAGE], 0),
    ]
    assert play.of("layout_info")[0].given["plan"] == ONCE


@pytest.mark.parametrize("check", [False, True])
def test_one_that_fails_on_a_member_ends_the_run_before_anything_is_written(check):
    play = tried("", "fails with exit code 1", check)
    assert play.code == 2 and "lb2: pair_checks (storage) fails with exit code 1. With it lb2" in str(play.faults())


def test_one_that_fails_and_takes_no_vip_from_anybody_is_said():
    play = tried("", "fails with exit code 1", weight=-50)
    assert play.code == 0 and "lb2: pair_checks (storage) fails with exit code 1. Its weight" in str(play.said)


def test_without_a_check_that_changes_nothing_is_run():
    play = stage("check.yml", __layout_components=[])
    assert play.code == 0 and play.of("layout_info") == []
