# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`ipi_checks`: which VIPs depend on which check, on masters and workers, and what is refused.

What both layouts do with a check is in test_checks.
"""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import presets as ipi_presets
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from support.plans.clusters import cluster
from support.rendering import keepalived

API, INGRESS = "10.0.0.200", "10.0.0.201"
GATEWAY = {"gateway": "10.0.0.254"}
PING = "/usr/bin/ping -n -q -c 1 -W 2 10.0.0.254"
ETCD = {"url": "http://localhost:2381/health", "name": "etcd", "vips": "api"}


def planned(*names, **settings):
    found = ipi.plan(cluster(*names, **settings))
    assert found.faults == []
    return found


def tracking(plan, check):
    """Return the instances that track a check, by node."""
    return {
        name: [each["name"] for each in member.router.instances if check in tracked(each)]
        for name, member in plan.members.items()
    }


def tracked(instance):
    return [item["name"] for kind in ("track_scripts", "track_interfaces") for item in instance[kind]]


MASTERS = ["master-0", "master-2", "master-1"]


def test_every_vip_depends_on_a_check_on_every_node_that_may_hold_it():
    plan = planned(checks=[GATEWAY])
    both = ["vmware_API", "vmware_INGRESS"]
    assert tracking(plan, "gateway-10.0.0.254") == {**dict.fromkeys(MASTERS, both), "worker-0": both[1:]}
    for member in plan.members.values():
        (script,) = [each for each in member.router.scripts if each["name"] == "gateway-10.0.0.254"]
        assert script["command"] == PING


@pytest.mark.parametrize(
    "check, name, on_master, on_worker",
    [
        (ETCD, "etcd", ["vmware_API"], []),
        ({**GATEWAY, "name": "gw", "vips": "ingress"}, "gw", ["vmware_INGRESS"], ["vmware_INGRESS"]),
        ({"interface": "eth1", "vips": "api"}, "eth1", ["vmware_API"], []),
    ],
)
def test_a_check_may_be_for_the_vips_of_one_role_alone(check, name, on_master, on_worker):
    plan = planned(checks=[check])
    assert tracking(plan, name) == {**dict.fromkeys(MASTERS, on_master), "worker-0": on_worker}
    scripts = [script["name"] for script in plan.members["worker-0"].router.scripts]
    assert (name in scripts) == (bool(on_worker) and "interface" not in check)


def test_both_engines_get_it_beside_the_checks_of_the_preset():
    given = [GATEWAY, {"interface": "eth1"}]
    router = planned(checks=given).members["master-0"].router
    written = [line.strip() for line in keepalived(router._asdict(), "master-0").splitlines()]
    assert "track_file chk_api {" in written and "vrrp_script gateway-10.0.0.254 {" in written
    assert f'script "{PING}"' in written and "eth1 weight 0" in written
    router = planned(checks=given, engine="agent").members["master-0"].router
    found = agent.translate({**router._asdict(), "services": []})
    assert found["faults"] == []
    (api,) = [each for each in found["vrrp"]["instances"] if each["name"] == "vmware_API"]
    names = {item["name"] for item in api["track"]}
    assert names >= {"chk_api", "gateway-10.0.0.254"}
    assert [each["command"] for each in found["vrrp"]["checks"] if each["name"] == "gateway-10.0.0.254"] == [PING]


def test_the_forecast_has_a_line_for_it_for_each_vip_and_the_others_stay_as_they_are():
    plan, usual = planned(checks=[GATEWAY]), planned()
    lines = {(line["vip"], line["event"]): line for line in plan.outages}
    before = {(line["vip"], line["event"]): line for line in usual.outages}
    own = {(vip, "gateway-10.0.0.254_failed") for vip in (API, INGRESS)}
    assert set(lines) == {*before, *own}
    assert {key: lines[key]["outage_ms"] for key in before} == {key: before[key]["outage_ms"] for key in before}
    assert {lines[key]["outage_ms"] for key in own} == {
        12072
    }  # three silent pings in 12 s, as keepalived skips the runs between, then as when haproxy dies
    assert {lines[key]["after"] for key in own} == {"master-2", "master-0"}


def test_a_check_of_one_role_is_a_failure_of_its_vips_alone():
    plan = planned(checks=[ETCD])
    assert [line["vip"] for line in plan.outages if line["event"] == "etcd_failed"] == [API]


@pytest.mark.parametrize("preset", ipi_presets.PRESETS)
def test_no_check_of_the_users_notices_what_those_of_the_preset_do(preset):
    """In `upstream` it would be faster than they are."""
    usual, checked = (
        {(line["vip"], line["event"]): line["outage_ms"] for line in planned(preset=preset, checks=checks).outages}
        for checks in ([], [ETCD])
    )
    assert {key: checked[key] for key in usual} == usual


def test_in_a_preset_without_preemption_a_weight_is_refused():
    (fault,) = ipi.plan(cluster(checks=[{**ETCD, "weight": -50}])).faults
    assert fault.startswith(f"{API}: when the check etcd fails on ")
    assert "does not preempt a holder that only lowers its priority: set the weight to 0 (FAULT)." in fault


@pytest.mark.parametrize(
    "preset, check, warning",
    [
        ("default", GATEWAY, "ipi_checks (gateway-10.0.0.254): while 10.0.0.254 answers none of the members, none of "
         "them holds the VIPs."),
        ("upstream", {**GATEWAY, "vips": "ingress"}, "ipi_checks (gateway-10.0.0.254): while 10.0.0.254 answers none "
         "of the members, none of them holds the ingress VIPs: a weight such as -50 lets one keep them."),
        ("default", ETCD, None),
    ],
)  # fmt: skip
def test_what_may_fail_on_all_nodes_at_once_is_warned_of_with_a_mend_that_works_there(preset, check, warning):
    found = [line for line in planned(preset=preset, checks=[check]).warnings if "answers none" in line]
    assert found == ([warning] if warning else [])


WRONG = {
    "no list": ("eth1", "ipi_checks is 'eth1': a list is required."),
    "an unknown role": (
        [{**GATEWAY, "vips": "etcd"}],
        "ipi_checks[0].vips is 'etcd': one of api, ingress is required.",
    ),
    "a VIP": (
        [{"gateway": INGRESS}],
        f"ipi_checks (gateway-{INGRESS}).gateway is {INGRESS}, a VIP of the cluster: name a host outside the cluster.",
    ),
    "a node": (
        [{"gateway": "10.0.0.51"}],
        "ipi_checks (gateway-10.0.0.51).gateway is 10.0.0.51, worker-0's own address: name a host outside the cluster.",
    ),
    "the name of a preset's check": (
        [{**GATEWAY, "name": "chk_ingress"}],
        "ipi_checks[0] (chk_ingress).name is 'chk_ingress', which the layout itself uses: choose another.",
    ),
    "the name of the track file": (
        [{**GATEWAY, "name": "haproxy_down"}],
        "ipi_checks[0] (haproxy_down).name is 'haproxy_down', which the layout itself uses: choose another.",
    ),
    "the VIPs' own interface": (
        [{"interface": "ens192"}],
        "ipi_checks (ens192) is the interface of all VIPs, which is always tracked: leave it out.",
    ),
    "the API VIP's own interface": (
        [{"interface": "ens192", "vips": "api"}],
        "ipi_checks (ens192) is the interface of all api VIPs, which is always tracked: leave it out.",
    ),
}


@pytest.mark.parametrize("checks, sentence", WRONG.values(), ids=WRONG)
def test_a_wrong_check_is_one_sentence(checks, sentence):
    assert ipi.plan(cluster(checks=checks)).faults == [sentence]


@pytest.mark.parametrize("check, node, faults", [(GATEWAY, "worker-0", 1), ({**GATEWAY, "vips": "api"}, "worker-0", 0)])
def test_an_agent_needs_the_program_of_a_check_that_it_runs(check, node, faults):
    nodes = cluster(engine="agent", checks=[check])
    (lacking,) = [each for each in nodes if each["name"] == node]
    lacking["host"]["missing_programs"] = ["ping"]
    found = ipi.plan(nodes).faults
    sentence = f"{node}: ping is missing, which ipi_checks (gateway-10.0.0.254) needs"
    assert [fault[: len(sentence)] for fault in found] == [sentence] * faults
