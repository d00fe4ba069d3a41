# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another program that moves VIPs on this host is named by what it runs in, with what stops it there."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import cgroups, rivals
from ansible_collections.onprem.lb.plugins.module_utils._host.read.cgroups import RunsIn
from ansible_collections.onprem.lb.plugins.module_utils._host.read.processes import Process

VIP, VIP6 = "192.0.2.10", "2001:db8::10"
STATIC = RunsIn(cgroups.STATIC_POD, "d41d8cd98f00")
KEEPALIVED = Process("keepalived", 77, STATIC)
KUBE_VIP = Process("kube-vip", 88, STATIC, True, {"address": VIP})


def problems(*processes, vips=(VIP, VIP6), is_openshift=False):
    return [rival.problem for rival in rivals.rivals(processes, vips, is_openshift, lambda program: "")]


def test_a_keepalived_in_a_pod_or_a_container_is_refused():
    assert problems(KEEPALIVED) == [
        "keepalived runs in the static pod d41d8cd98f00 (pid 77), outside keepalived.service, and two VRRP routers on "
        "one host fight: take its manifest out of the kubelet's folder, such as /etc/kubernetes/manifests."
    ]
    (sentence,) = problems(KEEPALIVED._replace(runs_in=RunsIn(cgroups.CONTAINER, "4f2a", "podman")))
    assert "in the podman container 4f2a (pid 77)" in sentence and "stop that container" in sentence


def test_openshifts_own_keepalived_is_called_so():
    assert problems(KEEPALIVED, is_openshift=True) == [
        "OpenShift's own keepalived runs in the static pod d41d8cd98f00 (pid 77) and holds the cluster's VIPs: leave "
        "them to it, or install the cluster with the platform none or with a load balancer of type UserManaged."
    ]
    on_its_node = KEEPALIVED._replace(runs_in=RunsIn(cgroups.UNIT, "vrrp.service"))
    assert "systemctl disable --now vrrp.service" in problems(on_its_node, is_openshift=True)[0]


@pytest.mark.parametrize(
    "process",
    [
        KEEPALIVED._replace(runs_in=RunsIn(cgroups.UNIT, "keepalived.service")),
        KEEPALIVED._replace(runs_in=RunsIn()),
        KEEPALIVED._replace(on_this_network=False),
        KUBE_VIP._replace(environment={"address": "192.0.2.99"}),
        KUBE_VIP._replace(environment={"svc_enable": "true"}),
        KUBE_VIP._replace(on_this_network=False),
        Process("haproxy", 99, STATIC),
    ],
)
def test_what_meets_none_of_the_vips_is_not(process):
    assert problems(process) == []


@pytest.mark.parametrize(
    "environment, held",
    [
        ({"address": VIP}, VIP),
        ({"vip_address": f"{VIP}/32"}, VIP),
        ({"address": "192.0.2.99,2001:0DB8::10"}, VIP6),
        ({"address": f"{VIP},{VIP6}"}, f"{VIP}, {VIP6}"),
    ],
)
def test_a_kube_vip_that_holds_a_vip_is_refused(environment, held):
    assert problems(KUBE_VIP._replace(environment=environment)) == [
        f"kube-vip runs in the static pod d41d8cd98f00 (pid 88) and holds {held}, which two programs "
        "cannot hold: take its manifest out of the kubelet's folder, such as /etc/kubernetes/manifests."
    ]


@pytest.mark.parametrize("process", [KUBE_VIP, KEEPALIVED])
def test_the_manifest_of_a_static_pod_is_found(process):
    (rival,) = rivals.rivals([process], [VIP], False, "/m/{}.yaml".format)
    assert (rival.program, rival.manifest) == (process.program, f"/m/{process.program}.yaml")
    assert rivals.problem(rival, "") == rival.problem
    assert rivals.problem(rival, "ipi_take_over") == (
        f"{rival.problem[:-1]}, or let the run disable /m/{process.program}.yaml at the right moment: "
        "-e ipi_take_over=true."
    )


@pytest.mark.parametrize("kind", [cgroups.POD, cgroups.CONTAINER, cgroups.UNIT])
def test_what_a_kubelet_does_not_start_from_a_manifest_has_none(kind):
    (rival,) = rivals.rivals([KUBE_VIP._replace(runs_in=RunsIn(kind, "a"))], [VIP], False, "/m/{}.yaml".format)
    assert rival.manifest == "" and rivals.problem(rival, "ipi_take_over") == rival.problem


def test_the_keepalived_of_this_collections_own_pod_is_no_rival():
    own = KEEPALIVED._replace(runs_in=RunsIn(cgroups.OWN_POD, "onprem-lb-router"))
    assert problems(own) == problems(own, is_openshift=True) == []
