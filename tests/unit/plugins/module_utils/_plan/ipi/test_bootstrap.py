# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bootstrap host that is a member: it has the API VIP until a master serves, and gives it up for good."""

from __future__ import annotations

import functools
import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from support.plans.clusters import ADDRESSES, BOOTSTRAP, SETTINGS, cluster

NODES = [*ADDRESSES, *BOOTSTRAP]
WITH_BOOTSTRAP = {"masters": [*SETTINGS["masters"], *BOOTSTRAP], "bootstrap": "bootstrap-0"}


NO_RECORD = "master-0 does not answer, and no other member has a record of it"


def drafted(nodes):
    return planner.draft(ipi.LAYOUT, nodes)


def members(**settings):
    return cluster(*NODES, **{**WITH_BOOTSTRAP, **settings})


@functools.lru_cache(maxsize=None)
def planned(preset="default"):
    plan = ipi.plan(members(preset=preset, machine_networks=["10.0.0.0/24"]))
    assert plan.faults == []
    return plan


def api_instances(plan):
    found = {name: member.router.instances for name, member in plan.members.items()}
    return {name: each for name, instances in found.items() for each in instances if each["name"] == "vmware_API"}


def first_holder(plan):
    return next(line["before"] for line in plan.outages if line["vip"] == "10.0.0.200")


def test_it_carries_the_api_vip_alone_and_comes_last():
    plan = planned()
    assert [vip.order[-1] for vip in plan.vips] == ["bootstrap-0", "master-1"]
    assert "bootstrap-0" not in plan.vips[1].order
    found = api_instances(plan)
    priorities = {name: instance["priority"] for name, instance in found.items()}
    assert min(priorities, key=priorities.get) == "bootstrap-0" and len(set(priorities.values())) == 4
    assert all("10.0.0.20" in instance["peers"] for name, instance in found.items() if name != "bootstrap-0")


def test_a_master_that_begins_to_serve_takes_the_vip_from_it():
    """Without preemption it would keep the VIP until it dies."""
    assert all(instance["preempt"] for instance in api_instances(planned()).values())
    over = drafted(members(bootstrap_complete=True))
    assert not any(instance["preempt"] for instance in api_instances(over).values())


def test_the_ingress_is_not_preempted_meanwhile():
    instances = planned().members["worker-0"].router.instances
    assert [each["preempt"] for each in instances] == [False]


@pytest.mark.parametrize(
    "preset, holder", [("default", "master-0"), ("ocp45", "master-1"), ("upstream", "bootstrap-0")]
)
def test_with_all_in_order_the_holder_is_that_of_the_preset(preset, holder):
    """OpenShift's sum of a master is 68 at most today, and 90 in release 4.5; its bootstrap host has 70."""
    plan = planned(preset)
    assert first_holder(plan) == holder
    assert api_instances(plan)["bootstrap-0"]["priority"] == (203 if preset == "default" else 70)


@pytest.mark.parametrize("preset", ["ocp45", "upstream"])
def test_as_openshift_does_it_gives_the_vip_up_when_its_own_api_server_has_gone(preset):
    (tracked,) = api_instances(planned(preset))["bootstrap-0"]["track_scripts"]
    (script,) = planned(preset).members["bootstrap-0"].router.scripts
    assert tracked == {"name": script["name"], "weight": 0}
    assert "https://localhost:6443/readyz" in script["any_of"][0] and script["fall"] == 5


def test_in_the_preset_upstream_the_forecast_moves_the_vip_with_that_api_server():
    lines = {line["event"]: line for line in planned("upstream").outages if line["vip"] == "10.0.0.200"}
    assert lines["api_failing"]["after"] == "master-1"
    assert 5000 < lines["api_failing"]["outage_ms"] < 7000


@pytest.mark.parametrize("name", ["master-0", "bootstrap-0"])
def test_whoever_holds_the_vip_passes_the_api_and_the_machine_configs_on_to_all_of_them(name):
    balancer = planned().members[name].balancer
    assert balancer.redirect.ports == {6443: 9445, 22623: 9446}
    api, machine_config = balancer.services
    assert [api["port"], machine_config["port"]] == [9445, 9446]
    for service, port in ((api, 6443), (machine_config, 22623)):
        servers = [(server["address"], server["port"], server["backup"]) for server in service["servers"]]
        masters = [(f"10.0.0.{number}", port, False) for number in (34, 90, 99)]
        assert servers == [*masters, ("10.0.0.20", port, True)]
    assert (api["check"]["path"], machine_config["check"]["path"]) == ("/readyz", "/healthz")


