# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pair's forecast prints for the cluster behind it, and what its run says of the cluster's certificates."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.pasting import PLATFORMS
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import presets
from support.plans.pairs import pair

NAME, VIP = "api.example.com", "192.0.2.10"
NETWORKS = dict.fromkeys(("openshift_upi", "openshift_arbiter"), {"machine_networks": ["192.0.2.0/24"]})


def plan(preset, **settings):
    found = _pair.plan(pair(preset=preset, **NETWORKS.get(preset, {}), **settings))
    assert found.faults == []
    return found


def pasted(preset, **settings):
    return yaml.safe_load("\n".join(plan(preset, **settings).snippet))


PASTED = {
    "kubeadm": {"controlPlaneEndpoint": f"{NAME}:6443", "apiServer": {"certSANs": [NAME, VIP]}},
    "rke2": {"tls-san": [NAME, VIP], "server": f"https://{NAME}:9345"},
    "k3s": {"tls-san": [NAME, VIP], "server": f"https://{NAME}:6443"},
    "openshift_upi": {"platform": {"none": {}}},
    "openshift_arbiter": {"platform": {"none": {}}},
    "k0s": {"spec": {"api": {"externalAddress": NAME, "sans": [NAME, VIP]}}},
    "talos": {
        "cluster": {
            "controlPlane": {"endpoint": f"https://{NAME}:6443"},
            "apiServer": {"certSANs": [NAME, VIP]},
        }
    },
}


@pytest.mark.parametrize("preset", presets.NAMED)
def test_what_a_cluster_needs_can_be_pasted(preset):
    assert pasted(preset, api_names=[NAME]) == PASTED[preset]


def test_the_api_of_every_cluster_but_the_defaults_has_names_as_pair_api_names_says():
    assert [name for name in presets.PRESETS if name not in presets.NAMED] == [presets.DEFAULT]


def test_without_a_name_the_vip_is_the_endpoint_also_with_ipv6():
    assert pasted("k3s") == {"tls-san": [VIP], "server": f"https://{VIP}:6443"}
    six = "1:2:3:4:5:6:7:8"  # which YAML takes for a number without its quotes
    assert pasted("kubeadm", vips=[six], interface="eth0") == {
        "controlPlaneEndpoint": f"[{six}]:6443",
        "apiServer": {"certSANs": [six]},
    }


def test_the_addresses_of_openshifts_names_are_said():
    said = plan("openshift_upi").snippet[-1]
    assert said.startswith(f"# In DNS, api and api-int of the cluster's domain are {VIP}, ")


@pytest.mark.parametrize("preset", NETWORKS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_installer_is_told_that_the_pair_is_the_balancer(preset, platform):
    vips = [VIP, "192.0.2.11", "2001:db8::10"]
    found = pasted(preset, platform=platform, vips=vips)
    own = [VIP, "2001:db8::10"]  # the first of each family
    assert found == {
        "networking": {"machineNetwork": [{"cidr": "192.0.2.0/24"}]},
        "platform": {platform: {"apiVIPs": own, "ingressVIPs": own, "loadBalancer": {"type": "UserManaged"}}},
    }


def test_a_vip_outside_the_machine_networks_is_said_and_the_steps_of_day_two_are_in_order():
    lines = "\n".join(plan("openshift_upi", platform="vsphere", vips=[VIP, "2001:db8::10"]).snippet)
    assert "# machineNetwork needs the subnet of 2001:db8::10 as well." in lines
    steps = [lines.index(step) for step in ("1. this pair", "2. `curl", "3. api and *.apps in DNS")]
    assert steps == sorted(steps)
    assert "as well" not in "\n".join(plan("openshift_upi", platform="vsphere").snippet)


def test_a_platform_that_nothing_reads_is_said():
    (warning,) = plan("k3s", platform="vsphere").warnings
    assert warning.startswith("pair_platform has no effect with the preset k3s")


def test_where_no_cluster_is_known_nothing_is_printed():
    assert plan("okd3").snippet == []


@pytest.mark.parametrize("preset", [{}, {"services": [{"name": "web", "port": 443, "servers": ["192.0.2.31"]}]}])
def test_names_that_nothing_uses_are_said(preset):
    found = _pair.plan(pair(api_names=[NAME], **{"masters": [], "infra_nodes": [], **preset} if preset else {}))
    assert [line for line in found.warnings if "pair_api_names has no effect" in line] == found.warnings != []


def warnings(preset, *uncovered, **settings):
    members = pair(preset=preset, **NETWORKS.get(preset, {}), **settings)
    for member in members:
        member["host"]["uncovered"] = list(uncovered)
    found = _pair.plan(members)
    assert found.faults == []
    return found.warnings


@pytest.mark.parametrize("preset", [name for name in presets.NAMED if presets.PRESETS[name].names.by_address])
def test_a_certificate_without_the_vip_is_a_warning_with_its_mend(preset):
    lacks = [{"server": f"192.0.2.2{each}", "name": VIP} for each in (1, 2)]
    assert warnings(preset, *lacks) == [
        f"{VIP} is not in the certificate of the API on 192.0.2.21, 192.0.2.22, so clients reject it: "
        f"{presets.PRESETS[preset].names.mend}"
    ]
    assert warnings(preset) == []


def test_clients_of_openshift_use_names_alone():
    (said,) = warnings(
        "openshift_upi", *({"server": "192.0.2.21", "name": name} for name in (NAME, VIP)), api_names=[NAME]
    )
    assert said.startswith(f"{NAME} is not in the certificate of the API on 192.0.2.21, ")
