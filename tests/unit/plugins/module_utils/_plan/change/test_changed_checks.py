# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which checks a run proves because their definition changes, for how long, and what it does about one that fails."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import host as _host
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import changed_checks
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import member as member_plan
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.transitions import PASSWORD, living
from support.rendering import keepalived

STORAGE = {"name": "storage", "script": "/usr/local/bin/storage --of 'a b'", "interval": 30, "timeout": 10}
GATEWAY = {"gateway": "192.0.2.254"}
URL = {"name": "api", "url": "http://192.0.2.40:8080/up"}
ENGINES = ("native", "agent")
ABSENT = "/nowhere"


def running(tmp_path, engine, now, planned, user="root", **changes):
    """The plan of a pair that runs checks so far, and gets others."""
    members = living(engine=engine, before={"checks": now}, checks=planned, **changes)
    before = planner.draft(_pair.LAYOUT, living(engine=engine, checks=now))
    assert before.faults == []
    for one in members:
        router = before.members[one["name"]].router._asdict()
        path = tmp_path / one["name"]
        if engine == "native":
            path.write_text(keepalived({**router, "auth_pass": PASSWORD}, one["name"], keepalived_script_user=user))
        else:
            found = agent.translate({**router, "auth_pass": PASSWORD, "script_user": user})
            path.write_text(json.dumps(found["vrrp"]))
        asked = {"keepalived_config": ABSENT, "agent_config": ABSENT}
        asked["keepalived_config" if engine == "native" else "agent_config"] = str(path)
        one["host"]["checks"] = _host.checks(asked, Reader(None, None))
    return members


def plan_of(members):
    found = planner.draft(_pair.LAYOUT, members)
    assert found.faults == []
    return found


