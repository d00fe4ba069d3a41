# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the status says of members, as a user reads it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.outside import SYMPTOMS, duration
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.status import (
    COMPARED,
    Beside,
    faults_after_return,
    questions,
    status,
)
from support.members import DOWN, RECORD, SECOND, VIP, firewall, host, pair, seen
from support.paths import ROOT

HOLDS = seen(1, [VIP])
UNASKED = "Nothing was asked through the VIPs."
SEVERAL = "See 'Several members hold the VIP' in docs/symptoms.md."


def said(given, **more):
    """The lines without the table, and the sentences for which the playbook fails."""
    found = status(given, Beside(**more))
    return [line for line in found.lines if not line.startswith("|") and line != COMPARED], found.faults


def test_a_pair_that_does_well_is_one_screen():
    assert status(pair(HOLDS, seen(2))).lines == [
        "192.0.2.10 is held by lb1, for 3 h 12 min.",
        "| member | engine | versions                         | VIPs held | could take over | servers up |",
        "|--------|--------|----------------------------------|-----------|-----------------|------------|",
        "| lb1    | native | haproxy 2.6.12, keepalived 2.2.7 | 1 of 1    | yes             | 2 of 2     |",
        "| lb2    | native | haproxy 2.6.12, keepalived 2.2.7 | 0 of 1    | yes             | 2 of 2     |",
        "Only the inventory's VIPs, members and engines were compared; onprem.lb.site --check --diff compares "
        "everything.",
    ]
    assert status(pair(HOLDS, seen(2))).faults == []


def test_after_a_return_the_vips_of_the_state_count_and_not_those_of_the_inventory():
    returned = pair(HOLDS, seen(2), vips=(SECOND,))
    assert status(returned).faults == [f"{SECOND} has no holder: see 'Nobody holds the VIP' in {SYMPTOMS}."]
    assert faults_after_return(returned) == []
    assert "has no holder" in faults_after_return(pair(seen(1), seen(2), vips=(SECOND,)))[0]
    assert "has 2 holders" in faults_after_return(pair(HOLDS, seen(2, [VIP])))[0]
    bare = {"instances": []}
    assert faults_after_return(pair(seen(1, **bare), seen(2, **bare)))[0] == "lb1, lb2: no configuration has a VIP."


def test_a_host_that_is_no_member_asks_at_the_ports_of_each_vip_that_has_one_holder():
    both = {"vips": (VIP, SECOND)}
    ports = {"ports_of_vips": {VIP: [80, 443], SECOND: [443]}}
    asked = questions(pair(seen(1, [VIP], **ports), seen(2, [SECOND], **ports), **both))["targets"]
    assert asked == [[VIP, 80], [VIP, 443], [SECOND, 443]]
    assert questions(pair(seen(1, [VIP], **ports), seen(2, [VIP], **ports), **both))["targets"] == []
    assert questions(pair(DOWN, DOWN))["targets"] == []


def test_it_asks_where_the_plan_has_clients_connect_first():
    """A cluster's redirect leads to the balancer's own port; no balancer of ours is behind its ingress VIP."""
    plans = [{"targets": [[VIP, 6443], [SECOND, 80], [SECOND, 443], ["192.0.2.99", 1]]}]
    ports = {"ports_of_vips": {VIP: [9445, 6443]}}
    given = pair(seen(1, [VIP, SECOND], **ports), seen(2), vips=(VIP, SECOND))
    assert questions(given, plans)["targets"] == [[VIP, 6443], [VIP, 9445], [SECOND, 80], [SECOND, 443]]


def test_what_a_host_that_is_no_member_hears_is_said_after_the_members():
    mute = f"{VIP} accepts no connection from client: see 'The VIP is held but nothing answers' in {SYMPTOMS}."
    lines, faults = said(pair(HOLDS, seen(2)), probe="client", heard={"reached": []})
    assert lines[1:] == [mute] == faults


def planned(*ports, variable=""):
    member = {"opens": ports, "left_to_user": variable}
    return [{"faults": [], "targets": [], "members": dict.fromkeys(("lb1", "lb2"), member)}]


