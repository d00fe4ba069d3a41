# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports the firewall of a member opens for whom: port 22623, and whatever else is for some networks alone."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.model import wanted_openings
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import presets as ipi_presets
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Firewall
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import presets
from support.paths import ROOT
from support.plans.clusters import cluster
from support.plans.pairs import pair

FOR_EVERYBODY = [
    name for name, preset in presets.PRESETS.items() if not any(front.machines_only for front in preset.fronts)
]
MODULE = "onprem.lb.firewall_openings"
UPI = {"preset": "openshift_upi", "masters": ["192.0.2.21"]}
WEB = {"name": "web", "port": 443, "servers": ["192.0.2.31"], "bind": ["192.0.2.10"]}


def firewalls(plan):
    assert plan.faults == []
    return {name: member.firewall for name, member in plan.members.items()}


def of_pair(**settings):
    return firewalls(_pair.plan(pair(**settings)))["lb1"]


def machine_config(networks):
    return [{"port": 22623, "networks": networks}]


def test_before_openshift_a_pair_opens_22623_for_the_machine_networks_alone():
    found = of_pair(**UPI, machine_networks=["192.0.2.0/24", "198.51.100.0/25"])
    assert found.ports == [6443, 80, 443]
    assert found.restricted_ports == machine_config(["192.0.2.0/24", "198.51.100.0/25"])


def test_the_other_members_may_connect_as_they_verify_that_the_service_answers():
    found = of_pair(**UPI, machine_networks=["192.0.2.16/28"])  # with the master, and without the members
    assert found.restricted_ports == machine_config(["192.0.2.16/28", "192.0.2.2"])


@pytest.mark.parametrize("preset", FOR_EVERYBODY)
def test_other_presets_open_all_their_ports_for_everybody(preset):
    found = of_pair(preset=preset)
    assert 22623 not in found.ports and found.restricted_ports == []


@pytest.mark.parametrize("preset", ipi_presets.PRESETS)
def test_a_cluster_opens_22623_on_its_masters_for_the_machine_networks_alone(preset):
    found = firewalls(ipi.plan(cluster(preset=preset, machine_networks=["10.0.0.0/24"])))
    for name in ("master-0", "master-2", "master-1"):
        assert found[name].restricted_ports == machine_config(["10.0.0.0/24"])
    assert found["worker-0"].restricted_ports == []
    assert found["master-0"].ports == [6443, 9445, 80, 443] and found["worker-0"].ports == [80, 443]


@pytest.mark.parametrize("preset", ipi_presets.PRESETS)
def test_without_machine_networks_it_stays_closed_for_everybody(preset):
    for found in firewalls(ipi.plan(cluster(preset=preset))).values():
        assert 22623 not in found.ports and found.restricted_ports == []


def test_a_preset_that_asks_the_machine_config_server_says_that_a_firewall_keeps_it_closed():
    (said,) = ipi.plan(cluster(preset="upstream")).warnings
    assert said == (
        "ipi_machine_networks is empty, so that an active firewall lets nobody fetch a machine's configuration from "
        "port 22623: name the networks of the cluster's machines."
    )
    assert ipi.plan(cluster(preset="upstream", machine_networks=["10.0.0.0/24"])).warnings == []


@pytest.mark.parametrize(
    "other, ports, networks",
    [
        ({"allow": ["198.51.100.0/24"]}, [], ["203.0.113.0/24", "198.51.100.0/24", "192.0.2.2"]),
        ({}, [443], None),
        ({"port": 444}, [444], ["203.0.113.0/24", "192.0.2.2"]),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_port_of_two_services_is_open_for_the_clients_of_both(other, ports, networks, reverse):
    own = [{**WEB, "allow": ["203.0.113.0/24"]}, {**WEB, "name": "other", "bind": ["192.0.2.11"], **other}]
    services = own[::-1] if reverse else own
    found = of_pair(services=services, vips=["192.0.2.10", "192.0.2.11"], masters=[], infra_nodes=[])
    assert found.ports == ports
    restricted = {each["port"]: sorted(each["networks"]) for each in found.restricted_ports}
    assert restricted == ({443: sorted(networks)} if networks else {})


def test_the_module_takes_what_is_planned():
    found = of_pair(**UPI, machine_networks=["192.0.2.16/28", "2001:db8::/64"])
    openings = wanted_openings(found.ports, found.vrrp_peers, found.restricted_ports)
    assert [str(each) for each in openings if each.port == 22623] == [
        "tcp 22623 from 192.0.2.2",
        "tcp 22623 from 192.0.2.16/28",
        "tcp 22623 from 2001:db8::/64",
    ]


def test_the_role_hands_all_of_it_to_the_module():
    (task,) = [
        task for task in yaml.safe_load((ROOT / "roles/layout/tasks/openings.yml").read_text()) if MODULE in task
    ]
    of_raw_lines = ("ports", "restricted_ports")  # opened, too
    assert {key: task[MODULE][key] for key in Firewall._fields if key not in of_raw_lines} == {
        key: f"{{{{ __layout_for_now.firewall.{key} }}}}" for key in Firewall._fields if key not in of_raw_lines
    }
    for key in of_raw_lines:
        assert f"__layout_for_now.firewall.{key}" in task[MODULE][key]
