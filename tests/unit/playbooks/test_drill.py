# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role drill refuses before it reaches a host."""

from __future__ import annotations

import json

import pytest
from support.members import RECORD
from support.playbooks import play

DRILL = [{"hosts": "probe", "gather_facts": False, "roles": ["onprem.lb.drill"]}]


def test_a_misspelt_variable_is_one_sentence(tmp_path):
    playbook = tmp_path / "drill.yml"
    playbook.write_text(json.dumps(DRILL))
    code, said = play(tmp_path, "[probe]\nclient drill_repeat=3\n[pair]\nlb1\n", str(playbook))
    assert code != 0 and "drill_repeat is not a variable of the role: did you mean drill_repeats?" in said


PAIR = """
[pair]
lb1
lb2
[pair:vars]
pair_vips=["192.0.2.10"]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
[probe]
client
"""
NO_PLAN = "There is no plan to compare the drill with: lb1, lb2 could not be reached or were refused"


@pytest.mark.parametrize("facts", [{}, {"__layout_plans": {"faults": ["no"], "plans": []}}], ids=["none", "refused"])
def test_a_drill_without_a_plan_ends_with_a_sentence(tmp_path, facts):
    plays = [{"hosts": "pair", "gather_facts": False, "tasks": [{"set_fact": {"other": 1, **facts}}]}]
    playbook = tmp_path / "drill.yml"
    playbook.write_text(json.dumps(plays + DRILL))
    code, said = play(tmp_path, PAIR, str(playbook))
    assert code != 0 and NO_PLAN in said and "HostVars" not in said


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["-e", "drill_probe=nobody"], "this run has none"),
        (["-e", "drill_probe=lb1:lb2"], "this run has lb"),
        (["--limit", "pair"], "this run has none"),
    ],
    ids=["unknown", "two", "not in the limit"],
)
def test_a_drill_needs_one_probe_in_the_run(tmp_path, arguments, said):
    code, printed = play(tmp_path, PAIR, "onprem.lb.drill", *arguments)
    assert code != 0 and "A drill needs one host to probe from" in printed and said in printed


@pytest.mark.parametrize("given", ["drill_repeats=abc", "drill_events=x"])
def test_a_wrong_variable_is_refused_before_a_host_is_reached(tmp_path, given):
    code, printed = play(tmp_path, PAIR, "onprem.lb.drill", "-e", given)
    assert code != 0 and given.replace("=", " is '") in printed and "UNREACHABLE" not in printed


def drill(folder, host, *arguments):
    """Drill a pair whose members are read already, each as the same host."""
    plan = {"outages": [{"event": "haproxy_killed", "vip": "192.0.2.10"}], "targets": [], "members": {}}
    known = {"__layout_plans": {"faults": [], "plans": [plan]}, "__layout_member": {"name": "lb1", "host": host}}
    plays = [{"hosts": "pair", "gather_facts": False, "tasks": [{"set_fact": known}]}]
    playbook = folder / "drill.yml"
    playbook.write_text(json.dumps(plays + DRILL))
    return play(folder, PAIR, str(playbook), *arguments)


@pytest.mark.parametrize("during, mend", [("switchover", "-e switchover_back"), ("maintenance", "goes on with it")])
def test_a_drill_of_a_pair_with_a_member_held_back_is_refused_with_the_mend(tmp_path, during, mend):
    code, said = drill(tmp_path, {"addresses": [], "held_back": {**RECORD, "during": during}})
    assert code != 0 and "Nothing is drilled while lb1 is held back: its router is stopped since 2026-01-31" in said
    assert f"onprem.lb.{during} {mend}" in said


def test_a_drill_without_a_round_is_refused(tmp_path):
    code, said = drill(tmp_path, {"addresses": []}, "-e", '{"drill_events": ["host_cut"]}')
    assert code != 0 and "no forecast has host_cut. There are haproxy_killed in drill_events." in " ".join(said.split())


LINE = {"event": "port_down", "vip": "192.0.2.10", **dict.fromkeys(("before", "after", "back"), "lb1"), "outage_ms": 0}
MEMBER = {
    "engine": "native",
    "balancer": {"services": "[]", "redirect": None},
    "router": {"instances": [{"interface": "lo", "addresses": ["192.0.2.10/32"], "preempt_delay": 0}]},
}
PLAN = {"outages": [LINE], "targets": [["192.0.2.10", 80]], "members": {"lb1": MEMBER}, "advert_interval": 1}


def test_an_event_that_a_member_cannot_have_is_refused_before_anything_is_locked_or_injected(tmp_path):
    known = {
        "__layout_plans": {"faults": [], "plans": [PLAN]},
        "__layout_member": {"name": "lb1", "host": {"addresses": []}},
    }
    playbook = tmp_path / "drill.yml"
    plays = [{"hosts": "pair", "gather_facts": False, "tasks": [{"set_fact": known}]}]
    playbook.write_text(json.dumps(plays + DRILL))
    wanted = json.dumps({"drill_events": ["port_down"], "drill_history": str(tmp_path), "ansible_connection": "local"})
    code, said = play(tmp_path, PAIR, str(playbook), "-e", wanted)
    assert code != 0 and "port_down is not for lb1: " in said
    assert "Lock the members" not in said and "Measure" not in said