CLOSED = {"closed": [[VIP, 443]], "open": [[VIP, 80]]}
ALL = {"closed": [[VIP, 80], [VIP, 443]], "open": []}
BOTH = f"{VIP} and {SECOND}"
OWN = "open it, as no run does (pair_firewall: false)."
AGAIN = "onprem.lb.site opens it again."


@pytest.mark.parametrize(
    "found, plans, reason",
    [
        (CLOSED, planned(80, 443), f"no client at port 443 of {VIP}: {AGAIN}"),
        (CLOSED, planned(80), ""),
        (CLOSED, [], ""),
        (ALL, [], f"no client at ports 80 and 443 of {VIP}: {AGAIN}"),
        (ALL, planned(variable="pair_firewall"), ""),
        ({**ALL, "vrrp": [""]}, planned(variable="pair_firewall"), f"no VRRP: {OWN}"),
        (
            {"closed": [[VIP, 443], [SECOND, 443]], "open": []},
            [],
            f"no client at port 443 of {BOTH}: {AGAIN}",
        ),
        ({"vrrp": ["192.0.2.1"]}, planned(80), f"no VRRP from 192.0.2.1: {AGAIN}"),
        ({"vrrp": [""]}, planned(80), f"no VRRP: {AGAIN}"),
        ({**CLOSED, "vrrp": [""]}, planned(443), f"no client at port 443 of {VIP} and no VRRP: {AGAIN}"),
        (
            {"closed": [[VIP, port] for port in (80, 443, 8443)], "open": [], "vrrp": ["192.0.2.1", "192.0.2.3"]},
            [],
            f"no client at ports 80, 443 and 8443 of {VIP}, no VRRP from 192.0.2.1 and no VRRP from 192.0.2.3: {AGAIN}",
        ),
        ({}, planned(80, 443), ""),
        ({"unknown": "nft says: no"}, planned(80, 443), ""),
    ],
)
def test_a_member_whose_firewall_refuses_what_the_plan_opens_could_not_take_over(found, plans, reason):
    lines, faults = said(pair(HOLDS, seen(2, **firewall(**found))), plans=plans)
    sentence = f"lb2 could not take over: Its firewall (chain inet filter input) lets in {reason}"
    assert faults == ([sentence] if reason else []) and (sentence in lines) == bool(reason)


def test_a_plan_with_faults_is_not_compared_and_the_first_one_is_said():
    plans = [{"faults": ["pair_vips is wrong.", "So is this."], "targets": [], "members": {}}]
    lines, faults = said(pair(HOLDS, seen(2)), plans=plans)
    assert faults == [] and lines[1:] == [
        "What the inventory plans was not compared with firewalls and answers: pair_vips is wrong."
    ]


def test_a_firewall_that_nobody_can_read_is_said_to_be_unknown_once_for_all_members():
    why = firewall(unknown="nft is missing (package nftables)")
    lines, faults = said(pair(seen(1, [VIP], **why), seen(2, **why)))
    assert faults == [] and lines[1:] == [
        "Whether the firewalls of lb1 and lb2 let in clients and VRRP is not known: nft is missing (package nftables)."
    ]
    assert said(pair(HOLDS, seen(2, engine="", unable=["none"], **why)))[0][-1] == "lb2 could not take over: none"


def test_a_file_system_without_room_is_said_with_its_mend_and_is_no_fault():
    full = "/run cannot be written (No space left on device): make room on its file system."
    lines, faults = said(pair(HOLDS, seen(2, full=[full])))
    assert lines[1:] == [f"lb2: {full}"] and faults == []


def test_the_version_that_has_set_a_member_up_is_shown_and_named_where_it_is_not_this_one():
    found = status(pair(seen(1, [VIP], written_by=VERSION), seen(2, written_by="1.0.0")))
    assert f"| onprem.lb {VERSION}, haproxy 2.6.12, keepalived 2.2.7 |" in found.lines[3]
    assert "| onprem.lb 1.0.0, haproxy 2.6.12, " in found.lines[4]
    assert [line for line in found.lines if "was set up by" in line] == [
        f"lb2 was set up by onprem.lb 1.0.0, and this is {VERSION}."
    ]
    assert [member["written_by"] for member in found.data["layouts"][0]["members"]] == [VERSION, "1.0.0"]


