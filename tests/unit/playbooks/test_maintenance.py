# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook maintenance, played against recorded results: one member after the other, and where it stops."""

from __future__ import annotations

import json
import re

import pytest
from support.recorded_hosts import PAIR, PAIR_VARIABLES, Living
from support.recorded_plays import file_of, run

STOP, START = "systemctl disable --now keepalived.service", "systemctl enable --now keepalived.service"


def maintained(living=None, answers=None, check=False, **variables):
    given = {"maintenance_reboot": "always", "maintenance_members": "lb2", **variables}
    found = (living or Living()).answers(**(answers or {}))
    return run("maintenance", PAIR, found, check=check, **PAIR_VARIABLES, **given)


def moves(play):
    """Return whose router stops or starts, and what is done to the member meanwhile."""
    done = play.of("drill_event", "reboot", "apt", "dnf", "pause", "ping")
    return [
        f"{call.on} {call.given['command']['inject'] if call.module == 'drill_event' else call.module}" for call in done
    ]


def released(play):
    return play.did("member_lock")[-2:] == ["lb1 member_lock absent", "lb2 member_lock absent"]


def test_each_member_is_drained_maintained_and_takes_part_again_before_the_next_one():
    play = maintained(maintenance_members=["lb1", "lb2"])
    assert play.code == 0 and released(play)
    assert moves(play) == [
        *(f"lb2 {STOP}", "lb2 reboot", f"lb2 {START}"),
        *(f"lb1 {STOP}", "lb1 reboot", f"lb1 {START}"),
    ]
    # The lock goes with the reboot.
    assert play.did("member_lock", "reboot")[2:6] == ["lb2 reboot", "lb2 member_lock", "lb1 reboot", "lb1 member_lock"]


@pytest.mark.parametrize("given, seconds", [({}, 600), ({"maintenance_reboot_timeout": "1800"}, 1800)])
def test_a_reboot_is_waited_for_as_long_as_is_said_also_that_of_a_container(given, seconds):
    (reboot,) = maintained(**given).of("reboot")
    assert reboot.given["reboot_timeout"] == seconds
    # The first is another one after each boot of a kernel, the second after each start of systemd.
    assert re.fullmatch(
        r"cat /proc/\S+/boot_id && systemctl show .*UserspaceTimestamp", reboot.given["boot_time_command"]
    )


def test_a_member_that_does_not_come_back_in_time_is_held_back_and_the_variable_is_named():
    late = {"failed": True, "msg": "Timed out waiting for last boot time check (timeout=600)"}
    play = maintained(answers={"reboot": late})
    assert play.code != 0 and moves(play) == [f"lb2 {STOP}", "lb2 reboot"]
    assert "Reboot it within maintenance_reboot_timeout: Timed out waiting for" in str(play.faults())


class Equal(Living):
    """Three members of equal priority, of which the last takes the VIP over from the first."""

    def seen(self, call):
        found = super().seen(call)
        held = [{"address": "192.0.2.10", "seconds": 1}] if call.on == ("lb3" if self.stopped else "lb1") else []
        return {**found, "held": held, "instances": [{**each, "priority": 40} for each in found["instances"]]}


class Late(Living):
    """Three members, of which the second one is late, so that the last takes the VIP over: nobody preempts."""

    taker = "lb3"

    def seen(self, call):
        found = super().seen(call)
        held = [{"address": "192.0.2.10", "seconds": 1}] if call.on == (self.taker if self.stopped else "lb1") else []
        priority = {"lb1": 254, "lb2": 253, "lb3": 252}[call.on]
        instances = [{**each, "priority": priority, "preempt": False} for each in found["instances"]]
        return {**found, "held": held, "instances": instances}


class Vain(Late):
    """The same, and nobody takes it over."""

    taker = "nobody"


