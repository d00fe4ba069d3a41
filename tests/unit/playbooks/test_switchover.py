# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook switchover, played against recorded results: whose router stops, and what if nothing moves."""

from __future__ import annotations

import pytest
from support.recorded_hosts import PAIR, PAIR_VARIABLES, Living, locked
from support.recorded_plays import run

PROBED = {**PAIR, "probe": {"probe1": {}}}
MEASURED = {"takeover": {"outage_ms": 3, "response_gap_ms": 4}, "holder_before": "lb1", "holder_after": "lb2"}
MEASURED.update(finished=1, tried=9, failed_attempts=1)
STOP, START = "systemctl stop keepalived.service", "systemctl enable --now keepalived.service"


def switched(living=None, answers=None, groups=None, check=False, limit="all", **variables):
    found = (living or Living()).answers(
        **{"vip_probe": {"ansible_job_id": "1"}, "async_status": MEASURED, **(answers or {})}
    )
    return run("switchover", groups or PAIR, found, check=check, limit=limit, **PAIR_VARIABLES, **variables)


def moves(play):
    return [f"{call.on} {call.given['command']['inject']}" for call in play.of("drill_event")]


def records(play):
    """Return on which members the record of what holds them back is written or removed."""
    found = [(call.on, file) for call in play.of("config_files") for file in call.given["files"]]
    return [f"{name} {file.get('state', 'present')}" for name, file in found if "switchover" in file["path"]]


def released(play):
    return play.did("member_lock")[-2:] == ["lb1 member_lock absent", "lb2 member_lock absent"]


def test_the_holder_is_held_back_and_says_so_before_its_router_stops():
    play = switched()
    assert play.code == 0 and released(play)
    assert moves(play) == [f"lb1 {STOP}"] and records(play) == ["lb1 present"]
    assert [call.module for call in play.of("config_files", "drill_event")] == ["config_files", "drill_event"]
    assert play.did("vip_probe", "async_status", "systemd_service") == [] and play.failures == []


def test_a_probe_measures_from_before_the_move_until_after_it():
    play = switched(groups=PROBED)
    assert play.code == 0 and "192.0.2.10 was gone for 3 ms" in str(play.said)
    lines = [f"{call.on} {call.module}" for call in play.of("vip_probe", "drill_event", "async_status")]
    assert lines == ["probe1 vip_probe", "lb1 drill_event", "probe1 async_status"]


@pytest.mark.parametrize("failing", [{"unreachable": True}, {"failed": True, "msg": "no module"}])
@pytest.mark.parametrize("module", ["vip_probe", "async_status"])
def test_a_probe_that_fails_measures_nothing_and_hinders_nothing(failing, module):
    play = switched(answers={module: failing}, groups=PROBED)
    assert play.code == 0 and moves(play) == [f"lb1 {STOP}"] and "was gone for" not in str(play.said)


def test_a_dry_run_says_what_moves_and_measures_nothing():
    play = switched(groups=PROBED, check=True)
    assert (
        play.code == 0
        and "Next: run the same command without --check." in str(play.said)
        and play.did("vip_probe") == []
    )
    assert {call.check for call in play.of("drill_event", "config_files")} == {True}
    assert len(play.of("member_info")) == 2  # nobody waits for what does not happen
    assert [call.given["asks_start"] for call in play.of("member_info")] == [True, True]
    assert [call.given["asks_firewall"] for call in play.of("member_info")] == [True, True]


class Stuck(Living):
    """A pair in which the other member takes nothing over, for some readings."""

    def __init__(self, readings):
        super().__init__()
        self.left = readings

    def seen(self, call):
        found = super().seen(call)
        if call.on in self.stopped or not self.stopped or self.left <= 0:
            return found
        self.left -= 1
        return {**found, "held": []}


def test_a_move_that_takes_some_seconds_is_waited_for():
    assert switched(Stuck(5)).code == 0


class Yielding(Living):
    """A pair without preemption: who has resigned is Backup as soon as its router runs again."""

    holder = "lb1"

    def seen(self, call):
        found = super().seen(call)
        held = [{"address": "192.0.2.10", "seconds": 1}] if call.on == self.holder else []
        return {**found, "held": held, "instances": [{**each, "preempt": False} for each in found["instances"]]}

    def moved(self, call):
        self.holder = "lb2"
        return {"changed": True}


def test_a_router_that_becomes_backup_starts_again_by_its_own_host_even_if_the_run_dies():
    play = switched(Yielding())
    (event,) = play.of("drill_event")
    assert play.code == 0 and event.on == "lb1" and records(play) == []
    assert event.given["command"] == {"inject": STOP, "revert": START} and event.given["revert_after"] == 2