def test_a_member_whose_keepalived_has_no_hook_is_named():
    lines, faults = said(pair(HOLDS, seen(2, resigns_when_killed=False)))
    assert faults == [] and [line for line in lines if "hook" in line] == [
        "lb2's keepalived has no hook: if it is killed, the others take its VIPs only after an Active_Down_Interval. "
        "onprem.lb.site writes the hook."
    ]


def test_a_member_that_could_not_take_over_is_named_with_every_reason():
    reasons = ["vip-192.0.2.10 is in FAULT: script chk failed.", "/run/haproxy.down says 1, that the balancer is down."]
    lines, faults = said(pair(HOLDS, seen(2, unable=reasons)))
    assert faults == [f"lb2 could not take over: {reasons[0]} {reasons[1]}"]
    assert faults[0] in lines
    assert status(pair(HOLDS, seen(2, unable=reasons))).lines[4].split(" | ")[4].strip() == "no"


def test_a_certificate_that_was_replaced_is_said_and_is_no_fault():
    sentence = "haproxy.service has not loaded /etc/haproxy/web.pem since it changed."
    lines, faults = said(pair(HOLDS, seen(2, replaced=[sentence])))
    assert faults == [] and f"lb2: {sentence}" in lines


def test_a_member_whose_program_would_not_start_again_is_none_that_could_take_over():
    why = "haproxy.service would not start again: [ALERT] : /etc/haproxy/web.pem: no private key"
    lines, faults = said(pair(HOLDS, seen(2, would_not_start=[why])))
    assert faults == [f"lb2 could not take over: {why}"] and faults[0] in lines


@pytest.mark.parametrize(
    "during, sentence",
    [
        (
            "switchover",
            "when anna handed the VIPs over to lb2. onprem.lb.switchover -e switchover_back=true, onprem.lb.site or a "
            "reboot of it brings it back.",
        ),
        (
            "maintenance",
            "when anna began its maintenance. onprem.lb.maintenance goes on with it, and onprem.lb.site brings it back "
            "at once.",
        ),
    ],
)
def test_a_member_that_is_held_back_is_told_from_one_that_failed_and_with_its_mend(during, sentence):
    lines, faults = said(pair(seen(1, held_back={**RECORD, "during": during}), seen(2, [VIP])))
    assert faults == [f"lb1 could not take over: its router is stopped since 2026-01-31 12:00 UTC, {sentence}"]
    assert faults[0] in lines


def test_a_member_that_does_not_answer_is_named_and_the_others_are_shown():
    lines, faults = said(pair(HOLDS, DOWN))
    sentence = "lb2 cannot be reached: ssh: connect to host: No route to host."
    assert lines == ["192.0.2.10 is held by lb1, for 3 h 12 min.", sentence]
    assert faults == lines[1:]
    assert status(pair(HOLDS, DOWN)).lines[4].count("unknown") == 5


@pytest.mark.parametrize(
    "said_by_ansible, cause",
    [
        ("Failed to connect to the host via ssh: ssh: no route", "ssh: no route"),
        (
            'Task failed: Data could not be sent to "lb2". Make sure this host can be reached over ssh: no route',
            "no route",
        ),
        ("Task failed: there is none.", "there is none"),
    ],
)
def test_of_what_ansible_says_the_cause_remains(said_by_ansible, cause):
    down = {"unreachable": True, "msg": said_by_ansible}
    assert status(pair(HOLDS, down)).faults == [f"lb2 cannot be reached: {cause}."]


def test_a_host_that_fails_the_reading_says_why():
    (fault,) = said(pair(HOLDS, {"failed": True, "msg": "There is no permission\nto open raw sockets"}))[1]
    assert fault == "lb2 cannot be read: There is no permission to open raw sockets."


def test_nobody_who_was_read_means_that_nothing_is_said_of_the_vips():
    lines, faults = said(pair(DOWN, DOWN))
    assert not any(VIP in line for line in lines + faults) and len(faults) == 2


