# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook rollback, played against recorded results: whose router stops, and how the return is proved."""

from __future__ import annotations

import time

import pytest
import yaml
from support.paths import PLAYBOOKS
from support.recorded_hosts import PAIR, PAIR_VARIABLES, locked, seen
from support.recorded_plays import run

ID = "20260130T120000Z"
STEPS = ("systemd_service", "member_state", "pause")


def state(**values):
    usual = {"id": ID, "purpose": "setting the pair up", "backup": "", "engine": "native", "is_present": False}
    usual.update(
        files=["/etc/haproxy/haproxy.cfg"],
        changes_link=False,
        keeps_names=False,
        unicast={"now": {}, "then": {}},
        could_serve=True,
        reach={"now": "vrrp", "then": "vrrp"},
        announced={"now": [], "vips": [], "sessions": [], "units": ["haproxy.service"]},
        settle=5.0,
    )
    return {**usual, **values}


ARMED = {"changed": True, "postponed": True, "returned_within": 55}


def rolled_back(answers=None, check=False, variables=None, **of_state):
    listed = {"states": [state(**of_state)], "engine": "native"}

    def member_state(call):
        return listed if call.given["state"] == "listed" else ARMED

    usual = {"member_lock": locked, "member_info": seen, "member_state": member_state}
    return run("rollback", PAIR, {**usual, **(answers or {})}, check=check, **PAIR_VARIABLES, **(variables or {}))


def changes(play):
    return [line for line in play.did(*STEPS) if "listed" not in line]


@pytest.fixture(scope="module")
def usual():
    """A rollback that succeeds, with no other settings of the link."""
    return rolled_back()


def test_where_nothing_on_the_link_changes_no_router_stops(usual):
    assert usual.code == 0 and usual.did("systemd_service") == []
    assert changes(usual) == [
        *("lb1 member_state armed", "lb2 member_state armed"),
        *("lb1 member_state postponed", "lb2 member_state postponed"),
        *("lb1 member_state postponed", "lb2 member_state postponed"),
        *("lb1 member_state restored", "lb2 member_state restored"),
        *("lb1 member_state confirmed", "lb2 member_state confirmed"),
    ]


def test_the_others_stop_while_the_first_one_gets_other_settings_of_the_link():
    play = rolled_back(changes_link=True)
    assert play.code == 0
    assert changes(play) == [
        *("lb1 member_state armed", "lb2 member_state armed"),
        *("lb2 member_state announced", "lb1 member_state postponed", "lb2 member_state postponed"),
        "lb2 systemd_service stopped keepalived.service",
        "lb1 member_state restored",
        *("lb2 member_state announced", "lb1 member_state postponed", "lb2 member_state postponed"),
        "lb2 member_state restored",
        "lb1 pause",
        *("lb1 member_state confirmed", "lb2 member_state confirmed"),
    ]


def test_both_addresses_of_a_name_are_answered_before_any_router_stops_or_returns():
    """Every member answers them, until it returns itself; a router that holds either VIP is found meanwhile."""
    play = rolled_back(changes_link=True, files=["/etc/onprem-lb-resolver/dnsmasq.conf"])
    assert play.code == 0
    order = changes(play)
    named = [order.index(f"{name} member_state named") for name in ("lb1", "lb2")]
    first = order.index("lb2 systemd_service stopped keepalived.service")
    assert order.index("lb2 member_state armed") < min(named) and max(named) < first
    assert first < order.index("lb1 member_state restored")
    alone = [order.index(f"{name} member_state renamed") for name in ("lb1", "lb2")]
    assert order.index("lb2 member_state confirmed") < min(alone)  # all have returned
    dry = rolled_back(check=True, files=["/etc/onprem-lb-resolver/dnsmasq.conf"])
    assert dry.code == 0 and "named" not in str(changes(dry))


