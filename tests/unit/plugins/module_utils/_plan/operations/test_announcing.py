# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the status says of members that announce their VIPs by BGP, as a user reads it."""

from __future__ import annotations

import copy
import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.outside import SYMPTOMS
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.status import (
    COMPARED,
    Beside,
    questions,
    status,
)
from support.members import DOWN, RECORD, SECOND, VIP, announcer, firewall, host, pair, seen, session

SIX = "2001:db8::10"
UNREACHED = "cannot be reached: ssh: connect to host: No route to host."
MAINTAINED = {**RECORD, "during": "maintenance"}
RECORD_FILE = "/var/lib/onprem.lb/maintenance.json"
GATE_SILENT = "onprem-lb-anycast.service does not answer, so that no VIP is put on lo or taken away."
GATE_STOPPED = "onprem-lb-anycast.service does not run."
OFF = {VIP: "failed"}
NOBODY = f"see 'Nobody announces the VIP' in {SYMPTOMS}."
IDLE = session("Active")


def bgp(first, second, **shared):
    return pair(first, second, reach="bgp", **shared)


def said(given, **more):
    """The lines without the tables, and the sentences for which the playbook fails."""
    found = status(given, Beside(**more))
    return [line for line in found.lines if not line.startswith("|") and line != COMPARED], found.faults


def test_a_pair_that_does_well_is_one_screen():
    found = status(bgp(announcer(1), announcer(2, sessions=[session(peer="198.51.100.1", bfd="")])))
    assert found.lines == [
        "192.0.2.10 is announced by lb1 and lb2.",
        "| member | engine | versions                  | VIPs announced | could serve | servers up |",
        "|--------|--------|---------------------------|----------------|-------------|------------|",
        "| lb1    | native | haproxy 2.6.12, frr 8.4.4 | 1 of 1         | yes         | 2 of 2     |",
        "| lb2    | native | haproxy 2.6.12, frr 8.4.4 | 1 of 1         | yes         | 2 of 2     |",
        "| member | router       | family | state       | for        | VIPs out | BFD  |",
        "|--------|--------------|--------|-------------|------------|----------|------|",
        "| lb1    | 192.0.2.1    | ipv4   | Established | 3 h 12 min | 1        | up   |",
        "| lb2    | 198.51.100.1 | ipv4   | Established | 3 h 12 min | 1        | none |",
        COMPARED,
    ]
    assert found.faults == []


@pytest.mark.parametrize(
    "found, why",
    [
        (announcer(2, OFF, unable=["haproxy.service does not run."]), "haproxy.service does not run."),
        (announcer(2, OFF), "haproxy_down: 1."),
        (announcer(2, {VIP: "held_back"}), "held back by anna."),
        (
            announcer(2, {VIP: "held_back"}, held_back=MAINTAINED),
            f"it is held back since 2026-01-31 12:00 UTC by anna, as long as {RECORD_FILE} is there. "
            "onprem.lb.maintenance goes on with it, and onprem.lb.site brings it back at once.",
        ),
        (announcer(2, {VIP: "not_known"}), "Nothing is added while something is not known: haproxy_answers."),
        (announcer(2, {VIP: ""}), GATE_SILENT),
        (announcer(2, {VIP: ""}, unable=[GATE_STOPPED]), GATE_STOPPED),
        (announcer(2, held=[]), f"The kernel has not taken {VIP} on lo."),
        (announcer(2, sessions=[IDLE]), "No session is established (192.0.2.1 Active)."),
        (
            announcer(2, sessions=[IDLE, session("Connect", "192.0.2.2")]),
            "No session is established (192.0.2.1 Active; 192.0.2.2 Connect).",
        ),
        (announcer(2, sessions=[session(sent=0, announces=False)]), "FRR sends no VIP to 192.0.2.1."),
        (announcer(2, sessions=[session(family="ipv6")]), "FRR has no session for ipv4."),
        (
            announcer(2, sessions=[IDLE], silent="FRR does not answer (bgpd is not running)."),
            "FRR does not answer (bgpd is not running).",
        ),
        (
            announcer(2, sessions=[IDLE], silent="FRR does not answer.", unable=["frr.service does not run."]),
            "frr.service does not run.",
        ),
        (seen(2, [VIP], router="keepalived.service"), "VRRP moves its VIPs."),
        (seen(2, engine="", instances=[], unable=["nothing is set up here."]), "nothing is set up here."),
    ],
)
def test_why_a_member_does_not_announce_what_it_should(found, why):
    lines, faults = said(bgp(announcer(1), found))
    assert faults == [f"lb2 does not announce {VIP}: {why}"] and faults[0] in lines
    assert lines[0] == f"{VIP} is announced by lb1."


