# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster's forecast prints for OpenShift's installer."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.pasting import PLATFORMS
from support.plans.clusters import cluster


def snippet(**settings):
    found = ipi.plan(cluster(**settings))
    assert found.faults == []
    return found.snippet


@pytest.mark.parametrize("preset", ["default", "upstream", "current"])
@pytest.mark.parametrize("settings, name", [({}, "baremetal"), *(({"platform": name}, name) for name in PLATFORMS)])
def test_the_installer_gets_the_vips_and_is_told_to_run_no_balancer_of_its_own(preset, settings, name):
    assert yaml.safe_load("\n".join(snippet(preset=preset, **settings))) == {
        "platform": {
            name: {
                "apiVIPs": ["10.0.0.200"],
                "ingressVIPs": ["10.0.0.201"],
                "loadBalancer": {"type": "UserManaged"},
            }
        }
    }


def test_the_installer_takes_one_vip_of_a_family_and_none_of_a_shard():
    shard = {"address": "10.0.0.210", "domain": "intranet.example", "members": ["master-1", "worker-0"]}
    six = "2001:db8:0:0:1:2:3:4"
    lines = snippet(
        api_vips=["10.0.0.200", "2001:db8::200"],
        ingress_vips=[shard, "10.0.0.201", six, "10.0.0.202"],
        interface="ens192",
    )
    (platform,) = yaml.safe_load("\n".join(lines))["platform"].values()
    assert platform["apiVIPs"] == ["10.0.0.200", "2001:db8::200"]
    assert platform["ingressVIPs"] == ["10.0.0.201", "2001:db8::1:2:3:4"]
    assert lines[-1].startswith("# In DNS, api and api-int of the cluster's domain are 10.0.0.200 and 2001:db8::200, ")


@pytest.mark.parametrize("preset", ["ocp45", "seed"])
def test_the_installer_of_openshift_4_5_has_no_such_keys(preset):
    assert snippet(preset=preset) == []


def test_an_unknown_platform_is_refused_with_those_that_are_known():
    (fault,) = ipi.plan(cluster(platform="none")).faults
    assert "ipi_platform" in fault and all(name in fault for name in PLATFORMS)
