# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of a cluster that are asked all the time: they lower the priority, and take nothing from the last one."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import answers
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi.presets import PRESETS
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from support.plans.clusters import ADDRESSES, cluster

ENGINES = ("native", "agent")
SHARD = {
    "address": "10.0.0.210",
    "name": "intranet",
    "checks": ["http://localhost:1937/healthz", "https://127.0.0.1:1/"],
}
SHARD["members"] = ["master-1", "worker-0"]


def planned(**settings):
    plan = planner.draft(ipi.LAYOUT, cluster(**settings))
    assert plan.faults == []
    return plan


def tracked(instance):
    """What an instance tracks, by name, with what a failure of it changes."""
    scripts = {item["name"]: tracking.check(item["weight"], False) for item in instance["track_scripts"]}
    files = {item["name"]: tracking.file(item["weight"], 1) for item in instance["track_files"]}
    return {**scripts, **files}


@pytest.mark.parametrize("engine", ENGINES)
def test_only_a_dead_haproxy_is_a_fault_in_the_default_preset(engine):
    plan = planned(engine=engine, ingress_vips=["10.0.0.201", SHARD])
    changes = [each for member in plan.members.values() for each in map(tracked, member.router.instances)]
    faults = {name for each in changes for name, change in each.items() if change is tracking.FAULT}
    assert faults == {"haproxy_down"}
    assert {"chk_api", "chk_haproxy", "chk_ingress", "chk_vmware_ingress_intranet_2"} < {
        name for each in changes for name in each
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("vip", ["vmware_API", "vmware_INGRESS"])
def test_any_node_whose_checks_succeed_comes_before_any_other_whatever_fails_there(engine, vip):
    plan = planned(engine=engine)
    instances = [each for member in plan.members.values() for each in member.router.instances if each["name"] == vip]
    checks = [{name: change for name, change in tracked(each).items() if name.startswith("chk_")} for each in instances]
    succeeding = [each["priority"] for each in instances]
    failing = [
        tracking.effective(each["priority"], {name: changes[name] for name in some})
        for each, changes in zip(instances, checks)
        for count in range(1, len(changes) + 1)
        for some in itertools.combinations(changes, count)
    ]
    assert min(succeeding) > max(failing)


def test_what_is_asked_has_the_figures_of_the_preset():
    preset, member = PRESETS["default"], planned().members["master-0"]
    asked = {each["name"]: each for each in member.questions}
    for check in (*preset.api_checks, *preset.ingress_checks):
        found = answers.question(**asked[check.name]).check
        times = (check.interval, check.timeout or check.interval)
        assert (found.interval, found.timeout) == tuple(round(each * 1_000_000) for each in times)
        assert (found.rise, found.fall, found.type, found.host) == (check.rise, check.fall, "http", "localhost")


@pytest.mark.parametrize("preset", ["upstream", "ocp45"])
def test_the_presets_that_copy_openshift_keep_its_checks(preset):
    member = planned(preset=preset).members["master-0"]
    assert member.questions == [] and {script["name"] for script in member.router.scripts} >= {"chk_ingress"}


def test_the_agent_asks_itself_and_a_name_takes_a_program():
    assert all(member.questions == [] for member in planned(engine="agent").members.values())
    shard = {**SHARD, "checks": ["http://routers.example:1936/healthz"]}
    worker = planned(ingress_vips=["10.0.0.201", shard]).members["worker-0"]
    assert [script["name"] for script in worker.router.scripts] == ["chk_vmware_ingress_intranet_1"]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_forecast_moves_the_vip_from_a_node_that_does_not_answer(engine):
    plan = ipi.plan(cluster(engine=engine))
    moved = {(line["vip"], line["event"]): (line["before"] != line["after"]) for line in plan.outages}
    assert moved["10.0.0.200", "haproxy_hung"] and moved["10.0.0.201", "router_stopped"]
    assert len(ADDRESSES) == len(plan.members)