def test_of_one_whose_frr_hangs_nobody_knows():
    hangs = announcer(2, sessions=[IDLE], sessions_known=False, silent="FRR does not answer.")
    lines, faults = said(bgp(announcer(1), hangs))
    assert lines[0] == f"{VIP} is announced by lb1; whether lb2 does is not known."
    assert faults == [f"Whether lb2 announces {VIP} is not known: FRR does not answer."]
    assert any("| lb2 " in line and "| unknown " in line for line in status(bgp(announcer(1), hangs)).lines)
    lines, faults = said(bgp(announcer(1, OFF), hangs))
    assert lines[0] == f"{VIP} is announced by nobody; whether lb2 does is not known."
    assert faults[0] == f"No member is known to announce {VIP}: {NOBODY}"


def test_nobody_announces_a_vip():
    lines, faults = said(bgp(announcer(1, OFF), announcer(2, sessions=[IDLE])))
    assert lines[0] == f"{VIP} is announced by nobody."
    assert faults[0] == f"No member announces {VIP}: {NOBODY}" and len(faults) == 3


def test_what_was_not_read_may_announce():
    assert said(bgp(announcer(1), DOWN))[1] == [f"lb2 {UNREACHED}"]
    assert f"No member is known to announce {VIP}: {NOBODY}" in said(bgp(announcer(1, OFF), DOWN))[1]
    assert said(bgp(DOWN, DOWN))[1] == [f"{name} {UNREACHED}" for name in ("lb1", "lb2")]
    alone = [host("lb1", announcer(1, OFF), reach="bgp")]
    assert f"No member is known to announce {VIP}: {NOBODY}" in said(alone)[1]


def test_each_family_has_sessions_of_its_own():
    both = {VIP: "serves", SIX: "serves"}
    lines, faults = said(bgp(announcer(1, both), announcer(2, both), vips=(VIP, SIX)))
    assert lines[:2] == [f"{VIP} is announced by lb1 and lb2.", f"{SIX} is announced by nobody."]
    assert f"lb1 does not announce {SIX}: FRR has no session for ipv6." in faults


def test_one_fault_names_all_vips_and_each_reason_once():
    lines, faults = said(bgp(announcer(1), announcer(2, {VIP: "failed", SECOND: "failed"}), vips=(VIP, SECOND)))
    assert f"lb2 does not announce {VIP} and {SECOND}: haproxy_down: 1." in faults


@pytest.mark.parametrize("sent, fault", [(1, ["FRR has sent 192.0.2.1 1 of 2 VIPs."]), (2, []), (3, [])])
def test_a_router_that_was_sent_a_part_of_the_vips_is_named(sent, fault):
    both = {VIP: "serves", SECOND: "serves", SIX: "serves"}
    of_six = session(peer="2001:db8::1", family="ipv6")
    given = bgp(
        announcer(1, both, sessions=[session(sent=sent), of_six]),
        announcer(2, both, sessions=[session(sent=2), of_six]),
        vips=(VIP, SECOND, SIX),
    )
    assert said(given)[1] == [f"lb1 announces its VIPs, but: {why}" for why in fault]


def test_a_router_that_is_gone_is_told_where_another_one_is_left():
    two = announcer(1, sessions=[session(), session("Active", "198.51.100.1")])
    lines, faults = said(bgp(two, announcer(2)))
    assert lines[1:] == ["lb1 has no session with 198.51.100.1; other routers have its VIPs."] and faults == []


@pytest.mark.parametrize(
    "found, why",
    [
        (
            {"would_not_start": ["haproxy.service would not start again: no."]},
            "haproxy.service would not start again: no.",
        ),
        ({"unable": ["onprem-lb-anycast.service does not run."]}, "onprem-lb-anycast.service does not run."),
        ({"reasons": {VIP: ""}, "held": [{"address": VIP, "seconds": None}]}, GATE_SILENT),
        (
            {"drained": True},
            "FRR drains it (bgp graceful-shutdown), so that routers prefer the other members: onprem.lb.switchover -e "
            "switchover_back=true or onprem.lb.site ends that.",
        ),
        ({"problems": ["The last change was refused."]}, "The last change was refused."),
    ],
)
def test_one_that_announces_and_is_not_sound_says_so(found, why):
    assert said(bgp(announcer(1), announcer(2, **found)))[1] == [f"lb2 announces its VIPs, but: {why}"]


def test_what_is_strange_and_no_fault_is_told():
    found = announcer(1, answering={VIP: ["02:00:00:00:00:63", "02:00:00:00:00:02"]})
    found["announcing"]["vips"][0]["elsewhere"] = ["eth1"]
    lines, faults = said(bgp(found, announcer(2)))
    assert lines[1:] == [
        f"lb1 has {VIP} on eth1 as well.",
        f"Another host (02:00:00:00:00:63) answers for {VIP} on a link of the members.",
    ]
    assert faults == []