def test_a_router_that_was_stopped_in_vain_starts_again_and_nothing_holds_it_back():
    play = switched(Stuck(1000))
    assert play.code == 2 and released(play)
    assert "lb2 did not take over the VIPs within 10 s" in str(play.faults())
    assert play.did("systemd_service") == ["lb1 systemd_service started keepalived.service"]
    assert records(play) == ["lb1 present", "lb1 absent"]


def test_a_member_that_is_held_back_is_made_to_start_by_itself_before_its_router_stops():
    play = switched()
    assert play.did("member_state", "drill_event")[0] == "lb1 member_state held_back"
    assert [call.on for call in play.of("member_state")] == ["lb1"]


class Alone(Living):
    """A pair whose first member is held back; the other one, which had the VIPs, has died."""

    def seen(self, call):
        return {"unreachable": True, "msg": "no route"} if call.on == "lb2" else super().seen(call)


@pytest.mark.parametrize(
    "reached, said", [({}, "cannot be reached"), ({"limit": "lb1"}, "is outside --limit")], ids=["all", "with a limit"]
)
def test_the_way_back_needs_nobody_else(reached, said):
    living = Alone()
    living.stopped["lb1"] = STOP
    silent = {"failed": True, "msg": "lb2 cannot be reached as root: no route", "answered": False}
    locks = {"member_lock": lambda call: silent if call.on == "lb2" else locked(call)}
    play = switched(living, locks, switchover_back=True, **reached)
    assert play.code == 0 and moves(play) == [f"lb1 {START}"] and records(play) == ["lb1 absent"]
    assert f"lb2 {said}" in str(play.said)
    assert switched(Alone(), locks, **reached).code == 2  # the way there needs all


class Lost(Living):
    """A pair in which the other member cannot be reached any more once the holder's router has stopped."""

    def seen(self, call):
        return {"unreachable": True, "msg": "no route"} if self.stopped and call.on == "lb2" else super().seen(call)


def test_a_router_starts_again_where_the_member_that_was_to_take_over_cannot_be_reached_any_more():
    play = switched(Lost())
    assert play.code != 0 and released(play)
    assert "lb2 did not take over the VIPs within 10 s" in str(play.faults())
    assert play.did("systemd_service") == ["lb1 systemd_service started keepalived.service"]
    assert records(play) == ["lb1 present", "lb1 absent"]


def test_a_member_that_was_held_back_takes_part_again():
    living = Living()
    living.stopped["lb1"] = STOP
    play = switched(living, switchover_back=True)
    assert play.code == 0 and moves(play) == [f"lb1 {START}"] and records(play) == ["lb1 absent"]
    assert "is drained" not in str(play.said)


def test_a_member_that_could_not_take_over_is_refused_before_anything_moves():
    play = switched(Living(unable=["haproxy is off."]))
    assert play.code == 2 and released(play) and moves(play) == [] and "haproxy is off." in str(play.faults())


class Late(Living):
    """A pair that could take over only after some readings."""

    def __init__(self, readings, **values):
        super().__init__()
        self.left, self.late = {"lb1": readings, "lb2": readings}, values

    def seen(self, call):
        self.left[call.on] -= 1
        return {**super().seen(call), **(self.late if self.left[call.on] >= 0 else {})}


@pytest.mark.parametrize(
    "late", [{"unable": ["haproxy does not answer."]}, {"stale": ["keepalived.service has not loaded it."]}]
)
@pytest.mark.parametrize("check", [False, True])
def test_a_member_that_could_take_over_after_some_seconds_takes_over(late, check):
    play = switched(Late(5, **late), check=check)
    assert play.code == 0 and moves(play) == [f"lb1 {STOP}"]
    play = switched(Late(1000, **late), check=check)
    assert play.code == 2 and moves(play) == [] and str(*late.values())[2:-2] in str(play.faults())


def test_the_way_back_waits_for_a_member_that_could_not_take_over():
    living = Late(5, unable=["haproxy does not answer."])
    living.stopped["lb1"] = STOP
    assert moves(switched(living, switchover_back=True)) == [f"lb1 {START}"]


def test_a_member_that_cannot_be_read_is_named():
    play = switched(answers={"member_info": {"failed": True, "msg": "no room"}})
    assert play.code == 2 and released(play) and "lb1 cannot be read: no room." in str(play.faults())


def test_where_nothing_is_to_be_done_nothing_moves():
    play = switched(check=True, switchover_to="lb1")
    assert play.code == 0 and moves(play) == [] and "Next:" not in str(play.said)
