# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run reads its members, those outside --limit and those that have left, and when it goes on without them."""

from __future__ import annotations

import pytest
from support.recorded_hosts import UNITS, host_info
from support.recorded_layouts import HOSTS, stage

RECORDS = {
    "__layout_records": {"members": {"lb9": {"name": "lb9"}}},
    "__layout_outside": "lb9",
    "__layout_is_first": True,
}
DENIED = {"failed": True, "msg": "sudo: a password is required", "answered": True}


def outside(answers=None, **values):
    return stage("outside_limit.yml", answers, **{**RECORDS, **values})


def test_a_member_outside_the_limit_is_read_hidden_and_recorded_as_its_own():
    play = outside()
    assert play.code == 0
    assert [(call.on, call.check) for call in play.of("member_lock")] == [("lb9", True)]  # once
    assert {(call.on, call.hidden) for call in play.of("host_info")} == {("lb9", True)}
    assert play.facts["lb9"]["__layout_member"]["host"]["os_family"] == "Debian"
    assert "os_family" not in str(play.shown)


def test_it_is_reached_first_where_no_lock_has_done_so():
    assert outside(__layout_lock={"results": []}).did("member_lock") == []
    play = outside({"member_lock": DENIED})
    assert play.code == 2 and "a password is required" in str(play.faults()) and play.did("host_info") == []


def test_a_plan_is_made_without_one_that_is_silent_but_not_without_one_that_fails():
    silent = {"member_lock": {"failed": True, "msg": "no route", "answered": False}, "host_info": {"unreachable": True}}
    play = outside(silent)
    assert play.code == 0 and play.facts["lb9"]["__layout_member"] == {"name": "lb9", "host": None, "silent": True}
    failing = outside({"host_info": {"failed": True, "msg": "no python"}})
    assert failing.code == 2 and "lb9 is outside --limit, but the plan is for all members" in str(failing.faults())


def departed(host, retired="", irreplaceable=(), **values):
    left = {"name": "lb9", "address": "192.0.2.9", "irreplaceable": [*irreplaceable]}
    return stage("departed.yml", {"host_info": host}, settings={"retired": retired}, __layout_departed=left, **values)


def found(**values):
    return host_info("lb9", **{"active_units": UNITS[1:], "instances": [{"addresses": ["192.0.2.10/32"]}], **values})


def test_the_router_of_a_member_that_has_left_stops_wherever_it_holds_a_vip():
    play = departed(found())
    assert play.code == 0
    assert "lb1 systemd_service stopped keepalived.service" in play.did("systemd_service")
    assert play.did("member_pods")[0] == "lb1 member_pods stopped"
    other = departed(found(instances=[{"addresses": ["192.0.2.99/32"]}]))
    assert other.code == 0 and other.did("systemd_service", "member_pods") == []


def test_the_last_router_that_serves_does_not_stop_unless_that_is_accepted():
    alone = ["192.0.2.10", "192.0.2.11"]
    refused = departed(found(), irreplaceable=alone)
    assert refused.code == 2 and refused.did("systemd_service", "member_pods") == []
    assert "no router of another member serves 192.0.2.10 yet" in str(refused.faults())
    assert "take it out after that run, or accept an outage with -e pair_retired=lb9." in str(refused.faults())
    stopped = [f"{name} systemd_service stopped keepalived.service" for name in ("lb1", "lb2")]
    assert departed(found(), "lb9", alone).did("systemd_service") == stopped
    assert departed(found(), irreplaceable=["192.0.2.11"]).did("systemd_service") == stopped, "it does not have it"
    assert departed(found(active_units=[]), irreplaceable=alone).code == 0, "it serves nothing"


LEFT = ["haproxy.service", "onprem-lb-follow.service", "onprem-lb-resolver.service"]


