# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What registries and Kubernetes would refuse is refused before a manifest is written, by role and playbook alike."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import pod_options
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.playbooks import PLAYBOOKS
from support.plans import refusals

GOOD = "registry.example/onprem-lb:1"
IMAGES = [
    *("haproxy", "haproxy:3.0", "library/haproxy", GOOD, "R.EXAMPLE/a", "localhost:5000/a/b-c__d.e:v1.0-rc_1"),
    *(f"quay.io/a@sha256:{'0' * 64}", f"quay.io/a:1@sha256:{'a' * 64}", "[2001:db8::1]:5000/a"),
]
NO_IMAGES = [
    *(
        "a b",
        "R.EXAMPLE/A",
        "a:",
        ":1",
        "a@",
        f"a@sha256:{'0' * 63}",
        f"a@sha256:{'G' * 64}",
        "https://quay.io/a",
        "a//b",
    ),
    *("a/", "/a", "a-", f"a:{'v' * 129}", "a\n", "ä", "a;b", "", 1, ["a"]),
]
NO_NAMESPACES = ["Kube-System", "a.b", "-a", "a-", "a" * 64, "a b", 1, ["a"]]


@pytest.mark.parametrize("image", IMAGES)
def test_the_name_of_an_image_is_taken(image):
    assert pod_options.image(image) == (image, None)


@pytest.mark.parametrize("key", ["agent_image", *pod_options.OTHERS])
@pytest.mark.parametrize("image", NO_IMAGES)
def test_what_no_registry_has_is_refused_for_each_image(key, image):
    if image == "" and key != "agent_image":
        return  # it is that of the agent
    pods = {"agent_image": GOOD, key: image}
    (fault,) = refusals.of_cluster(delivery="pod", pods=pods)
    assert fault.startswith(f"ipi_pods.{key} is ") and "the name of an image is required" in fault


@pytest.mark.parametrize("namespace", NO_NAMESPACES)
def test_what_is_no_namespace_is_refused(namespace):
    (fault,) = refusals.of_cluster(delivery="pod", pods={"agent_image": GOOD, "namespace": namespace})
    assert fault.startswith("ipi_pods.namespace is ") and "namespace is required" in fault


def test_the_playbook_judges_them_as_the_role_does():
    assert {key: PLAYBOOKS["pods"][key].check for key in pod_options.OPTIONS} == {
        key: field.check for key, field in pod_options.OPTIONS.items()
    }


def test_good_ones_are_planned():
    assert refusals.of_cluster(delivery="pod", pods={"agent_image": GOOD, "namespace": "lb", "haproxy_image": ""}) == []
