# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stages of a layout do on which member, and in which order: waves, routers that run alone, migrations."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support.paths import ROLES
from support.recorded_hosts import UNITS, host_info
from support.recorded_layouts import HOSTS, MEMBER, ROUTER, SETTINGS, stage, undo
from support.roles import stage_of_run, variables_of

SETTLED = {name: {"__layout_undo": {"run": "", "role": "alone", "members": []}} for name in HOSTS["pair"]}
RUNS = host_info("lb1", active_units=UNITS, enabled_units=UNITS, existing_units=UNITS)
CHANGED = {"__layout_router_stopped": {"changed": True}}
ACTED = ("systemd_service", "member_pods", "config_files", "program", "agent", "layout_info", "member_state")


@pytest.mark.parametrize("role", ["pair", "ipi"])
def test_a_drill_plans_for_members_that_stay_as_they_are_and_a_run_does_not(role):
    (_reached, _recorded, drilled) = yaml.safe_load((ROLES / role / "tasks" / "plan.yml").read_text())
    assert drilled["vars"]["__layout_stays"] is True
    assert "'stays': __layout_stays | default(false)" in (ROLES / "layout" / "tasks" / "plan.yml").read_text()
    runs = [ROLES / role / "tasks" / "main.yml", ROLES / "layout" / "tasks" / "present.yml"]
    assert [path for path in runs if "__layout_stays" in path.read_text()] == []


def did(play, *modules):
    assert play.code == 0, play.faults()
    return play.did(*(modules or ACTED))


def only(name, play, *modules):
    """Return what was done on one member."""
    return [line.partition(" ")[2] for line in did(play, *modules) if line.startswith(name)]


WAVE = {"members": ["lb1"], "proves": [], "hands_over": []}
DOES = ("command", "member_info", "layout_info", "wait_for", "agent", "config_files", "frr_config")
WORK = {"archives": [], "folders": [], "files": [{"path": "/gate"}], "leaves": [], "units": [], "secrets": []}
FRR = {"__frr_files": [], "__frr_others": {"set_aside": []}, "__frr_model": {"secrets": []}}
MOVING = {**WAVE, "proves": ["lb2"], "hands_over": ["lb1"]}


def wave(of=None, facts=SETTLED, **values):
    return stage("routers/wave.yml", facts=facts, __layout_wave={**WAVE, **(of or {})}, **values)


def proof(answers=None, **values):
    return stage("routers/prove.yml", answers, values.pop("facts", SETTLED), __layout_wave=MOVING, **values)


def test_a_wave_proves_the_ones_before_and_takes_the_vips_from_one_that_would_stop_serving():
    play = proof(facts=undo())
    assert did(play, "layout_info", "systemd_service", "member_state") == [
        *("lb2 member_state announced", "lb1 member_state postponed", "lb2 member_state postponed"),
        "lb2 layout_info",
        "lb1 systemd_service stopped keepalived.service",
        *("lb2 member_state announced", "lb1 member_state postponed", "lb2 member_state postponed"),
    ]
    started = "lb1 systemd_service started keepalived.service"
    stopped = {name: {**each, **CHANGED} for name, each in SETTLED.items()}
    assert started in wave(facts=stopped).did("systemd_service") and started not in wave().did("systemd_service")


def test_a_member_that_is_not_proved_ends_the_run_on_all_before_a_holder_stops():
    answers = {"layout_info": {"failed": True, "msg": "haproxy is off.", "faults": ["haproxy is off."]}}
    play = proof(answers)
    assert play.code == 2 and "haproxy is off." in str(play.faults()) and play.did("systemd_service") == []
    assert {failure.host for failure in play.failures if not failure.ignored} == {"lb1"}  # once for all of them


@pytest.mark.parametrize("values", [{"check": True}, {"layout_definition": {"verify": False, "prefix": "pair"}}])
def test_nobody_is_proved_in_check_mode_or_where_it_is_not_wanted(values):
    play = proof(**values)
    assert did(play, "layout_info") == []
    assert did(play, "systemd_service") == ["lb1 systemd_service stopped keepalived.service"]
    assert {call.check for call in play.of("systemd_service")} == {bool(values.get("check"))}


def test_a_first_wave_proves_nobody():
    assert only("lb2", wave()) == [] and did(wave(), "layout_info") == []