@pytest.mark.parametrize("file, at_once", [("dnsmasq.conf", 1), ("names", 0)])
def test_resolvers_that_restart_do_so_one_after_another(file, at_once):
    """Those that read their names again do so at once: Ansible takes 0 for no limit."""
    play = rolled_back(files=[f"/etc/onprem-lb-resolver/{file}"])
    assert play.code == 0 and play.facts["lb1"]["__rollback"]["names_at_once"] == at_once
    tasks = yaml.safe_load((PLAYBOOKS / "rollback.yml").read_text())[1]["tasks"][1]["block"]
    naming = [task for task in tasks if task.get("onprem.lb.member_state", {}).get("state") in ("named", "renamed")]
    assert [task["throttle"] for task in naming] == ["{{ (__rollback | default({})).names_at_once | default(0) }}"] * 2


@pytest.mark.parametrize("taken_s, after", [(200, 300), (-1000, 35)], ids=["slow hosts", "fast hosts"])
def test_members_wait_for_longer_where_the_rollback_has_taken_long_until_it_arms_them(monkeypatch, taken_s, after):
    """Its locks have another clock than what Ansible computes with: they were taken as long ago."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - taken_s)
    play = rolled_back()
    (armed,) = {float(call.given["after"]) for call in play.of("member_state") if call.given["state"] == "armed"}
    assert play.code == 0 and (armed >= after if taken_s > 0 else armed == after)


def test_a_list_locks_stops_and_changes_nothing():
    play = rolled_back(variables={"rollback_list": True})
    assert play.code == 0 and play.did("member_lock") == [] and changes(play) == []
    assert ID in str(play.said) and "setting the pair up" in str(play.said)


def test_a_dry_run_restores_nothing_but_in_check_mode():
    play = rolled_back(check=True, changes_link=True)
    assert play.code == 0
    assert changes(play) == ["lb1 member_state restored", "lb2 member_state restored"]
    assert all(call.check for call in play.of("member_state"))
    assert "Next: run the same command without --check." in str(play.said)


def test_where_there_is_nothing_to_return_to_nothing_changes():
    play = rolled_back(is_present=True)
    assert play.code == 0 and changes(play) == []
    assert play.did("member_lock")[-2:] == ["lb1 member_lock absent", "lb2 member_lock absent"]


def test_a_member_whose_states_cannot_be_read_is_named_before_anything_changes():
    play = rolled_back({"member_state": {"failed": True, "msg": "no room"}})
    assert play.code == 2 and play.faults() == [["lb1: no room", "lb2: no room"]]
    assert play.did("member_state") == ["lb1 member_state listed", "lb2 member_state listed"]
    assert play.did("member_lock")[-2:] == ["lb1 member_lock absent", "lb2 member_lock absent"]


def unable_for(times, **values):
    """A member could take over only after some readings."""
    readings = []

    def member_info(call):
        readings.append(call)
        ready = len(readings) > times
        return seen(call) if ready or len(readings) <= 2 else seen(call, **(values or {"unable": ["haproxy is off."]}))

    return {"member_info": member_info}


def test_a_member_that_could_take_over_after_some_seconds_is_proved():
    play = rolled_back(unable_for(5))
    assert play.code == 0 and "lb2 member_state confirmed" in play.did("member_state")
    assert rolled_back(unable_for(5, stale=["keepalived has not loaded its file."])).code == 0


def test_one_that_could_not_is_named_and_the_members_return_to_what_they_ran():
    play = rolled_back(unable_for(1000))
    assert play.code == 2 and "haproxy is off." in str(play.faults())
    assert changes(play)[-2:] == ["lb1 member_state abandoned", "lb2 member_state abandoned"]
    assert play.did("member_lock")[-2:] == ["lb1 member_lock absent", "lb2 member_lock absent"]
    assert "run again" not in str(play.said)
    stale = rolled_back(unable_for(1000, stale=["keepalived has not loaded its file."]))
    assert stale.code == 2 and "keepalived has not loaded its file." in str(stale.faults())


@pytest.mark.parametrize("holders, count", [((), "no holder"), (("lb1", "lb2"), "2 holders: lb1, lb2")])
def test_where_a_vip_has_no_holder_after_it_or_two_the_members_return_to_what_they_ran(holders, count):
    readings = []

    def member_info(call):
        readings.append(call)
        held = [{"address": "192.0.2.10", "seconds": 1}] if call.on in holders else []
        return seen(call) if len(readings) <= 2 else seen(call, held=held)

    play = rolled_back({"member_info": member_info})
    assert play.code == 2 and f"192.0.2.10 has {count}" in str(play.faults())
    assert changes(play)[-2:] == ["lb1 member_state abandoned", "lb2 member_state abandoned"]


def test_a_failed_return_of_one_member_ends_the_run_on_all_of_them():
    def member_state(call):
        if call.given["state"] == "restored" and call.on == "lb1":
            return {"failed": True, "msg": "no room"}
        listed = {"states": [state(changes_link=True)], "engine": "native"}
        return listed if call.given["state"] == "listed" else ARMED

    play = rolled_back({"member_state": member_state})
    assert play.code == 2 and "lb2 member_state restored" not in changes(play)
    assert changes(play)[-2:] == ["lb1 member_state abandoned", "lb2 member_state abandoned"]


def test_a_rollback_names_the_variable_that_accepts_a_downgrade_where_it_locks(usual):
    locks = [call.given for call in usual.of("member_lock") if "purpose" in call.given]
    assert [given["downgrade_variable"] for given in locks] == ["rollback_downgrade"] * 2


def test_a_rollback_says_once_what_becomes_of_it_when_it_is_interrupted(usual):
    said = "If this run is interrupted, lb1, lb2 return to what they run now, within 55 s."
    assert usual.said.count(said) == 1


BGP = {
    "reach": {"now": "bgp", "then": "bgp"},
    "announced": {
        "now": ["192.0.2.10"],
        "vips": ["192.0.2.10"],
        "sessions": ["192.0.2.254"],
        "units": ["haproxy.service", "frr.service", "onprem-lb-anycast.service"],
    },
}


def announced(proof, **given):
    play = rolled_back({"layout_info": proof}, variables={"pair_reach": "bgp"}, **BGP, **given)
    return play, [line for line in play.did(*STEPS, "layout_info") if "listed" not in line]


def test_members_that_announce_return_in_turn_each_proved_and_no_router_is_asked_for():
    play, order = announced({"faults": [], "msg": "", "held": [], "unserved": []})
    heartbeat = ["lb1 member_state announced", "lb2 member_state postponed", "lb1 member_state postponed"]
    assert play.code == 0 and order == [
        *("lb1 member_state armed", "lb2 member_state armed"),
        *heartbeat,
        *heartbeat,
        "lb1 member_state restored",
        "lb1 layout_info",
        *heartbeat,
        "lb2 member_state restored",
        "lb2 layout_info",
        *heartbeat,
        *("lb2 member_state confirmed", "lb1 member_state confirmed"),
    ]
    (plan, _other) = [call.given["plan"] for call in play.of("layout_info")]
    assert plan["sessions"] == ["192.0.2.254"] and plan["vips"] == [{"address": "192.0.2.10"}]


def test_one_that_does_not_serve_afterwards_ends_the_rollback_before_the_next_and_it_is_taken_back():
    play, order = announced({"faults": ["no session of BGP is established."], "msg": "no session"})
    assert play.code == 2 and "lb2 member_state restored" not in order
    assert "lb1 has returned and does not serve, so lb2 stays as it is: no session of BGP is established." in str(
        play.faults()
    )
    assert [line for line in order if "abandoned" in line] == [
        f"lb{number} member_state abandoned" for number in (1, 2)
    ]
    assert not any("confirmed" in line for line in order)


def test_a_dry_run_of_members_that_announce_proves_nothing():
    play, order = announced({"faults": ["not yet"]}, check=True)
    assert play.code == 0
    assert order == ["lb1 member_state restored", "lb2 member_state restored"]