def planned(**announced):
    members = {name: {"opens": [], "left_to_user": "", "announces": vips} for name, vips in announced.items()}
    return [{"faults": [], "targets": [], "members": members}]


def test_a_member_should_announce_what_the_plan_has_for_it():
    both = announcer(1, {VIP: "serves", SECOND: "serves"}, sessions=[session(sent=2)])
    given = bgp(both, announcer(2), vips=(VIP, SECOND))
    assert said(given)[1] == []
    plans = planned(lb1=[VIP, SECOND], lb2=[VIP, SECOND])
    assert said(given, plans=plans)[1] == [f"lb2 does not announce {SECOND}: {SECOND} is not in its configuration."]
    assert said(given, plans=planned(lb1=[VIP, SECOND], lb2=[VIP]))[1] == []
    assert "| 1 of 1 " in "".join(status(given, Beside(plans=planned(lb1=[VIP], lb2=[VIP]))).lines)
    bare = seen(2, engine="", instances=[], unable=["nothing is set up here."])
    assert said(bgp(announcer(1), bare), plans=planned(lb1=[VIP], lb2=[]))[1] == []


def test_the_way_to_bgp_and_back_is_a_difference():
    old = seen(2, [VIP], router="keepalived.service")
    assert "lb2 was set up for VRRP (keepalived.service), and the inventory has BGP." in said(bgp(announcer(1), old))[0]
    lines, _faults = said(pair(seen(1, [VIP]), announcer(2)))
    assert "lb2 was set up for BGP, and the inventory has VRRP." in lines


def test_a_host_that_is_no_member_asks_once_at_each_port_of_a_vip_that_is_announced():
    ports = {"ports_of_vips": {VIP: [80, 443]}}
    assert questions(bgp(announcer(1, **ports), announcer(2, **ports)))["targets"] == [[VIP, 80], [VIP, 443]]
    assert questions(bgp(announcer(1, OFF, **ports), announcer(2, sessions=[IDLE], **ports)))["targets"] == []
    hangs = announcer(2, sessions=[IDLE], sessions_known=False, silent="FRR does not answer.", **ports)
    assert questions(bgp(announcer(1, OFF, **ports), hangs))["targets"] == [[VIP, 80], [VIP, 443]]
    assert questions(bgp(DOWN, DOWN))["targets"] == []
    mute = f"{VIP} accepts no connection from client: see 'The VIP is held but nothing answers' in {SYMPTOMS}."
    assert mute in said(bgp(announcer(1), announcer(2)), probe="client", heard={"reached": []})[1]


def test_its_firewall_is_asked_for_clients_alone():
    found = announcer(2, **firewall(closed=[[VIP, 80], [VIP, 443]], open=[], unknown=""))
    (fault,) = said(bgp(announcer(1), found))[1]
    assert fault.startswith("lb2 announces its VIPs, but: Its firewall (chain inet filter input) lets in no client at")
    found = announcer(2, **firewall(unknown="nft says: no"))
    assert (
        "Whether the firewall of lb2 let in clients and routers is not known: nft says: no."
        in said(bgp(announcer(1), found))[0]
    )


def test_what_a_program_reads():
    data = status(bgp(announcer(1), announcer(2, sessions=[IDLE], sessions_known=False))).data["layouts"][0]
    assert data["vips"] == [{"address": VIP, "announced_by": ["lb1"], "unknown": ["lb2"]}]
    first = data["members"][0]
    assert (first["could_serve"], first["reasons"], "could_take_over" in first) == (True, [], False)
    assert first["announcing"]["sessions"] == [session()] and first["held"][0]["address"] == VIP
    assert status(bgp(DOWN, DOWN)).data["layouts"][0]["members"][0]["could_serve"] is None


STATES = [
    announcer(1),
    announcer(1, OFF),
    announcer(1, sessions=[IDLE]),
    announcer(1, {VIP: ""}, sessions=[IDLE], sessions_known=False, silent="FRR does not answer."),
    announcer(1, sessions=[IDLE], sessions_known=False, silent="FRR does not answer."),
    DOWN,
    seen(1, [VIP], router="keepalived.service"),
]


@pytest.mark.parametrize("first, second", [*itertools.product(STATES, STATES)])
def test_all_is_well_only_if_each_member_is_known_to_announce(first, second):
    """And it is said of no VIP that nobody announces it where one member does."""
    given = bgp(copy.deepcopy(first), copy.deepcopy(second))
    _lines, faults = said(given)
    assert (not faults) == (first is STATES[0] and second is STATES[0])
    of_vip = [fault for fault in faults if fault.startswith("No member")]
    none_read = first is DOWN and second is DOWN
    assert bool(of_vip) == (first is not STATES[0] and second is not STATES[0] and not none_read)
