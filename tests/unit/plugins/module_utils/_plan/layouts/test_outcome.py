# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run says at its end."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import outcome

VIP, VIP6 = "192.0.2.10", "2001:db8::10"
UNSET = dict.fromkeys(("enabled", "address", "port", "uri"), "")
PAGE = "http://127.0.0.1:9000/haproxy_stats"
UNPROVED = "Not tested by this run: that each VIP moves as forecast."
DRILL = "Next: onprem.lb.drill causes each failure, and measures how long each VIP is gone."


def member(name, **values):
    usual = {
        "engine": "native",
        "vips": [VIP],
        "held": [],
        "steps": [],
        "unserved": [],
        "statistics": UNSET,
    }
    return {"name": name, **usual, **values}


def pair(**second):
    return [member("lb1", held=[VIP]), member("lb2", **second)]


def test_a_run_that_changed_nothing_says_who_holds_what_and_what_comes_next():
    assert outcome.lines(pair(), [], False) == [
        f"{VIP} is held by lb1.",
        "lb1, lb2: nothing changed.",
        UNPROVED,
        f"Statistics on lb1, lb2: {PAGE}",
        DRILL,
    ]


def test_who_announces_a_vip_is_said_of_each_member():
    both = [member(name, held=[VIP], announces=True) for name in ("lb1", "lb2")]
    assert outcome.lines(both, [], False)[0] == f"{VIP} is announced by lb1, lb2."
    assert outcome.lines([both[0], {**both[1], "held": []}], [], False)[0] == f"{VIP} is announced by lb1."


def test_members_are_told_apart_by_what_changed_there():
    changed = outcome.lines(pair(steps=["install haproxy, keepalived", "write /etc/haproxy/haproxy.cfg"]), [], False)
    assert changed[1:3] == [
        "lb1: nothing changed.",
        "lb2: done: install haproxy, keepalived; write /etc/haproxy/haproxy.cfg.",
    ]
    agent = outcome.lines(pair(engine="agent", steps=["start onprem-lb-vrrp.service"]), [], False)
    assert "lb2: done: start onprem-lb-vrrp.service." in agent
    assert agent[-3:-1] == [f"Statistics on lb1: {PAGE}", "Statistics on lb2: http://127.0.0.1:9000/"]


UNIT = "keepalived.service"
WRITTEN = {
    "changed": True,
    "paths": ["/a", "/b"],
    "deleted": ["/b"],
    "stale": ["x."],
    "commands": ["systemctl start c"],
}


@pytest.mark.parametrize(
    "word, result, said",
    [
        ("", {}, []),
        ("", {"skipped": True, "changed": False}, []),
        ("", {**WRITTEN, "changed": False}, []),
        ("", WRITTEN, ["write /a", "delete /b"]),
        ("", {**WRITTEN, "paths": []}, ["reload, because x"]),
        ("", {**WRITTEN, "paths": [], "stale": []}, ["run systemctl start c"]),
        ("", {"changed": True, "steps": ["start a", "reload b"]}, ["start a", "reload b"]),
        ("install a", {"changed": True, "results": ["Installed: a-1-2.el9.x86_64"], "rc": 0}, ["install a"]),  # dnf's
        ("load", {"changed": True, "not_in_force": ["onprem_lb_api"]}, ["load onprem_lb_api"]),
        ("start or reload", {"changed": True, "pods": ["a", "b"]}, ["start or reload a, b"]),
        ("", {"changed": True, "state": "absent", "path": "/a"}, ["delete /a"]),
        ("", {"changed": True, "state": "directory", "path": "/a"}, ["create /a"]),
        ("write /a", {"changed": True, "path": "/a"}, ["write /a"]),
        ("stop for the change", {"changed": True, "name": UNIT, "state": "stopped"}, [f"stop for the change {UNIT}"]),
        ("", {"changed": True, "name": UNIT, "state": "stopped"}, [f"stop {UNIT}"]),
        ("reload", {"changed": True, "name": UNIT, "state": "started"}, [f"reload {UNIT}"]),
        ("remove haproxy", {"changed": True, "stdout": "..."}, ["remove haproxy"]),
        ("", {"changed": True, "results": [{"changed": True, "path": "/a", "state": "absent"}, {}]}, ["delete /a"]),
    ],
)
def test_what_a_task_has_changed_is_said(word, result, said):
    assert outcome.steps([word], [result]) == said