def test_only_the_machine_networks_get_machine_configs_also_from_the_balancer():
    plan = planned()
    member = plan.members["bootstrap-0"]
    assert member.balancer.services[1]["allow"] == ["10.0.0.0/24", "10.0.0.200"]
    assert member.firewall.restricted_ports == [{"port": port, "networks": ["10.0.0.0/24"]} for port in (22623, 9446)]
    assert ["10.0.0.200", 22623] in plan.targets


def test_the_networks_must_have_the_bootstrap_host():
    faults = drafted(members(machine_networks=["10.0.0.32/27", "10.0.0.64/26"])).faults
    assert faults == [
        "ipi_machine_networks does not have 10.0.0.20 of bootstrap-0, so that no machine there could join: add its "
        "network."
    ]


def test_once_the_bootstrap_is_complete_it_carries_nothing_and_serves_nothing():
    plan = drafted(members(bootstrap_complete=True))
    member = plan.members["bootstrap-0"]
    assert (plan.faults, member.router.instances, member.balancer.services) == ([], [], [])
    for vip in plan.vips:
        assert "bootstrap-0" not in vip.order
    (service,) = plan.members["master-0"].balancer.services
    assert [server["name"] for server in service["servers"]] == ["master-0", "master-2", "master-1"]
    assert plan.members["master-0"].balancer.redirect.ports == {6443: 9445}


def test_it_is_no_master():
    faults = planner.draft(
        ipi.LAYOUT, cluster("master-0", *BOOTSTRAP, masters=["master-0", *BOOTSTRAP], bootstrap="bootstrap-0")
    ).faults
    assert "ipi_masters has 1 members: two or more are needed, three are usual." in faults


def silent_masters(**settings):
    found = members(**settings)
    for each in found:
        if each["name"].startswith("master"):
            each.update(host=None, silent=True)
    return found


def test_masters_that_do_not_exist_yet_have_the_addresses_of_the_inventory():
    plan = drafted(silent_masters())
    assert plan.faults == []
    assert api_instances(plan)["bootstrap-0"]["peers"] == ["10.0.0.34", "10.0.0.90", "10.0.0.99"]
    assert (
        "master-0 does not answer: this run leaves it as it is, and does not verify it. Its address is that of the "
        "inventory, as the cluster bootstraps, its settings are assumed to be its peers'."
    ) in plan.warnings


def test_a_family_of_which_the_inventory_has_no_address_has_to_wait():
    faults = drafted(silent_masters(api_vips=["10.0.0.200", "2001:db8::200"])).faults
    assert faults[0] == (
        "master-0 does not answer, and its address on the link of VIP 2001:db8::200 is not known: leave this "
        "VIP out until the member answers."
    )


@pytest.mark.parametrize("settings", [{"bootstrap_complete": True}, {"bootstrap": ""}, {"bootstrap": "10.0.0.9"}])
def test_without_a_member_that_bootstraps_they_must_answer(settings):
    assert (
        "master-0 does not answer, and no other member has a record of it"
        in drafted(silent_masters(**settings)).faults[0]
    )


def test_a_second_run_without_the_masters_changes_nothing():
    """No member that answers carries the ingress VIP: what the masters have of it is not known."""
    found = [each for each in silent_masters(auth_pass="secret1") if each["name"] != "worker-0"]
    first = drafted(found)
    bootstrap = found[-1]["host"]
    instances = [{**each, "auth_pass": "secret1"} for each in first.members["bootstrap-0"].router.instances]
    known = facts.members(json.dumps(first.record))
    bootstrap.update(instances=instances, members=known, active_units=[engines.UNITS[engines.NATIVE].router])
    for each in found[:-1]:
        each["outside_limit"] = True
    plan = drafted(found)
    assert (plan.faults, plan.sole_router, plan.joining) == ([], "", [])


def test_a_name_of_the_inventory_is_no_address():
    found = silent_masters()
    found[0]["address"] = "master-0.example.com"
    assert NO_RECORD in drafted(found).faults[0]
