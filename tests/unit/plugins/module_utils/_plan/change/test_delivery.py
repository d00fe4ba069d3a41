# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cluster whose balancers and routers are static pods: what its plan has otherwise, and what is refused."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import order
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import plan as plans
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import PODS, UNITS
from support.plans.clusters import cluster, living
from support.plans.pairs import pair

IMAGE = "registry.example/onprem-lb:1"
IN_PODS = {"delivery": "pod", "pods": {"agent_image": IMAGE}}
HELD = {"10.0.0.200": "master-0", "10.0.0.201": "worker-0"}


def planned(*names, **settings):
    plan = planner.draft(ipi.LAYOUT, cluster(*names, **{**IN_PODS, **settings}))
    assert plan.faults == []
    return plan


def faults(**settings):
    return planner.draft(ipi.LAYOUT, cluster(**{**IN_PODS, **settings})).faults


def in_pods(present="native", **settings):
    """Nodes that run as pods of an engine."""
    nodes = living(["master-0", "master-2", "master-1"], HELD, **{**IN_PODS, **settings})
    for node in nodes:
        node["host"].update(own_units=[*PODS], active_units=[*PODS], pods_engine=present)
    return nodes


def test_a_member_is_proved_by_its_pods_and_has_no_track_file_of_the_host():
    members = planned().members
    assert members["master-0"].expected.units == ["onprem-lb-balancer", "onprem-lb-router"]
    assert members["worker-0"].expected.units == ["onprem-lb-router"]
    assert {member.expected.down_file + member.balancer.down_file for member in members.values()} == {""}
    assert members["master-0"].router.track_files, "the router tracks that of its pod"


def test_every_image_is_that_of_the_agent_unless_it_is_named():
    options = (
        planned(pods={"agent_image": IMAGE, "haproxy_image": "registry.example/haproxy:3"}).members["master-0"].pods
    )
    assert options == {
        "agent_image": IMAGE,
        "haproxy_image": "registry.example/haproxy:3",
        "keepalived_image": IMAGE,
        "follow_image": IMAGE,
        "namespace": "kube-system",
        "pull_policy": "IfNotPresent",
    }


def test_units_and_a_pair_have_no_pods():
    assert planner.draft(ipi.LAYOUT, cluster()).members["master-0"].pods == {}
    assert planner.draft(_pair.LAYOUT, pair()).members["lb1"].pods == {}


def test_a_host_needs_no_packages_for_its_pods():
    nodes = cluster(**IN_PODS)
    for node in nodes:
        node["host"].update(missing_packages=["haproxy"], unobtainable="no source can be reached", os_family="Debian")
    plan = planner.draft(ipi.LAYOUT, nodes)
    assert (plan.faults, plan.members["master-0"].engine) == ([], "native")


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"pods": {}}, "ipi_pods lacks 'agent_image': add it."),
        ({"pods": {"agent_image": IMAGE, "pull_policy": "Sometimes"}}, "ipi_pods.pull_policy is 'Sometimes'"),
        ({"pods": {"agent_image": IMAGE, "image": IMAGE}}, "ipi_pods"),
        ({"delivery": "container"}, "ipi_delivery is 'container'"),
        ({"engine": "agnet"}, "ipi_engine is 'agnet': one of auto, native, agent is required: did you mean agent?"),
        (
            {"metrics_file": "/var/lib/prometheus/node-exporter/lb.prom"},
            "ipi_metrics_file is set with ipi_delivery: pod",
        ),
    ],
)
def test_what_pods_cannot_be_is_refused_with_the_mend(settings, words):
    assert any(words in fault for fault in faults(**settings)), faults(**settings)


def test_a_bootstrap_host_is_a_server_and_no_member():
    nodes = cluster(
        "master-0", "master-1", "bootstrap-0", masters=["master-0", "master-1"], bootstrap="bootstrap-0", **IN_PODS
    )
    assert any(
        "ipi_bootstrap is a member with ipi_delivery: pod" in each for each in planner.draft(ipi.LAYOUT, nodes).faults
    )
    assert faults(bootstrap="10.0.0.20") == []


def moving(before, after, present="native", engine="auto", **host):
    """The plan of nodes that run by one delivery, and get another one.

    :param present: the engine of the pods that are there
    """
    nodes = in_pods(present) if before == "pod" else living(["master-0", "master-2", "master-1"], HELD)
    for node in nodes:
        node["settings"].update(IN_PODS if after == "pod" else {"delivery": "unit"}, engine=engine)
    nodes[0]["host"].update(host)
    return planner.draft(ipi.LAYOUT, nodes)


