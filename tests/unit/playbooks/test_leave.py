# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switchover and a maintenance of members that announce their VIPs by BGP: who serves meanwhile, wherever it ends."""

from __future__ import annotations

import copy
import functools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.status import status
from support.members import VIP, host
from support.recorded_hosts import PAIR, PAIR_VARIABLES, Announcers
from support.recorded_plays import Call, run

BOTH = {"lb1", "lb2"}
REBOOT = {"maintenance_reboot": "always"}
FROM = {"switchover_from": "lb1"}
BACK = {"switchover_back": True}
PLAYBOOKS = {"switchover": FROM, "maintenance": REBOOT}


def played(playbook, members, check=False, answers=None, **given):
    variables = {**PAIR_VARIABLES, "pair_vips": [VIP], "pair_reach": "bgp", **given}
    return run(playbook, PAIR, members.answers(**(answers or {})), check=check, **variables)


def steps(play):
    """Return what is done to whom: the last line of what FRR is told, whether the record is there, and a reboot."""
    found = []
    for call in play.of("command", "config_files", "reboot"):
        last = call.given["argv"][-1] if call.module == "command" else ""
        absent = any(file.get("state") == "absent" for file in call.given.get("files", []))
        done = {"config_files": "released" if absent else "held back"}.get(call.module, last or call.module)
        found.append(f"{call.on} {SAID.get(done, done)}")
    return found


SAID = {
    "bgp graceful-shutdown": "prefers others",
    "exit-address-family": "withdraws",
    "no bgp graceful-shutdown": "as before",
}
LEAVES = ["prefers others", "withdraws", "held back", "as before"]
RETURNS = ["as before", "released"]
CHANGES = {"switchover": len(LEAVES), "maintenance": 2 * len([*LEAVES, "reboot", *RETURNS])}
CUTS = [(playbook, calls) for playbook, changes in CHANGES.items() for calls in range(1, changes + 1)]


def faults_of(members):
    """Return what the status says is wrong."""
    return status(given_of(members)).faults


def given_of(members):
    seen = {name: members.seen(Call("member_info", name, {}, False, False, name, "")) for name in BOTH}
    return [host(name, seen[name], vips=[VIP], reach="bgp") for name in sorted(BOTH)]


def serves_throughout(members):
    """Return whether somebody served all the time, and nobody lost its VIPs while routers sent to it."""
    return all(members.serving) and members.lost == []


def test_a_member_leaves_while_it_still_serves_and_comes_back():
    members = Announcers()
    play = played("switchover", members, **FROM)
    assert (play.code, play.faults()) == (0, []) and steps(play) == [f"lb1 {each}" for each in LEAVES]
    assert members.announcing() == {"lb2"} and not members.shutdown | members.withdrawn and serves_throughout(members)
    assert play.did("member_state", "drill_event", "vip_probe", "systemd_service") == []
    assert ["held back since" in line for line in faults_of(members)] == [True]
    play = played("switchover", members, **BACK)
    assert (play.code, play.faults()) == (0, []) and steps(play) == [f"lb1 {each}" for each in RETURNS]
    assert members.announcing() == BOTH and faults_of(members) == []


def test_the_run_says_first_what_it_costs():
    said = str(played("switchover", Announcers(), check=True, **FROM).said)
    assert "Lasting connections through lb1 are lost" in said and "Next: run the same command without --check." in said


@pytest.mark.parametrize("playbook, given", [("switchover", FROM), ("maintenance", REBOOT)])
def test_a_dry_run_changes_nothing(playbook, given):
    members = Announcers()
    play = played(playbook, members, check=True, **given)
    assert (play.code, play.faults()) == (0, []) and members.announcing() == BOTH and not members.shutdown
    assert play.of("wait_for") == []


def test_each_member_is_back_and_proved_before_the_next_one_leaves():
    members = Announcers()
    play = played("maintenance", members, **REBOOT)
    assert (play.code, play.faults()) == (0, [])
    assert steps(play) == [f"{name} {each}" for name in ("lb1", "lb2") for each in (*LEAVES, "reboot", *RETURNS)]
    assert members.announcing() == BOTH and serves_throughout(members)