@pytest.mark.parametrize(
    "first, second, line, fault",
    [
        (seen(1), seen(2), "is held by nobody.", "has no holder: see 'Nobody holds the VIP' in docs/symptoms.md."),
        (HOLDS, seen(2, [VIP]), "is held by lb1 and lb2.", f"has 2 holders: lb1, lb2. {SEVERAL}"),
        (
            seen(1, [VIP], answering={VIP: ["02:00:00:00:00:63"]}),
            seen(2),
            "is held by lb1 and another host (02:00:00:00:00:63).",
            f"has 2 holders: lb1, another host (02:00:00:00:00:63). {SEVERAL}",
        ),
    ],
    ids=["none", "two members", "a stranger"],
)
def test_a_vip_without_exactly_one_holder_is_a_fault(first, second, line, fault):
    lines, faults = said(pair(first, second))
    assert lines[0] == f"{VIP} {line}" and faults == [f"{VIP} {fault}"]


def test_a_member_that_answers_for_its_vip_is_no_stranger():
    both = {"answering": {VIP: ["02:00:00:00:00:01"]}}
    assert said(pair(HOLDS, seen(2, **both)))[1] == []


def test_a_member_outside_limit_is_named_and_not_judged():
    (only,) = pair(seen(2, answering={VIP: ["02:00:00:00:00:01"]}), seen(2))[:1]
    lines, faults = said([{**only, "name": "lb2"}])
    assert faults == []
    assert lines == [
        "192.0.2.10 is held by another host (02:00:00:00:00:01).",
        "lb1 was not read: it is outside --limit.",
    ]


def test_servers_that_are_down_are_named_by_their_states():
    others = [
        {"service": "web", "name": "app1", "state": "down"},
        {"service": "web", "name": "app2", "state": "maint"},
        {"service": "api", "name": "m1", "state": "down"},
    ]
    lines, faults = said(pair(HOLDS, seen(2, servers={"total": 5, "up": 2, "others": others})))
    assert lines[1:] == [
        "On lb2 these servers are down: web/app1, api/m1.",
        "On lb2 these servers are maint: web/app2.",
    ]
    assert faults == []


def test_a_balancer_that_does_not_follow_its_cluster_is_named_and_is_no_fault():
    lines, faults = said(pair(HOLDS, seen(2, not_following=["https://127.0.0.1:6443: Connection refused."])))
    assert lines[1:] == ["lb2 does not follow its cluster: https://127.0.0.1:6443: Connection refused."]
    assert faults == []


def test_a_direct_plane_that_lacks_servers_is_named_and_is_no_fault():
    lines, faults = said(pair(HOLDS, seen(2, direct=["these servers get no new connections: api/b (down)."])))
    assert lines[1:] == ["lb2's direct plane: these servers get no new connections: api/b (down)."]
    assert faults == []


def test_a_resolver_that_is_not_asked_is_named_and_is_no_fault():
    lines, faults = said(pair(HOLDS, seen(2, names=["onprem-lb-resolver.service does not run."])))
    assert lines[1:] == ["lb2's names: onprem-lb-resolver.service does not run."]
    assert faults == []


def test_what_differs_from_the_inventory_is_said_and_is_no_fault():
    members = {"lb1": ["192.0.2.1"], "lb3": ["192.0.2.3"]}
    first = seen(1, [VIP], stale=["haproxy.service has not loaded haproxy.cfg since it changed."], members=members)
    given = [{**each, "vips": [f"{SECOND}/24"], "engine": "agent"} for each in pair(first, seen(2, engine=""))]
    lines = said(given)[0]
    assert lines[2:] == [
        "lb1: haproxy.service has not loaded haproxy.cfg since it changed.",
        "lb1 runs the engine native, and the inventory says agent.",
        f"{SECOND} is a VIP in the inventory, but in no member's configuration.",
        f"{VIP} is a VIP in the members' configuration, but not in the inventory.",
        "lb3 was a member in the last run, but is not in the inventory.",
        "lb2 is a member in the inventory, but was not one in the last run.",
    ]
    assert said(given)[1] == [f"{SECOND} has no holder: see 'Nobody holds the VIP' in docs/symptoms.md."]