def drained_of_three(living):
    members = {"pair": {**PAIR["pair"], "lb3": {"ansible_host": "192.0.2.3"}}}
    given = {"maintenance_reboot": "always", "maintenance_members": "lb1", **PAIR_VARIABLES}
    return run("maintenance", members, living.answers(), **given)


@pytest.mark.parametrize("living", [Equal, Late], ids=["equal", "not equal"])
def test_whichever_of_several_members_takes_the_vip_over_the_drain_goes_on(living):
    play = drained_of_three(living())
    assert play.code == 0 and moves(play) == [f"lb1 {STOP}", "lb1 reboot", f"lb1 {START}"]
    said = "192.0.2.10 is with lb3, which advertised before lb2."
    assert (said in str(play.said)) == (living is Late)


def test_a_vip_that_none_of_several_takes_over_goes_back_to_the_one_that_had_it():
    play = drained_of_three(Vain())
    assert play.code == 2 and moves(play) == [f"lb1 {STOP}"]
    assert "lb2 did not take over the VIPs within 10 s" in str(play.faults())
    assert play.did("systemd_service") == ["lb1 systemd_service started keepalived.service"]


def test_a_dry_run_moves_and_reboots_nothing():
    play = maintained(check=True, maintenance_pause=5)
    assert play.code == 0 and {call.check for call in play.of("drill_event", "reboot")} == {True}
    assert play.did("pause") == [] and play.of("member_info")[-1].given.get("asks_reboot") is None
    assert "Next: run the same command without --check." in str(play.said)


def test_a_dry_run_takes_a_member_that_is_held_back_for_proved_before_the_next_one():
    living = Living()
    living.stopped["lb1"] = STOP
    play = maintained(living, check=True, maintenance_members=["lb1", "lb2"])
    assert (play.code, play.faults()) == (0, [])
    assert moves(play) == [f"lb1 {STOP}", "lb1 reboot", f"lb1 {START}", f"lb2 {STOP}", "lb2 reboot", f"lb2 {START}"]


def test_a_member_that_is_not_proved_stays_held_back_and_the_run_ends_on_all():
    play = maintained(answers={"reboot": {"failed": True, "msg": "it does not come back"}})
    assert play.code == 2 and released(play)
    assert "The maintenance stops at lb2." in str(play.faults()) and "it does not come back" in str(play.faults())
    assert moves(play) == [f"lb2 {STOP}", "lb2 reboot"]


def test_a_router_that_is_not_ready_is_held_back_again():
    living = Living()

    def member_info(call):
        found = living.seen(call)
        begun = not living.stopped and call.on == "lb2" and "lb2" in reading
        reading.extend(living.stopped)
        return {**found, "instances": [{**each, "state": "Fault"} for each in found["instances"]]} if begun else found

    reading = []
    play = maintained(living, {"member_info": member_info})
    assert play.code == 2 and released(play)
    assert "has not begun to take part in the election" in str(play.faults())
    assert moves(play) == [f"lb2 {STOP}", "lb2 reboot", f"lb2 {START}", f"lb2 {STOP}"]


def test_a_member_whose_balancer_fails_meanwhile_takes_part_no_more():
    living = Living()

    def member_info(call):
        return {**living.seen(call), **({"unable": ["haproxy is off."]} if call.on in living.stopped else {})}

    play = maintained(living, {"member_info": member_info})
    assert play.code == 2 and "haproxy is off." in str(play.faults())
    assert moves(play) == [f"lb2 {STOP}", "lb2 reboot"]


@pytest.mark.parametrize("why, reboots", [("", 0), ("/run/reboot-required is there", 1)])
def test_a_member_is_rebooted_only_if_it_needs_that(why, reboots):
    play = maintained(Living(reboot=why), maintenance_reboot="if_needed")
    assert play.code == 0 and len(play.of("reboot")) == reboots


def test_a_member_is_left_to_its_administrator():
    play = maintained(maintenance_reboot="never", maintenance_pause=5)
    assert play.code == 0 and [call.on for call in play.of("pause")] == ["lb2"] and play.did("reboot") == []