def test_a_member_is_proved_only_with_all_its_paths():
    members = Announcers()
    lost = {"reboot": lambda call: members.down.add(call.on) or {"changed": True}}
    play = played("maintenance", members, answers=lost, **REBOOT)
    assert play.code == 2 and members.announcing() == {"lb2"} and "lb2 withdraws" not in steps(play)
    assert "The maintenance stops at lb1." in str(play.faults()) and "it announces no VIP" in str(play.faults())
    assert faults_of(members) != []


@pytest.mark.parametrize("playbook, given", [("switchover", FROM), ("maintenance", REBOOT)])
def test_the_last_one_that_serves_stays(playbook, given):
    members = Announcers()
    members.down.add("lb2")
    play = played(playbook, members, **given)
    assert play.code == 2 and steps(play) == [] and "Without lb1 nobody is proved to serve" in str(play.faults())


def test_a_member_that_is_left_alone_while_its_connections_are_waited_for_stays():
    members = Announcers()

    def told(call):
        members.down.add("lb2")
        return members.told(call)

    play = played("switchover", members, answers={"command": told}, **FROM)
    assert play.code == 2 and members.announcing() == {"lb1"} and not members.shutdown
    assert steps(play) == ["lb1 prefers others", "lb1 as before", "lb1 released"]
    assert "lb1 has not left. Leave | Require that the others serve: Without lb1 nobody is proved" in str(play.faults())


def test_a_member_whose_vips_stay_on_lo_announces_them_as_before():
    members = Announcers()
    members.stubborn.add("lb1")
    play = played("switchover", members, **FROM)
    assert play.code == 2 and "lb1 has not left. Leave | Wait until its VIPs have left lo" in str(play.faults())
    assert members.announcing() == BOTH and members.records["lb1"] == {} and not members.shutdown


def test_connections_are_waited_for_up_to_the_limit_and_no_longer():
    members = Announcers()

    def busy(call):
        found = members.seen(call)
        found["announcing"]["connections"] = 7
        return found

    play = played("switchover", members, answers={"member_info": busy}, switchover_wait=3, **FROM)
    (wait,) = [call for call in play.of("member_info") if call.given.get("connections_wait")]
    assert wait.on == "lb1" and wait.given["connections_wait"] == 3
    assert play.code == 0 and members.announcing() == {"lb2"}
    assert "(7 now, which are waited for up to 3 s)" in str(play.said)
    play = played("switchover", Announcers(), switchover_wait=0, **FROM)
    assert "Leave | Wait for its connections to end" not in {call.task for call in play.of("member_info")}


@functools.lru_cache(maxsize=None)
def cut_off(playbook, calls):
    """Return what a run leaves whose controller is gone after so many calls: its exit code, and the members."""
    members = Announcers()
    members.left = calls
    play = played(playbook, members, **PLAYBOOKS[playbook])
    members.left = -1
    return play.code, members


@pytest.mark.parametrize("playbook, calls", CUTS)
def test_wherever_a_run_is_cut_off_somebody_serves_and_it_is_said(playbook, calls):
    code, members = cut_off(playbook, calls)
    assert serves_throughout(members) and (members.announcing() == BOTH or faults_of(members))
    assert code == 0 or members.announcing() != BOTH or not members.shutdown or faults_of(members)


@pytest.mark.parametrize("repeated, given", [("switchover", BACK), ("maintenance", REBOOT)])
def test_wherever_a_run_was_cut_off_the_next_one_brings_all_back(repeated, given):
    left = {}  # the members as they are left, once each
    for playbook, calls in CUTS:
        _code, members = cut_off(playbook, calls)
        records = [{**record, "since": ""} for of in members.records.values() for record in of.values()]
        left[repr((sorted(members.shutdown), sorted(members.withdrawn), records))] = members
    assert len(left) > len(LEAVES)
    for state, members in left.items():
        after = copy.deepcopy(members)
        play = played(repeated, after, **given)
        assert (play.code, play.faults()) == (0, []), state
        assert after.announcing() == BOTH and serves_throughout(after), state
        assert not after.shutdown | after.withdrawn and faults_of(after) == [], state
