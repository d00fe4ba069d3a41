# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routers wait for the end of static pods that hold the VIPs, on all nodes, and a run that cannot wait is refused."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from support.plans.clusters import cluster

POD = {"program": "kube-vip", "manifest": "/etc/kubernetes/manifests/kube-vip.yaml"}


def with_pods(*names, **changes):
    """Return the nodes of a cluster, with a static pod on some of them.

    :param changes: of parts of nodes, by name
    """
    nodes = cluster(**changes.pop("settings", {}))
    for each in nodes:
        if each["name"] in names:
            each["host"]["static_pods"] = [POD]
        each.update(changes.get(each["name"].replace("-", "_"), {}))
    return nodes


def test_every_router_waits_until_the_pods_are_disabled_and_the_run_says_so():
    plan = ipi.plan(with_pods("master-0", "master-2"))
    assert plan.faults == [] and sorted(plan.waiting) == ["master-0", "master-1", "master-2", "worker-0"]
    assert [line for line in plan.warnings if "kube-vip" in line] == [
        f"{name}: kube-vip may currently hold VIPs. At its end this run disables {POD['manifest']}, and no host holds "
        "them until keepalived takes over."
        for name in ("master-0", "master-2")
    ]


def test_no_router_waits_without_them():
    assert ipi.plan(cluster()).waiting == []


def test_a_router_that_runs_already_goes_on():
    nodes = with_pods("master-0")
    nodes[0]["host"]["active_units"] = ["keepalived.service"]
    plan = ipi.plan(nodes)
    assert plan.faults == [] and nodes[0]["name"] not in plan.waiting and len(plan.waiting) == 3


def test_a_node_with_a_pod_outside_the_limit_is_refused():
    assert ipi.plan(with_pods("master-0", "master-1", master_1={"outside_limit": True})).faults == [
        "--limit leaves master-1 out, on which kube-vip can hold VIPs: run it for all members."
    ]


def test_the_agent_is_refused_as_it_would_not_wait():
    assert ipi.plan(with_pods("master-0", settings={"engine": "agent"})).faults == [
        f"{name} gets the agent, and only keepalived can wait until master-0's kube-vip is disabled: set ipi_engine to "
        "native, and move to the agent afterwards."
        for name in ("master-0", "master-2", "master-1", "worker-0")
    ]


def test_static_pods_of_the_layout_are_refused_as_they_would_not_wait():
    in_pods = {"delivery": "pod", "pods": {"agent_image": "registry.example/onprem-lb:1"}}
    faults = ipi.plan(with_pods("master-0", settings=in_pods)).faults
    assert faults[0].endswith(
        " gets static pods, and only keepalived's unit can wait until master-0's kube-vip is disabled: set "
        "ipi_delivery to unit, and move to pods afterwards."
    )
    assert len(faults) == 4


def test_a_node_that_does_not_answer_is_refused():
    nodes = with_pods("master-0")
    record = {each["name"]: [each["address"]] for each in nodes}
    for each in nodes:
        each["host"]["members"] = record
    silent = {**nodes[-1], "host": None, "silent": True, "outside_limit": True}
    assert ipi.plan([*nodes[:-1], silent]).faults == [
        "worker-0 does not answer, so what holds VIPs there cannot be disabled: repeat the run when the host answers."
    ]
