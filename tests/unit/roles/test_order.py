# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of a wave do on a member: in the wave, before its turn, and where another stage changes its router."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.filter import plan
from ansible_collections.onprem.lb.plugins.module_utils._host.read import verification
from ansible_collections.onprem.lb.plugins.module_utils._plan.change.order import Wave
from support.roles import calls, tasks

ROLE, SYSTEMD, PROOF = "ansible.builtin.include_role", "ansible.builtin.systemd_service", "onprem.lb.layout_info"
WAVE = {"members": ["lb1"], "proves": ["lb2"], "hands_over": []}
NO_MOVE = {"move": {"announcing": []}}
KNOWN = {
    "__layout_plan": {"routers_together": False, "joining": [], **NO_MOVE},
    "__layout_me": {"replaces": "", "proof": {"vips": []}},
    "__layout_undo": {"run": ""},
    "__layout_is_native": True,
    "__layout_in_pods": False,
    "__layout_components": ["haproxy", "keepalived"],
    "__layout_has_balancer": True,
    "__layout_has_router": True,
    "__layout_announces": False,
    "ansible_check_mode": False,
    "layout_definition": {"verify": True},
    "item": "keepalived.service",
}


def wave(*modules, on, of=None, **known):
    variables = {**KNOWN, "inventory_hostname": on, "__layout_wave": {**WAVE, **(of or {})}, **known}
    steps = ("routers/prove.yml", "routers/wave.yml")
    return [call for step in steps for _module, call in calls("layout", variables, *modules, tasks_from=step)]


def configured(on, **known):
    return [call["name"] for call in wave(ROLE, on=on, **known)]


def test_a_proof_comes_before_each_wave_in_which_the_vips_move_and_before_no_other(monkeypatch):
    still, moving, handing = Wave(["lb2"]), Wave(["lb1"], ["lb2"], ["lb1"]), Wave(["lb3"], [], ["lb3"])
    monkeypatch.setattr(plan.order, "waves", lambda *_given: [still, moving, handing])
    steps = plan.layout_waves([], [], [])
    assert [(*step["members"], step["is_proof"]) for step in steps] == [
        ("lb2", False),
        *(("lb1", True), ("lb1", False)),
        *(("lb3", True), ("lb3", False)),
    ]
    configuring = {task["name"]: task for task in tasks("layout", "configure.yml")}
    (loop,) = [task for task in configuring.values() if task.get("loop") == "{{ __layout_waves }}"]
    assert "is_proof | ternary('routers/prove.yml', 'routers/wave.yml')" in loop["ansible.builtin.include_tasks"]


def test_only_the_members_of_the_wave_change():
    assert configured("lb1") == ["onprem.lb.haproxy", "onprem.lb.keepalived"]
    assert configured("lb2") == []


@pytest.mark.parametrize(
    "plan",
    [{"routers_together": True, "joining": [], **NO_MOVE}, {"routers_together": False, "joining": ["lb1"], **NO_MOVE}],
)
def test_a_router_that_starts_or_changes_later_is_left_alone_in_the_wave(plan):
    assert configured("lb1", __layout_plan=plan) == ["onprem.lb.haproxy"]


def test_a_member_that_changes_its_engine_does_so_in_its_migration():
    assert configured("lb1", __layout_me={"replaces": "agent"}) == []


@pytest.mark.parametrize("on, proofs", [("lb1", []), ("lb2", [{"plan": {"vips": []}}])])
def test_the_members_of_the_wave_before_are_proved(on, proofs):
    assert wave(PROOF, on=on) == proofs
    assert wave(PROOF, on=on, of={"proves": []}) == []
    assert wave(PROOF, on=on, ansible_check_mode=True) == []


def test_a_router_stops_only_where_its_member_hands_its_vips_over():
    assert wave(SYSTEMD, on="lb1") == []
    handing = {"hands_over": ["lb1"]}
    assert wave(SYSTEMD, on="lb1", of=handing) == [{"name": "keepalived.service", "state": "stopped"}]
    assert wave(SYSTEMD, on="lb2", of=handing) == []


def test_a_router_that_was_stopped_starts_again():
    (start,) = wave(SYSTEMD, on="lb1", __layout_router_stopped={"changed": True})
    assert start == {"name": "keepalived.service", "state": "started"}


PODS = "onprem.lb.member_pods"