def names(members):
    return {name: [check["name"] for check in member.checks] for name, member in plan_of(members).members.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_checks_that_run_as_they_are_planned_are_not_proved_again(tmp_path, engine):
    checks = [STORAGE, GATEWAY, URL]
    assert names(running(tmp_path, engine, checks, checks)) == {"lb1": [], "lb2": []}
    plan = plan_of(running(tmp_path, engine, checks, checks))
    assert (plan.undo.judged, {member.expected.judged for member in plan.members.values()}) == (0, {0})


CHANGES = {"script": "/usr/local/bin/other", "timeout": 9, "interval": 31, "fall": 4, "rise": 2}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("key", CHANGES)
def test_a_check_of_which_anything_changes_is_proved_on_each_member(tmp_path, engine, key):
    members = running(tmp_path, engine, [STORAGE, GATEWAY], [{**STORAGE, key: CHANGES[key]}, GATEWAY])
    assert names(members) == {"lb1": ["storage"], "lb2": ["storage"]}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_check_that_is_new_or_gets_another_user_is_proved(tmp_path, engine):
    assert names(running(tmp_path, engine, [], [STORAGE]))["lb2"] == ["storage"]
    assert names(running(tmp_path, engine, [STORAGE], [STORAGE], user="nobody"))["lb2"] == ["storage"]


def test_the_checks_of_the_layout_itself_are_not_proved(tmp_path):
    assert names(running(tmp_path, "native", [], [], answer_port=9555, track_interval=7)) == {"lb1": [], "lb2": []}


def test_a_member_that_this_run_leaves_as_it_is_and_one_with_static_pods_run_nothing(tmp_path):
    members = running(tmp_path, "native", [], [STORAGE])
    members[1]["outside_limit"] = True
    found = plan_of(members).members
    assert ([each["name"] for each in found["lb1"].checks], found["lb2"].checks) == (["storage"], [])
    member = found["lb1"]._replace(checks=[], pods={"image": "x"})
    assert member_plan._with_checks(members[0], ["storage"], member).checks == []


def test_a_check_is_run_as_its_router_runs_it(tmp_path):
    members = running(tmp_path, "native", [], [STORAGE, {**URL, "timeout": 1.5}])
    members[1]["host"]["script_user"] = "watch"
    storage, url = [check["run"] for check in plan_of(members).members["lb2"].checks]
    assert storage == {"name": "storage", "command": STORAGE["script"], "timeout": 10, "user": "watch"}
    assert url["timeout"] == 2 and url["command"].startswith("/usr/bin/curl --max-time 1.5 ")


def test_a_url_that_the_agent_asks_itself_needs_no_program_and_is_waited_for(tmp_path):
    """Its host may have no curl."""
    member = plan_of(running(tmp_path, "agent", [], [STORAGE, URL])).members["lb2"]
    assert [check["run"].get("name") for check in member.checks] == ["storage", None]
    assert member.checks[1]["judged"] > 0


def test_the_run_waits_until_a_router_has_found_the_slowest_of_them_failing(tmp_path):
    """keepalived ends each of three runs at its timeout; the first begins an interval after the reload."""
    plan = plan_of(running(tmp_path, "native", [], [STORAGE, GATEWAY]))
    expected = plan.members["lb2"].expected
    assert (expected.judged, expected.settle) == (30 + 30 + 30 + 10 + changed_checks.KILLED, 0)
    assert plan.members["lb2"].proof.judged == plan.undo.judged == expected.judged
    assert plan.undo.first == "", "nothing changes on the link"


def test_a_router_that_starts_waits_for_its_checks_itself(tmp_path):
    members = running(tmp_path, "native", [], [STORAGE])
    members[1]["host"]["active_units"] = []
    judged = {name: member.expected.judged for name, member in plan_of(members).members.items()}
    assert judged["lb1"] > judged["lb2"] == 0
    moving = plan_of(running(tmp_path, "native", [], [STORAGE], to_engine="agent"))
    assert {member.expected.judged for member in moving.members.values()} == {0}


def test_routers_that_change_together_are_proved_after_that(tmp_path):
    member = plan_of(running(tmp_path, "native", [], [STORAGE], vrid=77)).members["lb2"]
    assert member.proof.judged == 0 < member.expected.judged


# --- what one run of each says ----------------------------------------------------------------------------------

EXIT = "fails with exit code 1, and prints: no volume"
ONE = "must be added in a later run."


def judge(tmp_path, failing, check=None, before="", lives=("lb1", "lb2"), outside=()):
    """Return what is said of a check that is new, which fails on some members.

    :param check: STORAGE by default
    :param before: what the check of its name that runs there says
    """
    members = running(tmp_path, "native", [], [check or STORAGE])
    for one in members:
        one["outside_limit"] = one["name"] in outside
        if one["name"] not in lives:
            one["host"]["active_units"] = []
    plans = [as_data(plan_of(members))]
    tries = [
        [name, {"checks": {"storage": {"fault": EXIT, "before": before} if name in failing else {"fault": ""}}}]
        for name in ("lb1", "lb2")
        if name not in outside
    ]
    return changed_checks.tried(plans, tries, "pair")


def test_checks_that_succeed_are_not_mentioned(tmp_path):
    assert judge(tmp_path, []) == {"faults": [], "lines": []}


@pytest.mark.parametrize("name", ["lb1", "lb2"])
def test_a_check_that_would_put_a_member_into_fault_is_refused_on_the_holder_and_on_a_backup(tmp_path, name):
    (fault,) = judge(tmp_path, [name])["faults"]
    assert fault.startswith(f"{name}: pair_checks (storage) {EXIT}. With it {name} would be in FAULT, so nothing has ")
    assert fault.endswith(ONE)


def test_where_the_check_that_runs_there_fails_as_well_the_change_makes_nothing_worse(tmp_path):
    found = judge(tmp_path, ["lb2"], before="script storage failed")
    assert found["faults"] == []
    (line,) = found["lines"]
    assert line.endswith("The check that runs there fails too, so lb2 could not take over before either.")


def test_a_check_with_a_weight_takes_no_vip_from_anybody_and_is_only_said(tmp_path):
    found = judge(tmp_path, ["lb1"], {**STORAGE, "weight": -50})
    assert found == {"faults": [], "lines": [f"lb1: pair_checks (storage) {EXIT}. Its weight of -50 counts there."]}


@pytest.mark.parametrize("how", [{}, {"check": {**STORAGE, "weight": -50}}, {"before": "script storage failed"}])
def test_a_check_that_fails_on_every_member_is_always_refused(tmp_path, how):
    faults = judge(tmp_path, ["lb1", "lb2"], **how)["faults"]
    assert [fault.partition(".")[2][:29] for fault in faults] == [" It fails on every member, so"] * 2


def test_where_no_router_runs_a_check_may_ask_for_what_the_run_sets_up(tmp_path):
    found = judge(tmp_path, ["lb1", "lb2"], lives=())
    assert found["faults"] == []
    assert found["lines"][0].endswith("Unless it succeeds once this run is finished, lb1 could not take over.")


def test_of_the_members_with_a_router_all_are_every_member(tmp_path):
    (alone,) = judge(tmp_path, ["lb1"], {**STORAGE, "weight": -50}, lives=("lb1",))["faults"]
    assert alone.startswith("lb1:") and "It fails on every member" in alone
    found = judge(tmp_path, ["lb1", "lb2"], {**STORAGE, "weight": -50}, lives=("lb1",))
    assert [fault[:4] for fault in found["faults"]] == ["lb1:"] and [line[:4] for line in found["lines"]] == ["lb2:"]


def test_a_check_without_a_result_is_not_taken_for_one_that_succeeds(tmp_path):
    plans = [as_data(plan_of(running(tmp_path, "native", [], [STORAGE])))]
    well = {"checks": {"storage": {"fault": ""}}}
    (fault,) = changed_checks.tried(plans, [["lb1", well], ["lb2", {"msg": "MODULE FAILURE"}]], "pair")["faults"]
    assert fault.startswith("lb2: pair_checks (storage) was to run once, and there is no result of it. With it lb2 ")


def test_a_member_outside_the_limit_is_not_known_to_fail(tmp_path):
    found = judge(tmp_path, ["lb1"], {**STORAGE, "weight": -50}, outside=("lb2",))
    assert found["faults"] == [] and len(found["lines"]) == 1