@pytest.mark.parametrize("before, said", [("active", "reload"), ("inactive", "start"), ("failed", "start")])
def test_a_unit_that_did_not_run_was_started_whatever_its_task_asked_for(before, said):
    result = {"changed": True, "name": UNIT, "state": "started", "status": {"ActiveState": before}}
    assert outcome.steps(["reload"], [result]) == [f"{said} {UNIT}"]


def test_what_several_tasks_have_done_alike_is_said_together_and_once():
    done = [{"changed": True, "paths": [path]} for path in ("/a", "/b", "/a")]
    assert outcome.steps([""] * 3, done) == ["write /a, /b"]


def test_a_service_without_a_server_is_said_at_the_end_of_a_run_that_is_not_dry():
    sentence = "No server of web is up (0 of 2), so its clients get no answer."
    members = [member("lb1", unserved=[sentence]), member("lb2", unserved=[sentence])]
    assert f"lb1, lb2: {sentence}" in outcome.lines(members, [], False)
    assert sentence not in str(outcome.lines(members, [], True))


def test_a_dry_run_says_what_would_change_and_proves_nothing():
    dry = [member("lb1", held=None), member("lb2", held=None, steps=["write /etc/keepalived/keepalived.conf"])]
    assert outcome.lines(dry, [], True) == [
        "lb1: nothing would change.",
        "lb2: to do: write /etc/keepalived/keepalived.conf.",
        f"Statistics on lb1, lb2: {PAGE}",
        "Next: run the same command without --check.",
    ]


def test_what_was_not_verified_is_said():
    unverified = outcome.lines([member("lb1", held=None), member("lb2", held=None)], ["lb3"], False)
    assert "Not verified: lb1, lb2, lb3." in unverified and not any("held" in line for line in unverified)


def test_a_member_that_the_limit_leaves_out_may_hold_a_vip():
    assert f"{VIP} is held by a member outside --limit." in outcome.lines([member("lb2")], ["lb1"], False)


def test_each_of_several_pairs_holds_its_own():
    other = [member("lb3", vips=[VIP6]), member("lb4", vips=[VIP6], held=[VIP6])]
    assert outcome.lines([*pair(), *other], [], False)[:2] == [f"{VIP} is held by lb1.", f"{VIP6} is held by lb4."]


@pytest.mark.parametrize(
    "given, line",
    [
        ({"port": 9001, "address": "::1", "uri": "/stats"}, ["Statistics on lb1: http://[::1]:9001/stats"]),
        ({"enabled": "false"}, []),
    ],
)
def test_the_statistics_are_where_the_user_wants_them(given, line):
    said = outcome.lines([member("lb1", statistics={**UNSET, **given})], [], False)
    assert [each for each in said if "Statistics" in each] == line


def test_a_member_that_did_not_answer_gets_its_changes_later():
    said = outcome.lines([], ["lb2"], dry=False, silent=["lb2"])
    assert said[:1] == ["Not verified: lb2."]
    assert said[-2] == "Next: when lb2 answers, run the same command without --limit to bring it up to date."
    assert "when lb2 answers" not in " ".join(outcome.lines([], ["lb2"], dry=False))


@pytest.mark.parametrize("held", [None, ""], ids=["ansible-core 2.19", "before"])
def test_what_was_not_verified_is_held_by_nobody_known(held):
    said = outcome.lines([member("lb1", held=held)], [], False)
    assert "Not verified: lb1." in said and not any("is held by" in line for line in said)