@pytest.mark.parametrize(
    "before, after, present, engine, replaced",
    [
        ("unit", "pod", "native", "auto", "native"),
        ("unit", "pod", "native", "agent", "native"),
        ("pod", "unit", "native", "auto", "native"),
        ("pod", "unit", "agent", "native", "agent"),
    ],
)
def test_members_move_to_another_delivery_one_after_the_other_and_the_holders_last(
    before, after, present, engine, replaced
):
    plan = moving(before, after, present, engine)
    assert (plan.faults, plan.undo.members) == ([], [])
    assert sorted(plan.migration_order[2:]) == ["master-0", "worker-0"] == sorted(HELD.values())
    assert {*plan.migration_order} == {*plan.members}
    assert {(each.replaces, each.moves_from) for each in plan.members.values()} == {(replaced, before)}
    assert {each.engine for each in plan.members.values()} == {"agent" if engine == "agent" else "native"}
    assert all(f"; in place of its {before}s, as number " in line for line in plan.engines)
    rows = [line for line in plan.warnings if line.startswith("  delivery")]
    assert rows and all(f"{before} -> {after}" in row and "moves the VIP" in row for row in rows)
    waves = order.waves([as_data(plan)], [*plan.members], [*plan.members])
    assert [name for wave in waves for name in wave.hands_over] == [], "each stops in its own migration"


@pytest.mark.parametrize(
    "left",
    [
        {"own_units": [*PODS, "keepalived.service"]},
        {"recorded_packages": ["haproxy", "psmisc"], "active_units": [*PODS, "haproxy.service"]},
    ],
)
def test_a_member_whose_move_was_interrupted_completes_it_or_returns(left):
    nodes = in_pods()
    nodes[0]["host"].update(left)
    plan = planner.draft(ipi.LAYOUT, nodes)
    assert (plan.faults, plan.migration_order) == ([], [nodes[0]["name"]])


@pytest.mark.parametrize("present", ["native", "agent"])
def test_pods_stay_what_they_are_unless_an_engine_is_named(present):
    plan = planner.draft(ipi.LAYOUT, in_pods(present))
    assert (plan.faults, plan.migration_order) == ([], [])
    assert {each.engine for each in plan.members.values()} == {present}
    assert {line.partition(": ")[2] for line in plan.engines} == {f"{present}, its pods are here already"}


@pytest.mark.parametrize("present, wanted", [("native", "agent"), ("agent", "native")])
def test_pods_change_their_engine_one_member_after_the_other_and_the_holders_last(present, wanted):
    nodes = in_pods(present, engine=wanted)
    plan = planner.draft(ipi.LAYOUT, nodes)
    assert (plan.faults, sorted(plan.migration_order[2:])) == ([], sorted(HELD.values()))
    assert {(each.engine, each.replaces, each.moves_from) for each in plan.members.values()} == {(wanted, present, "")}
    assert any(line.startswith("  engine") and f"{present} -> {wanted}" in line for line in plan.warnings)
    assert all(each.expected.units[-1] == PODS.router for each in plan.members.values())


@pytest.mark.parametrize("program", ["haproxy", "python3"])
@pytest.mark.parametrize("wanted", ["native", "agent"])
def test_the_pod_of_either_engine_that_still_runs_takes_no_port_of_the_next_one(program, wanted):
    """The manifests are written, and the kubelet has not looked yet."""
    nodes = in_pods(wanted)
    listener = {"address": "0.0.0.0", "port": 9445, "program": program, "pid": 7, "runs_in": PODS.balancer}
    nodes[0]["host"]["listeners"] = [listener]
    assert planner.draft(ipi.LAYOUT, nodes).faults == []


@pytest.mark.parametrize("settings", [{"auth_pass": "another"}, {"vrrp_version": 3}, {"api_vips": ["10.0.0.202"]}])
def test_pods_do_not_change_their_engine_while_settings_change_that_all_must_share(settings):
    (fault,) = planner.draft(ipi.LAYOUT, in_pods(engine="agent", **settings)).faults
    assert fault.startswith("master-0, ") and "would change ipi_engine" in fault
    assert fault.endswith("as well: change ipi_engine in a run of its own.")


