# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a member that announces its VIPs by BGP leaves and comes back: when it may, in which order, and what it costs."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp.leaving import VTYSH
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import (
    draining,
    maintenance,
    members,
    status,
    switchover,
)
from support.members import DOWN, NAMES, RECORD, SECOND, VIP, announcer, host, pair, seen, session
from support.paths import ROOT

SIX = "2001:db8::10"
THREE = ("lb1", "lb2", "lb3")
WORK = "it reboots"
MAINTAINED = {**RECORD, "during": "maintenance", "work": WORK, "done": ""}
HANGS = {"sessions_known": False, "silent": "FRR does not answer.", "sessions": [session("Active")]}


def of(*found, names=NAMES, vips=(VIP,)):
    """Return the hosts of a play, as many as are given, all of whose names are known."""
    return [host(name, each, names, vips, "bgp") for name, each in zip(names, found)]


def from_lb1(*found, wait=10, **shared):
    return switchover.steps(of(*found, **shared), leaving="lb1", wait=wait)


def drain_lb1(*found, **shared):
    return maintenance.drain(of(*found, **shared), "lb1", WORK, [], wait=10)


BOTH = pytest.mark.parametrize("leaving", [from_lb1, drain_lb1], ids=["switchover", "maintenance"])


@BOTH
def test_it_leaves_in_this_order(leaving):
    found = leaving(announcer(1), announcer(2))
    assert (found.faults, found.leave, found.wait, found.stop, found.start, found.hold) == ([], "lb1", 10, [], [], [])
    assert found.record["to"] == "lb2" and found.path.endswith(".json")
    assert [found.frr[step][-1] for step in ("prefer_others", "withdraw", "as_before")] == [
        "bgp graceful-shutdown",
        "exit-address-family",
        "no bgp graceful-shutdown",
    ]
    assert all(
        command[:7] == [*VTYSH, "-c", "configure terminal", "-c", "router bgp 64512"] for command in found.frr.values()
    )


def test_a_drain_changes_lines_that_the_file_has_and_takes_nothing_else_back():
    both = [session(), session(peer="2001:db8::1", family="ipv6")]
    (member,) = members.layouts(of(announcer(1, sessions=both)))[0].members
    found = draining.commands(member)
    file = {line.strip() for line in (ROOT / "tests/golden/every-setting.frr.conf").read_text().splitlines()}
    lines = {step: command[len(VTYSH) + 5 :: 2] for step, command in found.items()}
    assert {line for line in lines["as_before"] if not line.startswith("no ")} <= file
    undone = {line for line in lines["as_before"] if line.startswith("no ")}
    assert undone == {f"no {line}" for line in lines["prefer_others"]}
    families = [line for line in lines["withdraw"] if line.startswith("address-family")]
    assert families == ["address-family ipv4 unicast", "address-family ipv6 unicast"]
    assert families == [line for line in lines["as_before"] if line.startswith("address-family")]


def test_an_frr_without_bgp_is_told_nothing():
    found = from_lb1(announcer(1, asn=0, sessions=[session("Active")]), announcer(2))
    assert found.leave == "lb1" and not any(found.frr.values())


@BOTH
@pytest.mark.parametrize(
    "other, why",
    [
        (announcer(2, {VIP: "failed"}), "haproxy_down: 1."),
        (announcer(2, sessions=[session("Active")]), "No session is established (192.0.2.1 Active)."),
        (announcer(2, sessions=[session(), session("Active", "192.0.2.2")]), "No session with 192.0.2.2 (Active)."),
        (
            announcer(2, sessions=[session(), session(peer="192.0.2.2", sent=0, announces=False)]),
            "FRR has sent 192.0.2.2 0 of 1 VIPs.",
        ),
        (announcer(2, drained=True), draining.announcing.DRAINED),
        (announcer(2, unable=["haproxy.service does not run."]), "haproxy.service does not run."),
        (announcer(2, **HANGS), "FRR does not answer."),
        (announcer(2, {SECOND: "serves"}), f"It does not have {VIP}."),
    ],
)
def test_the_last_one_that_is_proved_to_serve_stays_and_one_sentence_says_why(leaving, other, why):
    found = leaving(announcer(1), other, vips=())
    assert found.leave == "" and len(found.faults) == 1 and found.frr == {}
    assert found.faults[0].startswith(f"Without lb1 nobody is proved to serve {VIP}, so it stays. lb2: ")
    assert found.faults[0].endswith(why)


@BOTH
def test_one_that_is_proved_is_enough_whatever_a_third_one_lacks(leaving):
    assert leaving(announcer(1), announcer(2), announcer(3, **HANGS), names=THREE).leave == "lb1"