def test_the_tasks_of_a_file_run_on_the_member_that_is_drained(tmp_path):
    (tmp_path / "work.yml").write_text(json.dumps([{"ansible.builtin.ping": None}]))
    play = maintained(maintenance_reboot="never", maintenance_tasks=str(tmp_path / "work.yml"))
    assert play.code == 0
    assert moves(play)[:3] == [f"lb2 {STOP}", "lb2 ping", f"lb2 {START}"]
    assert maintained(maintenance_tasks=str(tmp_path / "none.yml")).calls == []


@pytest.mark.parametrize("manager, module", [("apt", "apt"), ("dnf5", "dnf")])
@pytest.mark.parametrize("newest, exact", [(["haproxy"], []), ([], ["haproxy=3.0-1"]), (["curl"], ["haproxy=3.0-1"])])
def test_packages_are_updated_with_the_hosts_own_manager(manager, module, newest, exact):
    settings = {"packages": newest + exact}
    (update,) = file_of("tasks/update.yml")
    update["tasks"].insert(0, {"ansible.builtin.setup": {}})
    installed = {"stdout_lines": ["haproxy"], "stderr_lines": []}
    answers = {"setup": {"ansible_facts": {"pkg_mgr": manager}}, "command": installed}
    updated = run([update], {"pair": {"lb2": {}}}, answers, __maintenance_settings=settings).of("apt", "dnf")
    named = [exact] if module == "apt" else [[each.replace("=", "-") for each in exact]]
    assert [call.module for call in updated] == [module] * len(updated)
    assert [call.given["name"] for call in updated] == [names for names in [newest, *named] if names]
    assert [call.given.get("state") == "latest" for call in updated] == [True] * bool(newest) + [False] * bool(exact)


@pytest.mark.parametrize("installed", [[], ["haproxy"]])
def test_of_what_dnf_is_to_install_in_a_version_it_gets_what_is_installed(installed):
    """Its ``update_only`` leaves a version alone, whatever is installed."""
    settings = {"packages": ["haproxy=3.0-1", "keepalived=2.3-1"]}
    (update,) = file_of("tasks/update.yml")
    update["tasks"].insert(0, {"ansible.builtin.setup": {}})
    missing = [f"package {name} is not installed" for name in ("haproxy", "keepalived") if name not in installed]
    answers = {"setup": {"ansible_facts": {"pkg_mgr": "dnf"}}, "command": {"stdout_lines": installed + missing}}
    updated = run([update], {"pair": {"lb2": {}}}, answers, __maintenance_settings=settings).of("dnf")
    assert [call.given["name"] for call in updated] == [["haproxy-3.0-1"]] * len(installed)
    assert not any(call.given.get("update_only") for call in updated)


def test_a_query_of_rpm_that_fails_updates_nothing_and_says_so():
    (update,) = file_of("tasks/update.yml")
    update["tasks"].insert(0, {"ansible.builtin.setup": {}})
    failing = {"rc": 1, "stdout_lines": ["package haproxy is not installed"], "stderr_lines": ["error: no database"]}
    answers = {"setup": {"ansible_facts": {"pkg_mgr": "dnf"}}, "command": failing}
    settings = {"packages": ["curl", "haproxy=3.0-1"]}
    play = run([update], {"pair": {"lb2": {}}}, answers, __maintenance_settings=settings)
    assert (
        play.code == 2
        and play.of("dnf") == []
        and "rpm does not say whether haproxy is installed" in str(play.faults())
    )


def test_an_unknown_package_manager_is_refused_before_anything_moves():
    setup = {"setup": {"ansible_facts": {"pkg_mgr": "zypper", "ansible_pkg_mgr": "zypper"}}}
    play = maintained(answers=setup, maintenance_packages=["haproxy"])
    assert play.code == 2 and "updates packages with zypper" in str(play.faults()) and moves(play) == []