def test_one_router_runs_alone_while_settings_change_that_all_must_share():
    alone = {"sole_router": "lb1", "routers_together": True}
    play = stage("routers/together.yml", facts=undo(), plan=alone)
    assert did(play, "systemd_service", "member_state") == [
        *("lb2 member_state announced", "lb1 member_state postponed", "lb2 member_state postponed"),
        "lb2 systemd_service stopped keepalived.service",
        "lb1 systemd_service reloaded keepalived.service",
        "lb2 systemd_service reloaded keepalived.service",
        "lb2 systemd_service started keepalived.service",
    ]


def test_the_router_of_a_member_that_gives_a_virtual_router_up_stops_first():
    play = stage("routers/together.yml", facts=SETTLED, plan={"leaving": ["lb2"], "joining": ["lb1"]})
    assert did(play, "systemd_service", "member_state") == [
        "lb2 systemd_service stopped keepalived.service",
        "lb2 systemd_service reloaded keepalived.service",
        "lb2 systemd_service started keepalived.service",
    ]


INSTANCE = {"name": "vip", "interface": "eth0", "vrid": 51, "addresses": ["192.0.2.10/32"], "peers": ["192.0.2.2"]}
MODEL = trust_as_template(variables_of("agent")["__agent_model"])
REPLACED = {"replaced_router": {**ROUTER, "instances": [INSTANCE]}}


@pytest.mark.parametrize(
    "replaces, module, expected",
    [
        ("native", "program", ["lb1 program keepalived_hook", "lb2 program keepalived_hook"]),
        ("agent", "agent", ["lb1 agent", "lb2 agent"] * 2),  # checked, and configured
    ],
)
def test_the_router_that_will_be_replaced_gets_the_new_settings_meanwhile(replaces, module, expected):
    agent = {"__agent_faults": []}
    member = {**REPLACED, "replaces": replaces, "engine": {"native": "agent", "agent": "native"}[replaces]}
    play = stage("routers/together.yml", facts=SETTLED, plan={"sole_router": "lb1"}, member=member, **agent)
    assert (
        did(play, module) == expected
        and did(play, "systemd_service")[0] == "lb2 systemd_service stopped keepalived.service"
    )
    without = stage(
        "routers/together.yml",
        facts=SETTLED,
        plan={"sole_router": "lb1"},
        member={"replaces": replaces, "replaced_router": None},
    )
    assert did(without, module) == []


def in_force_only(call):
    """Refuse what is checked."""
    return {"failed": True, "msg": "no."} if call.check else {"changed": True}


@pytest.mark.parametrize(
    "replaces, values, answers",
    [
        ("agent", {"__agent_faults": ["no."]}, {}),
        ("agent", {"__agent_faults": []}, {"agent": in_force_only}),
        ("native", {"__keepalived_not_in_force": ["/keepalived.conf"]}, {"config_files": in_force_only}),
    ],
)
def test_what_the_sole_router_gets_is_judged_before_the_others_stop(replaces, values, answers):
    usual = {"__keepalived_host": host_info("lb1")}
    member = {**REPLACED, "replaces": replaces, "engine": {"native": "agent", "agent": "native"}[replaces]}
    play = stage(
        "routers/together.yml",
        answers,
        facts=SETTLED,
        plan={"sole_router": "lb1"},
        member=member,
        **{**usual, **values},
    )
    assert play.code != 0 and "no." in str(play.faults())
    assert play.did("systemd_service") == []


def test_the_balancer_of_a_router_that_will_be_replaced_stays_as_it_is_whatever_its_successor_is_to_do():
    lines = {"name": "web", "bind": ["*"], "port": 80, "backend_lines": ["option httpchk"]}
    of_successor = {
        **MEMBER["balancer"],
        "services": json.dumps([lines]),
        "monitors": [{"name": "up", "port": 9997, "at_least": {"web": 1}}],
        "answer_port": 9999,
        "also_answers": [9998],
    }
    play = stage(
        "routers/together.yml",
        facts=SETTLED,
        plan={"sole_router": "lb1"},
        member={**REPLACED, "replaces": "agent", "balancer": of_successor},
        haproxy_extra_lines=["# more"],
        __agent_model=MODEL,
    )
    assert did(play, "agent") == ["lb1 agent", "lb2 agent"] * 2
    assert [call.check for call in play.of("agent")] == [True, True, False, False]
    for call in play.of("agent"):
        assert "proxy" not in call.given and call.given["vrrp"] and call.given["keep"] == ["proxy"]


def test_static_pods_stop_and_start_as_pods():
    pods = {"files": [], "secrets": [], "pods": ["onprem-lb-router"], "archive": "/agent.pyz"}
    values = {"member": {"pods": {"x": 1}}, "__layout_pods": pods, "__layout_follow_state": "/var/lib/f"}
    assert did(stage("routers/stop.yml", **values)) == [f"{name} member_pods stopped" for name in HOSTS["pair"]]
    assert only("lb1", stage("routers/start_pods.yml", **values, **CHANGED), "member_pods", "systemd_service") == [
        "member_pods started"
    ]