def test_vips_are_read_as_a_user_writes_them():
    second = {"address": "2001:DB8::0a/64"}
    (found,) = status(pair(HOLDS, seen(2), vips=[f"{VIP}/24", second, "no address"])).data["layouts"]
    assert [vip["address"] for vip in found["vips"]] == [VIP, "2001:db8::a"]


def test_two_pairs_are_shown_one_after_the_other():
    more = [host("lb3", seen(3, [SECOND]), ["lb3"], [SECOND])]
    lines = status([*pair(HOLDS, seen(2)), *more]).lines
    assert [line for line in lines if "held by" in line] == [
        f"{VIP} is held by lb1, for 3 h 12 min.",
        f"{SECOND} is held by lb3, for 3 h 12 min.",
        f"{VIP} is held by nobody.",
    ]
    assert sum(line.startswith("| member") for line in lines) == 2


def test_the_last_drill_is_said_where_there_is_a_report():
    drill = {"at": 1769860800, "rows": [{"worst_ms": 12.4}, {"worst_ms": 3011.8}], "faults": []}
    assert said(pair(HOLDS, seen(2)), drill=drill)[0][-1] == (
        "The last drill was at 2026-01-31 12:00 UTC: 2 events, 3012 ms at worst, as planned."
    )
    assert said(pair(HOLDS, seen(2)), drill={"at": 1769860800, "wrong": "it is not JSON"})[0][-1] == (
        "The report of 2026-01-31 12:00 UTC is skipped: it is not JSON."
    )
    assert said(pair(HOLDS, seen(2)), drill={**drill, "faults": ["slow"]})[0][-1].endswith("at worst, 1 faults.")
    rows = [{**drill["rows"][0], "worst_ms": worst} for worst in (None, 3012, 5)]
    assert "3 events, 3012 ms at worst, " in said(pair(HOLDS, seen(2)), drill={**drill, "rows": rows})[0][-1]
    assert ": 1 events, none measured, " in said(pair(HOLDS, seen(2)), drill={**drill, "rows": rows[:1]})[0][-1]


def test_the_json_has_what_the_lines_say():
    data = json.loads(json.dumps(status(pair(HOLDS, seen(2, unable=["keepalived.service does not run."]))).data))
    (layout,) = data["layouts"]
    assert layout["vips"] == [{"address": VIP, "holders": ["lb1"], "strangers": [], "seconds": 11520}]
    assert [(each["name"], each["could_take_over"], each["reasons"]) for each in layout["members"]] == [
        ("lb1", True, []),
        ("lb2", False, ["keepalived.service does not run."]),
    ]
    assert data["faults"] == ["lb2 could not take over: keepalived.service does not run."] and "drill" not in data


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (3600, "1 h 0 min"), (90000, "1 d 1 h")],
)
def test_a_time_is_told_in_its_two_largest_units(seconds, text):
    assert duration(seconds) == text


def test_the_symptoms_that_it_refers_to_have_a_section():
    sections = (ROOT / SYMPTOMS).read_text()
    assert "\n## Nobody holds the VIP\n" in sections and "\n## Several members hold the VIP\n" in sections


def test_a_change_that_is_not_confirmed_is_named_with_its_mend():
    told = "has returned to what it ran before 20260131T120000Z. The next run of onprem.lb.site repairs that."
    found = status(pair(seen(1, [VIP]), seen(2, undo=told)))
    assert f"lb2 {told}" in found.lines
    assert [member["undo"] for member in found.data["layouts"][0]["members"]] == ["", told]


def test_a_member_whose_resolver_has_the_names_of_before_is_named():
    """As after a run with --limit to others. Without a plan nobody knows what it is to answer."""
    names = {"api.lab.example.com": [VIP]}
    plans = [{**each, "names": names} for each in planned(443)]
    given = pair(seen(1, [VIP], named=names), seen(2, named={"api.lab.example.com": [SECOND]}))
    (line,) = [line for line in said(given, plans=plans)[0] if "resolver" in line]
    assert line.startswith(f"lb2: the resolver leads api.lab.example.com to {SECOND}, and not to {VIP}.")
    for some in ((), planned(443), [{**each, "names": {}} for each in plans]):
        assert "resolver" not in str(said(given, plans=some))