@pytest.mark.parametrize("wanted, expected", [("auto", "agent"), ("native", "native")])
def test_a_member_that_does_not_answer_is_assumed_to_have_the_engine_of_the_others_pods(wanted, expected):
    nodes = in_pods("agent", engine=wanted)
    record = {node["name"]: [node["host"]["addresses"][0]["address"]] for node in nodes}
    nodes[0].update(host=None, silent=True, outside_limit=True)
    for node in nodes[1:]:
        node["host"]["members"] = record
    plan = planner.draft(ipi.LAYOUT, nodes)
    assert plan.faults == [] and plan.members[nodes[0]["name"]].engine == expected
    assert nodes[0]["name"] not in plan.migration_order


def test_the_programs_of_pods_are_those_of_their_images():
    nodes = cluster(**IN_PODS, engine="agent")
    for node in nodes:
        node["host"]["missing_programs"] = ["nft", "curl", "ping"]
    assert planner.draft(ipi.LAYOUT, nodes).faults == []


def test_a_member_does_not_move_while_settings_change_that_all_must_share():
    nodes = living(["master-0", "master-2", "master-1"], HELD, **IN_PODS, auth_pass="another")
    (fault,) = planner.draft(ipi.LAYOUT, nodes).faults
    assert fault.startswith("master-0, ")
    assert fault.endswith("as well: change ipi_delivery in a run of its own.")


@pytest.mark.parametrize(
    "before, host, words",
    [
        ("unit", {"own_units": [*UNITS["agent"]]}, "master-0: the agent runs here in units, and ipi_delivery is pod"),
        (
            "unit",
            {"own_units": []},
            "master-0: haproxy.service and keepalived.service run here, ipi_delivery is pod, and they are not this "
            "collection's: stop and disable them first.",
        ),
        ("unit", {"unremovable": {"haproxy": "haproxy cannot be removed."}}, "master-0: haproxy cannot be removed."),
        (
            "pod",
            {"missing_packages": ["haproxy"], "unobtainable": "no source can be reached", "os_family": "Debian"},
            "master-0: it has pods, and its units would be the agent's",
        ),
    ],
)
def test_a_member_that_cannot_move_is_refused_with_the_mend(before, host, words):
    (fault,) = moving(before, "pod" if before == "unit" else "unit", **host).faults
    assert fault.startswith(words)


def test_the_members_change_one_after_the_other_the_holders_last():
    plan = planner.draft(ipi.LAYOUT, in_pods())
    assert [sorted(wave) for wave in plan.order] == [["master-2"], ["master-1"], ["master-0"], ["worker-0"]]


def test_a_holder_hands_over_if_the_kubelet_is_to_start_its_pods_anew():
    plan = as_data(planner.draft(ipi.LAYOUT, in_pods()))
    every = list(plan["members"])
    assert [wave.hands_over for wave in order.waves([plan], every)] == [[], [], [], []]
    assert [wave.hands_over for wave in order.waves([plan], every, every)][1:] == [
        ["master-1"],
        ["master-0"],
        ["worker-0"],
    ]


def test_a_manifest_that_changes_starts_its_pod_anew_and_another_file_does_not():
    assert order.starts_pods_anew({"paths": ["/etc/kubernetes/manifests/onprem-lb-router.yaml"]})
    assert not order.starts_pods_anew({"paths": ["/etc/kubernetes/static-pod-resources/onprem-lb/haproxy/haproxy.cfg"]})


def test_nothing_returns_by_itself_yet():
    assert planner.draft(ipi.LAYOUT, in_pods()).undo.reason.startswith("master-0 has static pods")


def test_a_member_of_data_is_the_one_of_the_plan():
    member = planned().members["master-0"]
    again = plans.member_of(as_data(member))
    assert (again.balancer, again.router, again.firewall) == (member.balancer, member.router, member.firewall)


@pytest.mark.parametrize("where, is_refused", [("onprem-lb-balancer", False), ("the static pod d41d8cd98f00", True)])
def test_a_port_is_taken_by_the_haproxy_of_another_pod_and_not_by_its_own(where, is_refused):
    nodes = in_pods()
    listener = {"address": "0.0.0.0", "port": 9445, "program": "haproxy", "pid": 7, "runs_in": where}
    nodes[0]["host"]["listeners"] = [listener]
    found = planner.draft(ipi.LAYOUT, nodes).faults
    assert any(f"already taken by haproxy in {where}" in fault for fault in found) == is_refused