@BOTH
def test_each_vip_needs_another_one_of_either_family(leaving):
    every = {VIP: "serves", SIX: "serves"}
    sessions = [session(), session(peer="2001:db8::1", family="ipv6")]
    others = [session(), session("Active", "2001:db8::1", family="ipv6")]
    assert leaving(announcer(1, every, sessions), announcer(2, every, sessions)).leave == "lb1"
    (fault,) = leaving(announcer(1, every, sessions), announcer(2, every, others)).faults
    assert fault.startswith(f"Without lb1 nobody is proved to serve {SIX}, so it stays.")
    assert leaving(announcer(1), announcer(2, every, others)).leave == "lb1", "lb1 does not have the other VIP"


@BOTH
@pytest.mark.parametrize(
    "first, second, why",
    [
        (announcer(1, **HANGS), announcer(2), "Whether lb1 announces its VIPs is not known. FRR does not answer."),
        (announcer(1), DOWN, "needs all members. lb2 cannot be reached: ssh: connect to host: No route to host."),
        (announcer(1), None, "lb2 is outside --limit, and a "),
        (
            announcer(1),
            seen(2, [VIP], router="keepalived.service"),
            "lb2 was set up for VRRP, and the inventory has BGP",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(leaving, first, second, why):
    found = leaving(*filter(None, [first, second]))
    assert len(found.faults) == 1 and why in found.faults[0] and found.leave == ""


@BOTH
def test_a_lone_member_stays(leaving):
    assert leaving(announcer(1), names=["lb1"]).faults == ["lb1 is the only member: nobody would serve without it."]


@BOTH
def test_what_is_on_lo_counts_where_a_configuration_cannot_be_read(leaving):
    damaged = announcer(1, vips=[])
    (fault,) = leaving(damaged, announcer(2, {VIP: "failed"})).faults
    assert fault.startswith(f"Without lb1 nobody is proved to serve {VIP}, so it stays.")
    (fault,) = leaving(announcer(1), announcer(2, vips=[])).faults
    assert fault.endswith(f"lb2: It does not have {VIP}.")


@BOTH
def test_a_node_that_carries_no_vip_leaves_and_comes_back_whatever_the_others_do(leaving):
    worker = seen(1, instances=[], router="")
    found = leaving(worker, announcer(2, {VIP: "failed"}), announcer(3, {VIP: "failed"}), names=THREE)
    assert (found.faults, found.leave, any(found.frr.values())) == ([], "lb1", False)
    given = of(worker, announcer(2), announcer(3), names=THREE)
    assert maintenance.unproved(given, "lb1", worker, takes_part=True) == []


@pytest.mark.parametrize(
    "given, why",
    [
        ({}, "Each of lb1, lb2 announces its VIPs: name the one that leaves with -e switchover_from."),
        ({"to": "lb2"}, "Each of lb1, lb2 announces its VIPs: name the one that leaves with -e switchover_from."),
        ({"leaving": "lb9"}, "switchover_from is 'lb9', which is not a member: choose one of lb1, lb2."),
        (
            {"to": "lb2", "leaving": "lb1"},
            "switchover_to (lb2) and switchover_from (lb1) are both set: leave one of them out.",
        ),
        (
            {"back": True, "leaving": "lb1"},
            "switchover_back and switchover_from (lb1) are both set: leave one of them out.",
        ),
    ],
)
def test_who_leaves_is_named(given, why):
    assert switchover.steps(of(announcer(1), announcer(2)), **given).faults == [why]


def test_with_vrrp_nobody_leaves():
    found = switchover.steps(pair(seen(1, [VIP]), seen(2)), leaving="lb1")
    assert found.faults == ["lb1 has its VIPs by VRRP: name the member that takes over with -e switchover_to."]


def test_it_is_safe_to_run_twice():
    found = from_lb1(announcer(1, {VIP: "held_back"}, held_back=RECORD), announcer(2))
    assert (found.faults, found.leave, found.lines) == ([], "", ["lb1 is held back already: nothing to do."])
    assert from_lb1(announcer(1, drained=True), announcer(2)).leave == "lb1", "an interrupted run goes on"


@pytest.mark.parametrize(
    "others, share, moved",
    [(1, 50, ""), (2, 67, "; a router that does not hash resiliently moves some of those of lb2 and lb3")],
)
def test_it_says_which_lasting_connections_it_costs(others, share, moved):
    names = THREE[: others + 1]
    found = from_lb1(announcer(1, connections=7), *[announcer(at + 2) for at in range(others)], names=names)
    assert found.lines[1:3] == [
        f"Lasting connections through lb1 are lost (7 now, which are waited for up to 10 s){moved}.",
        f"When it is back, up to {share} % of the others' lasting ones are lost.",
    ]


@pytest.mark.parametrize(
    "peers, said",
    [
        (["192.0.2.1", "192.0.2.2"], []),
        (["192.0.2.1"], ["192.0.2.2 has a session with lb1 alone, and needs the VIPs from another router meanwhile."]),
        (["198.51.100.1"], []),
    ],
    ids=["the same", "one less", "in another subnet"],
)
def test_a_router_that_knows_no_other_member_is_named_where_that_is_known(peers, said):
    first = announcer(1, sessions=[session(), session(peer="192.0.2.2")])
    found = from_lb1(first, announcer(2, sessions=[session(peer=peer) for peer in peers]))
    assert [line for line in found.lines if "alone" in line] == said


def test_direct_return_keeps_its_connections():
    found = from_lb1(announcer(1, direct=[(VIP, 443)]), announcer(2))
    assert f"Direct return keeps those of {VIP} port 443." in found.lines


@pytest.mark.parametrize("away", [{"held_back": RECORD, "reasons": {VIP: "held_back"}}, {"drained": True}])
def test_whoever_is_away_is_brought_back_also_without_the_others(away):
    found = switchover.steps(of(announcer(1, **away), DOWN), back=True)
    assert (
        found.faults == []
        and [*found.announce] == ["lb1"]
        and any("lb2 cannot be reached" in each for each in found.lines)
    )
    assert found.announce["lb1"]["as_before"][-1] == "no bgp graceful-shutdown"
    assert switchover.steps(of(announcer(1), announcer(2)), back=True).announce == {}


@pytest.mark.parametrize("away", [{"held_back": MAINTAINED, "reasons": {VIP: "held_back"}}, {"drained": True}])
def test_the_status_says_who_is_away_and_how_it_comes_back(away):
    (fault,) = status.status(of(announcer(1), announcer(2, **away))).faults
    assert fault.startswith("lb2 ") and "onprem.lb.site" in fault


def test_whoever_is_away_or_serves_nobody_is_maintained_first():
    order = maintenance.plan(of(announcer(1), announcer(2), announcer(3, drained=True), names=THREE), [], WORK).order
    assert order == ["lb3", "lb1", "lb2"]
    order = maintenance.plan(of(announcer(1), announcer(2, {VIP: "failed"}), announcer(3), names=THREE), [], WORK).order
    assert order == ["lb2", "lb1", "lb3"]


def test_whoever_is_away_is_maintained_or_brought_back_before_others():
    away = announcer(2, {VIP: "held_back"}, held_back=RECORD)
    found = maintenance.plan(of(announcer(1), away, announcer(3), names=THREE), ["lb1"], WORK)
    assert len(found.faults) == 1 and "switchover_back=true" in found.faults[0]
    assert found.faults[0].endswith("Do that first, or add it to maintenance_members.")


def test_a_maintenance_says_what_becomes_of_each_member():
    assert maintenance.plan(of(announcer(1), announcer(2, drained=True)), [], WORK).lines == [
        f"lb2: leaves, and lb1 serves; {WORK}; once verified, it announces its VIPs again.",
        f"lb1: leaves, and lb2 serves; {WORK}; once verified, it announces its VIPs again.",
    ]


@pytest.mark.parametrize(
    "now, why",
    [
        (announcer(1), []),
        (announcer(1, {VIP: "not_known"}), ["Nothing is added while something is not known: haproxy_answers."]),
        (announcer(1, sessions=[session("Active")]), ["No session is established (192.0.2.1 Active)."]),
        (announcer(1, sessions=[session(), session("Idle", "192.0.2.2")]), ["No session with 192.0.2.2 (Idle)."]),
    ],
)
def test_it_is_back_once_every_router_has_each_of_its_vips(now, why):
    given = of(announcer(1, {VIP: "held_back"}, held_back=MAINTAINED), announcer(2))
    assert maintenance.unproved(given, "lb1", now, takes_part=True) == why
    assert maintenance.unproved(given, "lb1", now, takes_part=False) == []


def test_a_maintenance_that_stops_says_that_the_member_announces_nothing():
    said = maintenance.stopped(of(announcer(1), announcer(2)), "lb1", "It broke.", [])
    assert "lb1 is held back: it announces no VIP, and lb2 serves without it." in said


def test_an_frr_that_hangs_is_not_waited_for_without_end():
    program, seconds, _vtysh = VTYSH
    assert program == "/usr/bin/timeout" and int(seconds) > 0