@pytest.mark.parametrize(
    "values, starts",
    [
        ({}, True),
        ({"check": True}, False),
        ({"__layout_router_stopped": {}}, False),
        ({"member": {"router": {**ROUTER, "instances": []}}}, False),
    ],
    ids=["it was stopped", "check mode", "it runs", "it has no router"],
)
def test_a_router_that_was_stopped_starts_again(values, starts):
    play = stage("routers/start.yml", **{**CHANGED, **values})
    assert ("systemd_service started keepalived.service" in only("lb1", play, "systemd_service")) is starts


def migrated(member, **values):
    return stage(
        "migrate.yml", plan={"migration_order": ["lb2", "lb1"]}, member=member, __layout_migrating="lb2", **values
    )


def test_the_members_migrate_one_after_the_other_and_the_last_one_is_verified_as_a_whole():
    play = migrated({"expected": {"targets": [1], "as": "expected"}})
    assert did(play, "layout_info") == ["lb2 layout_info"] and only("lb1", play) == []
    assert play.of("layout_info")[0].given == {"plan": {"as": "expected", "targets": []}, "servers": True}
    last = stage(
        "migrate.yml",
        plan={"migration_order": ["lb1"]},
        member={"expected": {"targets": [1]}},
        __layout_migrating="lb1",
    )
    assert last.of("layout_info")[0].given == {"plan": {"targets": [1]}, "servers": True}


TOLD = {"prefer_others": ["prefer"], "withdraw": ["withdraw"], "as_before": ["as before"]}
LEAVES = {"vips": ["203.0.113.10"], "frr": TOLD}
ANNOUNCES = {
    "replaces": "agent",
    "leaves": LEAVES,
    "bgp": {"frr": {}},
    "expected": {"announced": LEAVES["vips"], "as": "expected"},
    "proof": {"announced": LEAVES["vips"], "as": "it runs"},
}


def replaced(others, migrating="lb1", **values):
    """Have a member change its engine that announces, and return what is done on whom, and what was asked of whom.

    :param others: what the other one shows
    """

    def shown(call):
        return others if call.on != migrating else {"faults": []}

    play = stage(
        "routers/migrate.yml",
        {"layout_info": shown},
        plan={"migration_order": ["lb1", "lb2"]},
        member=ANNOUNCES,
        __layout_migrating=migrating,
        __layout_units={"router": WORK},
        **{**FRR, **values},
    )
    own = [each for each in play.of(*DOES) if each.module != "config_files" or each.given["files"] == WORK["files"]]
    done = [(call.on, call.given["argv"][-1] if call.module == "command" else call.module) for call in own]
    return play, done, {call.on: call.given["plan"] for call in play.of("layout_info")}


def test_a_member_that_announces_leaves_before_its_balancer_stops_and_is_proved_when_it_is_back():
    play, done, asked = replaced({"faults": []})
    assert play.code == 0, play.faults()
    assert [what for on, what in done if on == "lb1"] == [
        *("prefer", "member_info", "withdraw", "wait_for", "agent", "config_files", "as before", "layout_info")
    ]
    assert done.index(("lb2", "layout_info")) < done.index(("lb1", "withdraw"))
    assert asked["lb2"] == {**ANNOUNCES["proof"], "every_path": True} and asked["lb1"] == ANNOUNCES["expected"]
    assert replaced({"faults": []}, "lb2")[2]["lb1"]["as"] == "expected", "it has changed before"


@pytest.mark.parametrize(
    "others, said", [({"faults": ["no session."]}, "no session."), ({"failed": True, "msg": "gone"}, "gone")]
)
def test_the_last_one_that_announces_keeps_its_engine_and_announces_as_before(others, said):
    play, done, _asked = replaced(others)
    assert play.code == 2 and "Without lb1 nobody is proved" in str(play.faults()) and said in str(play.faults())
    assert [what for on, what in done if on == "lb1"] == ["prefer", "member_info", "as before"]


def test_a_dry_run_has_nobody_leave():
    play, done, asked = replaced({"faults": []}, check=True)
    assert play.code == 0 and asked == {} and {call.check for call in play.of("agent", "command")} == {True}
    assert ("lb1", "member_info") not in done


