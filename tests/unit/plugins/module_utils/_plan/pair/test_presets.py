# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pair serves before each kind of cluster."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import presets
from support.documents import row
from support.paths import ROLES
from support.plans.pairs import pair
from support.variable_tables import options

UPI = {"preset": "openshift_upi", "machine_networks": ["192.0.2.0/24"]}
OPENSHIFT = ("openshift_upi", "openshift_arbiter")
PORTS = {name: [front.port for front in preset.fronts] for name, preset in presets.PRESETS.items()}
WITHOUT_INGRESS = [name for name, preset in presets.PRESETS.items() if any(front.optional for front in preset.fronts)]


def plan(**settings):
    found = _pair.plan(pair(**settings))
    assert found.faults == []
    return found


def services(**settings):
    return {service["port"]: service for service in plan(**settings).members["lb1"].balancer.services}


@pytest.mark.parametrize("preset", PORTS)
def test_one_line_beside_the_addresses_serves_a_cluster_and_survives_every_single_failure(preset):
    found = plan(preset=preset, machine_networks=UPI["machine_networks"] if preset in OPENSHIFT else [])
    assert found.members["lb1"].firewall.ports == [port for port in PORTS[preset] if port != 22623]
    assert found.targets == [["192.0.2.10", port] for port in PORTS[preset]]
    assert {line["event"]: line["outage_ms"] for line in found.outages}["haproxy_killed"] == 72
    assert found.warnings == []


@pytest.mark.parametrize("preset", WITHOUT_INGRESS)
def test_a_cluster_whose_ingress_is_elsewhere_has_no_ports_for_it(preset):
    found = services(preset=preset, infra_nodes=[])
    assert list(found) == [port for port in PORTS[preset] if port not in (80, 443)]


def test_an_api_server_that_forbids_anonymous_requests_is_healthy_except_before_openshift():
    for preset in WITHOUT_INGRESS:
        check = services(preset=preset)[6443]["check"]
        assert (check["type"], check["path"], check["status"]) == ("https", "/readyz", ["200", "401"])
    assert services(**UPI)[6443]["check"]["status"] == ["200"]


def ports_in(text):
    return {int(port) for port in re.findall(r"\b\d{2,5}\b", text)}


def of_group(preset, group):
    return {front.port for front in presets.PRESETS[preset].fronts if front.group == group}


@pytest.mark.parametrize("preset", PORTS)
def test_the_readme_has_a_row_with_the_ports_of_each_preset(preset):
    first = f"`{preset}`{', the default' if preset == presets.DEFAULT else ''}"
    said = row(ROLES / "pair" / "README.md", first)
    assert ports_in(said["`pair_masters`"]) == of_group(preset, "masters")
    assert ports_in(said["`pair_infra_nodes`"].partition(";")[0]) == of_group(preset, "infra_nodes")
    assert ("if there are any" in said["`pair_infra_nodes`"]) == (preset in WITHOUT_INGRESS)


@pytest.mark.parametrize("preset", PORTS)
def test_the_variable_says_the_ports_of_each_preset(preset):
    text = " ".join(options("pair")["pair_preset"]["description"])
    said = re.search(rf"C\({preset}\)(?:(?:,| and) C\(\w+\))* (?:is|are) ([\d, and]+)", text)
    without = of_group(preset, "infra_nodes") if preset in WITHOUT_INGRESS else set()
    assert said and ports_in(said[1]) == set(PORTS[preset]) - without


def test_a_node_joins_rke2_only_through_a_server_whose_api_is_well_too():
    asked = services(preset="rke2")[9345]["check"]["steps"]
    assert [(step["type"], step["port"], step["path"], step["status"]) for step in asked] == [
        ("https", 6443, "/readyz", ["200", "401"]),
        ("https", None, "/v1-rke2/readyz", ["200", "403"]),
    ]


def test_machine_configurations_are_for_the_machine_networks_only():
    found = services(**UPI)
    assert {port: service["allow"] for port, service in found.items()} == {
        6443: [],
        22623: ["192.0.2.0/24"],
        80: [],
        443: [],
    }


def test_the_bootstrap_host_is_a_backup_server_until_the_bootstrap_is_complete():
    def names(**settings):
        found = services(**UPI, bootstrap="192.0.2.20", **settings)
        return {port: [server["name"] for server in found[port]["servers"] if server["backup"]] for port in found}

    assert names() == {6443: ["bootstrap"], 22623: ["bootstrap"], 80: [], 443: []}
    assert names(bootstrap_complete=True) == {6443: [], 22623: [], 80: [], 443: []}


def test_services_of_ones_own_are_served_beside_a_preset():
    own = {"name": "registry", "port": 5000, "servers": ["192.0.2.31"]}
    assert list(services(preset="k3s", services=[own])) == [5000, 6443, 80, 443]


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"preset": "eks"}, f"pair_preset is 'eks': one of {', '.join(PORTS)} is required."),
        ({"preset": "k3s", "masters": []}, "pair_masters is empty: name the servers' addresses."),
        ({**UPI, "infra_nodes": []}, "pair_infra_nodes is empty: name the servers' addresses."),
        ({"preset": "openshift_upi"}, "pair_machine_networks is empty: name the networks of the cluster's machines"),
        ({**UPI, "machine_networks": ["0.0.0.0/0"]}, "that is every address: name the networks that are meant"),
        ({**UPI, "machine_networks": ["192.0.2.1/24"]}, "a network such as 192.0.2.0/24, or an address, is required."),
        (
            {**UPI, "bootstrap": "198.51.100.9"},
            "pair_machine_networks does not have 198.51.100.9 of bootstrap, so that no machine there could join",
        ),
        ({"preset": "rke2", "masters": ["a b"]}, "pair_masters[0].address is 'a b': an IPv4 or IPv6 address, or"),
        ({"preset": "rke2", "masters": ["192.0.2.10"]}, "pair_masters: 192.0.2.10 at 192.0.2.10 port 6443 is a VIP"),
        (
            {"preset": "k3s", "services": [{"name": "a", "port": 6443, "servers": ["192.0.2.31"]}]},
            "service a and service masters-6443 both listen on * port 6443: change a port",
        ),
        ({"preset": "k3s", "services": "x"}, "pair_services is 'x': a list of services is required."),
    ],
)
def test_what_a_preset_lacks_is_refused_in_the_users_words(settings, sentence):
    faults = _pair.plan(pair(**settings)).faults
    assert any(sentence in fault for fault in faults), faults


def test_networks_that_are_refused_are_not_called_missing():
    (fault,) = _pair.plan(pair(**{**UPI, "machine_networks": "192.0.2.0/24"})).faults
    assert fault.startswith("pair_machine_networks is '192.0.2.0/24': a list is required")


@pytest.mark.parametrize("settings", [{"bootstrap": "192.0.2.20"}, {"machine_networks": ["192.0.2.0/24"]}])
def test_a_variable_of_another_preset_is_a_warning(settings):
    (warning,) = plan(preset="kubeadm", **settings).warnings
    (key,) = settings
    assert warning.startswith(f"pair_{key} has no effect with the preset kubeadm: leave it out")