@pytest.mark.parametrize("state", ["active_units", "enabled_units"])
def test_what_goes_on_at_a_member_that_has_left_is_named_with_what_removes_it(state):
    """Its balancer serves, its follow has a token, and without its resolver the host would have no names."""
    ours = ["keepalived.service", *LEFT]
    play = departed(found(**{"active_units": [], "own_units": ours, state: [*ours, "onprem-lb-metrics.service"]}))
    assert {*LEFT} <= {*play.of("host_info")[0].given["units"]}
    (said,) = {str(line) for line in play.said}
    assert said.startswith("lb9 is no longer a member, but it still has " + ", ".join(LEFT))
    assert "run onprem.lb.remove --limit lb9 -e confirm=true" in said


def test_a_router_that_does_not_stop_is_not_said_to_be_stopped():
    play = departed(found(own_units=LEFT, enabled_units=LEFT, instances=[{"addresses": ["192.0.2.99/32"]}]))
    assert play.did("systemd_service") == [] and play.said and "stopped" not in str(play.said)


def test_where_nothing_of_ours_is_left_nothing_is_said():
    assert departed(found(active_units=LEFT)).said == [], "somebody else's"
    assert departed(found(own_units=LEFT)).said == []


def test_a_balancer_that_goes_on_makes_nobody_the_last_one_that_serves():
    alone = ["192.0.2.10", "192.0.2.11"]
    assert departed(found(active_units=["haproxy.service"], own_units=LEFT), irreplaceable=alone).code == 0


@pytest.mark.parametrize("answer", [{"unreachable": True}, {"failed": True, "msg": "no python"}, host_info("lb1")])
def test_a_run_goes_on_without_one_that_cannot_be_read_only_if_it_is_switched_off(answer):
    refused = departed(answer)
    assert refused.code == 2 and "lb9 is no longer a member" in str(refused.faults())
    for retired in ("lb9", ["192.0.2.9"]):
        play = departed(answer, retired)
        assert play.code == 0 and play.did("systemd_service", "member_pods") == []


def armed(facts=None, **values):
    known = {
        name: {"__layout_changes": True, "__layout_compared": {"now": "20260131T120000Z", "silence": 35}}
        for name in HOSTS["pair"]
    }
    facts = facts or known
    return stage(
        "undo/arm.yml",
        facts=facts,
        **values,
    )


def test_each_member_is_armed_and_the_run_says_once_what_an_interruption_would_do():
    play = armed()
    assert play.did("member_state") == ["lb1 member_state armed", "lb2 member_state armed"]
    assert len(play.said) == 1 and "lb1, lb2 return to what they run now, within 55 s." in play.said[0]


def test_where_nothing_is_to_be_undone_nothing_is_armed_and_the_run_says_why():
    play = armed(settings={"undo_after": 0})
    assert play.code == 0 and play.calls == []
    assert play.said == ["If this run is interrupted, no member returns on its own: pair_undo_after is 0."]


def test_in_check_mode_nothing_is_armed_and_nothing_is_said_of_an_interruption():
    play = armed(check=True)
    assert play.code == 0 and play.calls == [] and play.said == []


@pytest.mark.parametrize("check", [False, True])
def test_a_heartbeat_that_comes_too_late_is_followed_by_another_one_and_eight_of_them_end_the_run(check):
    late = stage("undo/heartbeat.yml", {"member_state": {"postponed": False}}, undone())
    assert late.code == 2 and "Heartbeats of this run take too long" in str(late.faults())
    assert len([line for line in late.did("member_state") if line == "lb2 member_state postponed"]) == 9
    answers = {"member_state": [{"postponed": True}, {"postponed": True}, {"postponed": False}, {"postponed": True}]}
    assert stage("undo/heartbeat.yml", answers, undone()).did("member_state").count("lb2 member_state postponed") == 2


def undone():
    given = {"run": "x", "after": 40.0, "settle": 5.0, "setting": "pair_undo_after", "members": ["lb1", "lb2"]}
    return {name: {"__layout_undo": {**given, "role": role}} for name, role in (("lb1", "first"), ("lb2", "other"))}