def test_a_wave_leaves_the_gate_of_a_member_whose_engine_changes_later():
    """It asks the balancer that runs. FRR asks none."""
    later = wave(member=ANNOUNCES, __layout_units={"router": WORK}, **FRR)
    assert only("lb1", later, "frr_config", "config_files") == ["frr_config"]
    now = wave(member={**ANNOUNCES, "replaces": ""}, __layout_units={"router": WORK}, **FRR)
    assert "config_files" in only("lb1", now, "config_files")


POD_FILES = {"files": [], "secrets": [], "pods": ["onprem-lb-router"], "archive": "/agent.pyz", "faults": []}
IN_PODS = {"__layout_pods": POD_FILES, "__layout_follow_state": "/var/lib/f"}


@pytest.mark.parametrize("check", [False, True])
def test_the_pods_of_the_other_engine_start_once_the_router_has_stopped(check):
    play = migrated({"pods": {"x": 1}}, check=check, **IN_PODS)
    stops = [] if check else ["member_pods stopped"]
    starts = [] if check else ["member_pods started"]
    assert only("lb2", play, "member_pods") == stops + starts and only("lb1", play) == []


@pytest.mark.parametrize("active, stopped", [(["onprem-lb-router", *UNITS], ["member_pods stopped"]), (UNITS, [])])
def test_units_give_the_vips_up_before_pods_start(active, stopped):
    member = {"pods": {"x": 1}, "moves_from": "unit"}
    host = host_info("lb1", active_units=active, enabled_units=UNITS)
    play = migrated(member, **IN_PODS, __layout_host=host)
    lines = only("lb2", play, "member_pods", "systemd_service")
    assert lines[: len(stopped) + 3] == [
        *stopped,
        "systemd_service stopped keepalived.service",
        "systemd_service stopped haproxy.service",
        "member_pods started",
    ]
    assert only("lb1", play) == []


def test_pods_give_the_vips_up_before_units_start():
    play = migrated({"moves_from": "pod"})
    lines = only("lb2", play, "member_pods", "systemd_service")
    assert lines[:4] == ["member_pods stopped"] * 3 + ["systemd_service reloaded haproxy.service"]
    assert lines[-1] == "member_pods absent" and only("lb1", play) == []


@pytest.mark.parametrize(
    "member, expected",
    [
        ({}, []),
        (
            {"router": {**ROUTER, "instances": []}},
            ["systemd_service stopped keepalived.service", "firewall_openings absent"],
        ),
        ({"balancer": {**MEMBER["balancer"], "services": "[]", "down_file": ""}}, ["config_files"]),
    ],
    ids=["it is needed", "no router", "no balancer"],
)
def test_what_a_member_needs_no_more_stops(member, expected):
    play = stage("unused.yml", member=member)
    assert only("lb1", play, "systemd_service", "firewall_openings", "config_files", "file", "nft_tables") == expected


def test_a_cluster_loses_its_redirect_with_its_balancer_and_its_shutdown_unit_with_its_router():
    definition = {"prefix": "ipi", "shutdown_before": ["kubelet.service"], "verify": True}
    member = {
        "router": {**ROUTER, "instances": []},
        "balancer": {**MEMBER["balancer"], "services": "[]", "down_file": ""},
    }
    host = {**RUNS, "existing_units": ["onprem-lb-shutdown.service"]}
    names = {"__ipi_guard_unit": "/g", "__ipi_nftables_unit": "/n"}
    play = stage(
        "unused.yml",
        member=member,
        layout_definition=definition,
        __layout_host=host,
        settings={"down_file": ""},
        **names,
    )
    modules = ("systemd_service", "firewall_openings", "config_files", "file", "nft_tables")
    assert [line.split()[0] for line in only("lb1", play, *modules)] == [
        *("systemd_service", "firewall_openings", "config_files", "config_files", "nft_tables"),
    ]
    assert SETTINGS["down_file"]  # else it would be deleted here, too


def test_programs_that_are_not_needed_are_removed():
    play = stage("unused.yml", member={"unused": ["agent"]}, agent_down_file="", agent_firewall=False)
    assert only("lb1", play, "agent") == ["agent absent"]


@pytest.mark.parametrize("wanted, file", [(True, "apply.yml"), (False, "remove.yml")])
def test_the_resolver_is_set_up_or_removed(wanted, file):
    included = stage_of_run("Resolve")["ansible.builtin.include_role"]
    known = {"__layout_me": {"resolver": {"layout": {}} if wanted else {}}}
    found = Templar(loader=DataLoader(), variables=known).template(included)
    assert found == {"name": "onprem.lb.resolver", "tasks_from": file}
    assert (ROLES / "resolver" / "tasks" / file).exists()