def test_static_pods_change_in_the_wave_of_their_member_and_the_routers_of_holders_stop_before():
    known = {
        "__layout_in_pods": True,
        "__layout_is_native": False,
        "__layout_components": [],
        "__layout_host": {"active_units": []},
        "__layout_me": {**KNOWN["__layout_me"], "follow": {}},
    }
    known["__layout_paths"] = plan.layout_paths()
    known["__layout_pods"] = {"files": [], "secrets": [], "pods": ["onprem-lb-router"], "archive": "/agent.pyz"}
    (started,) = wave(PODS, on="lb1", **known)
    assert started == {"pods": ["onprem-lb-router"], "state": "started"}
    assert wave(PODS, on="lb2", **known) == []
    stopped, _started = wave(PODS, on="lb1", of={"hands_over": ["lb1"]}, **known)
    assert stopped == {"pods": ["onprem-lb-router"], "state": "stopped"}
    assert wave(SYSTEMD, on="lb1", of={"hands_over": ["lb1"]}, __layout_router_stopped={"changed": True}, **known) == []


def moving(file, on, name, modules, **known):
    variables = {**KNOWN, "inventory_hostname": on, "__layout_moving": name, **known}
    return [call for _module, call in calls("layout", variables, *modules, tasks_from=file)]


def test_one_member_announces_at_a_time_and_is_verified_before_the_next_one():
    names = [task["name"] for task in tasks("layout", "routers/announce.yml")]
    assert [name.partition(" | ")[2] for name in names] == [
        "Stop FRR, which knows no VIP yet",
        "The health gate of the VIPs",
        "Wait for the VIPs on lo",
        "Start FRR",
        "Verify the paths before the next one",
    ]
    configuring = {task["name"]: task for task in tasks("layout", "configure.yml")}
    (loop,) = [task for task in configuring.values() if "move.announcing" in str(task.get("loop"))]
    order = [*configuring]
    assert order.index("Configure | Change the Backups, then each holder") < order.index(loop["name"])


def test_frr_starts_once_each_vip_is_on_lo_and_none_that_only_begins_like_it():
    known = {
        "__layout_host": {"on_loopback": []},
        "__layout_expected": {"announced": ["192.0.2.1"]},
        "__layout_units": {"router": {"files": [], "units": []}},
        "__layout_only_checks": False,
    }
    plans = [each["plan"] for each in moving("routers/announce.yml", "lb1", "lb1", [PROOF], **known)]
    assert {key: plans[0][key] for key in ("vips", "services", "targets", "units")} == dict.fromkeys(
        ("vips", "services", "targets", "units"), []
    )
    seen = {
        "sessions": {},
        "addresses": [],
        "active_units": [],
        "stale": [],
        "down_file": "",
        "in_fault": {},
        "listeners": [],
        "reached": [],
    }
    for on_lo, missing in (["192.0.2.10"], 1), (["192.0.2.10", "192.0.2.1"], 0):
        assert len(verification.faults(plans[0], {**seen, "on_loopback": on_lo})) == missing


def test_in_a_move_the_wave_leaves_the_gate_to_its_own_turn():
    (gate,) = [
        task for task in tasks("layout", "routers/wave.yml") if task["name"].startswith("Wave | The health gate")
    ]
    assert "inventory_hostname not in __layout_plan.move.announcing" in gate["when"]


HOST = {"active_units": ["keepalived.service", "frr.service"], "enabled_units": [], "existing_units": ["frr.service"]}


@pytest.mark.parametrize("announces, stops", [(True, "keepalived.service"), (False, "frr.service")])
def test_the_one_whose_turn_it_is_ends_what_the_plan_does_not_have(announces, stops):
    known = {
        "item": stops,
        "__layout_announces": announces,
        "__layout_paths": plan.layout_paths(),
        "__layout_host": HOST,
        "__layout_plan": {"move": {"came_from": "vrrp"}},
    }
    (loop,) = [task["loop"] for task in tasks("layout", "routers/leave.yml") if "loop" in task]
    assert "if __layout_announces else ['frr.service']" in loop
    stopped = moving("routers/leave.yml", "lb1", "lb1", [SYSTEMD], **known)
    assert [(call["name"], call["state"]) for call in stopped] == [(stops, "stopped")]
    assert moving("routers/leave.yml", "lb2", "lb1", [SYSTEMD], **known) == []


def test_nothing_that_relies_on_them_goes_before_they_have_ended():
    names = [task["name"] for task in tasks("layout", "unused.yml")]
    assert names[:2] == ["Unused | Verify what takes its place", "Unused | End VRRP or BGP, one after another"]
    assert names.index("Unused | Remove helper units and the down file") < names.index("Unused | Remove the programs")
