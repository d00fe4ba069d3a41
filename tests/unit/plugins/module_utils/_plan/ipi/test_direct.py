# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masters with `ipi_plane: direct`: what the plane and the server get, what stays redirected, and what is refused."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import config
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from support.plans.clusters import cluster

MASTERS = ["master-0", "master-2", "master-1"]
BOTH = {"api_vips": ["10.0.0.200", "2001:db8::200"], "ingress_vips": ["10.0.0.201", "2001:db8::201"]}


def plan(**settings):
    return ipi.plan(cluster(**{"plane": "direct", **settings}))


def planned(given, name="master-0"):
    """The configuration of a master's plane, which the plane itself accepts."""
    assert given.faults == []
    content = given.members[name].direct["content"]
    assert config.parse(content)[1] == []
    return json.loads(content)


def test_each_master_hands_the_api_on_to_all_of_them_and_is_one_of_its_servers():
    given = plan()
    (service,) = planned(given)["services"]
    del service["new_connections"]
    assert (service["name"], service["bind"], service["port"]) == ("masters", ["10.0.0.200"], 6443)
    assert [server["name"] for server in service["servers"]] == MASTERS
    assert {server["address"] for server in service["servers"]} == {"10.0.0.34", "10.0.0.90", "10.0.0.99"}
    assert service["check"]["type"] == "https" and service["check"]["path"] == "/readyz"
    for name in MASTERS:
        assert given.members[name].direct_server == {"interface": "ens192", "services": [service]}


@pytest.mark.parametrize("given, expected", [({}, 1), ({"interval": 0.5}, 0.5), ({"interval": 3}, 1)])
def test_a_dead_api_server_is_noticed_soon(given, expected):
    check = planned(plan(server_check=given))["services"][0]["check"]
    assert check["interval"] == expected and "fast_interval" not in check


def test_workers_have_no_part_in_it_and_without_the_variable_nobody_has():
    assert (plan().members["worker-0"].direct, plan().members["worker-0"].direct_server) == ({}, {})
    assert plan(plane="proxy").members["master-0"].direct == {}
    assert plan(plane="proxy").members["master-0"].direct_server == {}


def test_each_family_has_a_service_of_its_own():
    services = planned(plan(**BOTH))["services"]
    assert [(each["name"], each["bind"]) for each in services] == [
        ("masters", ["10.0.0.200"]),
        ("masters6", ["2001:db8::200"]),
    ]
    assert all(":" in server["address"] for server in services[1]["servers"])


def test_what_comes_in_from_the_link_is_not_redirected_and_what_the_host_sends_is():
    assert plan().members["master-0"].balancer.redirect == (["10.0.0.200"], {6443: 9445}, "ens192")
    assert plan(plane="proxy").members["master-0"].balancer.redirect.direct_interface == ""


def test_where_vips_return_they_go_to_a_master_whose_plane_runs():
    given = plan(preset="upstream")
    for name in MASTERS:
        router = given.members[name].router
        assert {"name": "direct_down", "path": "/run/onprem-lb-direct.down"} in router.track_files
        tracked = {each["name"]: each["track_files"] for each in router.instances}
        assert {"name": "direct_down", "weight": -1} in tracked["vmware_API"]
        assert all(file["name"] != "direct_down" for file in tracked["vmware_INGRESS"])
    (line,) = [line for line in given.outages if line["event"] == "direct_down"]
    assert line["before"] != line["after"]


def test_without_preemption_the_vip_stays_and_a_warning_says_so():
    given = plan()
    assert "direct_down" not in [file["name"] for file in given.members["master-0"].router.track_files]
    (line,) = [line for line in given.outages if line["event"] == "direct_down"]
    assert line["before"] == line["after"]
    assert any("ipi_preset default does not preempt" in warning for warning in given.warnings)
    assert not any("does not preempt" in warning for warning in plan(plane="proxy").warnings)


def test_the_forecast_says_that_lasting_connections_with_the_api_are_kept():
    said = {each["address"]: each["lasting"] for each in ipi.planner.forecast_input(plan(**BOTH))["vips"]}
    assert said == {
        "10.0.0.200": "kept: masters",
        "2001:db8::200": "kept: masters6",
        "10.0.0.201": "",
        "2001:db8::201": "",
    }


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"bootstrap": "10.0.0.50"}, "ipi_plane is direct while ipi_bootstrap is set"),
        ({"follow": True, "follow_kubeconfig": "/etc/kubeconfig"}, "ipi_plane is direct and ipi_follow is true"),
        ({"delivery": "pod", "pods": {"agent_image": "agent:1"}}, "ipi_plane is direct, which runs as a unit"),
        ({"plane": "fast"}, "ipi_plane is 'fast'"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, sentence):
    assert [fault for fault in plan(**settings).faults if sentence in fault], plan(**settings).faults
