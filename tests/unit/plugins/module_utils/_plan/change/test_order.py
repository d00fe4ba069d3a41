# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order a run changes its members, what it proves on the way, and who hands its VIPs over."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import order
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import ROUTERS
from hypothesis import given, settings
from support.plans.clusters import cluster
from support.plans.pairs import pair
from support.plans.transitions import VIP, living
from support.scope import FULL

SECOND = "192.0.2.11"
THREE = [VIP, SECOND, "192.0.2.12"]
VRIDS = dict(zip(THREE, (51, 52, 53)))


def hold(members, held):
    """The same members, and which VIPs each of them holds."""
    for member in members:
        link = member["host"]["addresses"][-1]
        for vip in held.get(member["name"], []):
            member["host"]["addresses"].append({**link, "address": vip, "prefix": 32})
    return members


def waves(members, changing):
    plan = _pair.plan(members)
    assert plan.faults == []
    return order.waves([as_data(plan)], changing)


@pytest.mark.parametrize("holder", ["lb1", "lb2", "lb3"])
def test_the_backups_change_first_and_then_the_holder(holder):
    backups = [name for name in ("lb1", "lb2", "lb3") if name != holder]
    found = waves(living(3, holder=holder), ["lb1", "lb2", "lb3"])
    assert found == [order.Wave(backups), order.Wave([holder], proves=backups)]


def test_of_two_holders_the_one_with_fewer_vips_changes_first():
    vips = [VIP, SECOND, "192.0.2.12"]
    members = hold(living(before={"vips": vips}, vips=vips, holder=""), {"lb1": [VIP, SECOND], "lb2": ["192.0.2.12"]})
    assert waves(members, ["lb1", "lb2"]) == [order.Wave(["lb2"]), order.Wave(["lb1"], proves=["lb2"])]


def test_of_a_cluster_the_nodes_change_first_that_hold_no_vip():
    nodes = cluster()
    running = planner.draft(ipi.LAYOUT, nodes).members
    for node in nodes:
        router = running[node["name"]].router
        node["host"].update(instances=[{**each, "auth_pass": ""} for each in router.instances])
    held = {"master-2": ["10.0.0.200"], "worker-0": ["10.0.0.201"]}
    found = planner.draft(ipi.LAYOUT, hold(nodes, held)).order
    assert (sorted(found[0]), found[1:]) == (["master-0", "master-1"], [["master-2"], ["worker-0"]])


@settings(max_examples=400 if FULL else 60, deadline=None)
@given(
    count=st.integers(2, 4),
    before=st.sets(st.sampled_from(THREE), min_size=1),
    after=st.sets(st.sampled_from(THREE), min_size=1),
    held=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    splits=st.booleans(),
)
def test_whoever_alone_holds_a_vip_changes_after_the_backups_whatever_becomes_of_it(count, before, after, held, splits):
    holders = {vip: f"lb{at}" for vip, at in zip(THREE, held) if vip in before and 0 < at <= count}
    old, new = ([{"address": vip, "vrid": VRIDS[vip]} for vip in sorted(some)] for some in (before, after))
    changed = {"auth_pass": "an0ther1"} if splits else {}
    members = living(count, before={"vips": old}, vips=new, holder="", **changed)
    serving = {name: [vip for vip in holders if holders[vip] == name] for name in holders.values()}
    plan = _pair.plan(hold(members, serving))
    assert plan.faults == []
    backups = sorted({member["name"] for member in members} - {*serving})
    assert [sorted(wave) for wave in plan.order if len(wave) > 1 or wave[0] in backups] == [backups] * bool(
        backups and serving
    )
    later = plan.order[1:] if backups else plan.order
    assert sorted(name for wave in later for name in wave) == sorted(serving)
    if plan.sole_router and serving:
        most = max(len(vips) for vips in serving.values())
        assert len(serving.get(plan.sole_router, [])) == most


def test_a_vip_that_nobody_holds_makes_no_holder_of_another_one_change_with_the_backups():
    vips = [VIP, SECOND]
    members = living(3, before={"vips": vips}, vips=vips)  # lb1 holds the first, and nobody the second
    plan = _pair.plan(members)
    assert plan.order == [["lb2", "lb3"], ["lb1"]]
    proof = plan.members["lb2"].proof
    assert [vip.address for vip in proof.vips] == [VIP]
    assert proof.excused == [f"vip-{SECOND}"], "its FAULT was there before this run"


def test_the_fault_of_an_instance_whose_vip_is_served_until_it_is_replaced_is_not_excused():
    nodes = cluster(api_vips=["10.0.0.210"])  # nobody holds the new address yet
    running = planner.draft(ipi.LAYOUT, cluster()).members
    for node in nodes:
        router = running[node["name"]].router
        instances = [{**each, "auth_pass": ""} for each in router.instances]
        node["host"].update(instances=instances, active_units=[ROUTERS[0]])
    found = planner.draft(ipi.LAYOUT, hold(nodes, {"master-2": ["10.0.0.200"], "worker-0": ["10.0.0.201"]}))
    assert [name for wave in found.order for name in wave][-2:] == ["master-2", "worker-0"]
    assert found.members["master-0"].proof.excused == [], "its router still has the old address in the same instance"


def test_the_router_that_runs_alone_is_one_that_may_hold_every_vip():
    ingress = ["10.0.0.201", "10.0.0.202"]
    nodes = cluster(vrrp_version=3, api_vips=["10.0.0.210"], ingress_vips=ingress)
    running = planner.draft(ipi.LAYOUT, cluster(ingress_vips=ingress)).members
    for node in nodes:
        router = running[node["name"]].router
        node["host"].update(instances=[{**each, "auth_pass": ""} for each in router.instances])
    found = planner.draft(ipi.LAYOUT, hold(nodes, {"master-2": ["10.0.0.200"], "worker-0": ingress}))
    assert (found.sole_router, found.order[1:]) == ("master-2", [["master-2"], ["worker-0"]])


@pytest.mark.parametrize("changing", [[], ["lb2"]])
def test_a_run_that_changes_no_holder_takes_no_longer(changing):
    assert waves(living(), changing) == [order.Wave(["lb1", "lb2"])]


def test_a_holder_that_alone_changes_does_so_after_its_backup_is_proved():
    assert waves(living(), ["lb1"]) == [order.Wave(["lb2"]), order.Wave(["lb1"], proves=["lb2"])]


def test_all_members_change_at_once_while_nothing_runs():
    assert _pair.plan(pair()).order == []
    assert waves(pair(), ["lb1", "lb2"]) == [order.Wave(["lb1", "lb2"])]


@pytest.mark.parametrize("held", [{}, {"lb1": [VIP], "lb2": [VIP]}])
def test_what_mends_a_vip_without_holder_or_with_two_reaches_all_members_at_once(held):
    assert _pair.plan(hold(living(holder=""), held)).order == []


def test_a_member_outside_limit_is_no_part_of_the_order():
    members = living(3)
    members[1]["outside_limit"] = True
    assert _pair.plan(members).order == [["lb3"], ["lb1"]]
    members[2]["outside_limit"] = True
    assert _pair.plan(members).order == [], "lb1 alone"


def test_a_proof_says_that_a_backup_could_take_over_and_serves_at_its_own_address():
    plan = _pair.plan(living(answer_port=9444))
    proof, end = plan.members["lb2"].proof, plan.members["lb2"].expected
    ports = [service["port"] for service in end.services if service["name"] != "answer_port"]
    assert proof.targets == [["192.0.2.2", port] for port in ports] and ports
    assert proof._replace(targets=end.targets) == end


def test_a_proof_waits_for_no_split_where_the_routers_change_after_it():
    member = _pair.plan(living(auth_pass="an0ther1")).members["lb2"]
    assert (member.proof.settle, member.expected.settle) == (0, 5)


def test_a_service_at_the_vips_alone_is_not_asked_for_at_another_address():
    service = {"name": "one", "port": 7000, "bind": [VIP], "servers": ["192.0.2.31"]}
    proof = _pair.plan(living(before={"services": [service]}, services=[service])).members["lb2"].proof
    assert ["192.0.2.2", 7000] not in proof.targets and "one" in [each["name"] for each in proof.services]


def test_a_new_vip_begins_on_all_members_at_one_time_so_that_its_first_member_gets_it():
    plan = _pair.plan(living(vips=[VIP, SECOND]))
    assert plan.routers_together and plan.order == [["lb2"], ["lb1"]], "the balancers still change in order"
    assert [vip.address for vip in plan.members["lb2"].proof.vips] == [VIP], "nobody has the other one yet"


@pytest.mark.parametrize(
    "changes, together",
    [
        ({}, False),
        ({"priorities": [200, 100]}, False),
        ({"preempt": False}, False),
        ({"vips": [f"{VIP}/24"]}, False),
        ({"auth_pass": "an0ther1"}, True),
        ({"vrid": 77}, True),
    ],
)
def test_only_routers_that_would_not_hear_each_other_change_at_one_time(changes, together):
    assert _pair.plan(living(**changes)).routers_together is together


@pytest.mark.parametrize("changes, proved", [({"joining": ["lb3"]}, ["lb2"]), ({"to_engine": "agent"}, [])])
def test_a_member_that_joins_or_changes_its_engine_is_not_proved_before_it_has(changes, proved):
    assert waves(living(3, **changes), ["lb1", "lb2", "lb3"])[1].proves == proved


@pytest.mark.parametrize("engine, proved", [("native", ["lb2"]), ("agent", [])])
def test_an_agent_whose_router_changes_later_changes_its_balancer_then_and_is_not_proved_before(engine, proved):
    assert waves(living(engine=engine), ["lb1", "lb2"])[1].proves == ["lb2"]
    assert waves(living(engine=engine, auth_pass="an0ther1"), ["lb1", "lb2"])[1].proves == proved


def test_a_router_that_an_interrupted_run_has_stopped_is_not_proved_before_it_starts_with_the_others():
    def stopped(**changes):
        members = living(**changes)
        members[1]["host"]["active_units"] = ["haproxy.service"]
        return members

    assert waves(stopped(auth_pass="an0ther1"), ["lb1", "lb2"])[1].proves == []
    assert waves(stopped(preempt=False), ["lb1", "lb2"])[1].proves == ["lb2"], "it starts with its own change"


def adopted(holder, **takeover):
    members = living(holder=holder)
    for member in members:
        member["host"]["takeover"] = {"haproxy": {"stop": False}, "keepalived": {"stop": False}, **takeover}
    return members


@pytest.mark.parametrize("program", ["haproxy", "keepalived"])
def test_a_holder_that_would_stop_serving_hands_its_vips_over_first(program):
    members = adopted("lb2", **{program: {"stop": True}})
    assert waves(members, ["lb1", "lb2"])[1] == order.Wave(["lb2"], proves=["lb1"], hands_over=["lb2"])
    (*_table, last) = _pair.plan(members).warnings
    assert last.startswith(f"During the transition, lb2's change stops {program}, so it first hands its VIPs over")


@pytest.mark.parametrize("changes, hands_over", [({"preempt": False}, ["lb1"]), ({"auth_pass": "an0ther1"}, [])])
def test_nobody_hands_over_before_another_one_is_proved(changes, hands_over):
    """A killed run has left the other one's router stopped; where all routers change together, it starts then."""
    members = living(**changes)
    members[1]["host"]["active_units"] = ["haproxy.service"]
    plan = _pair.plan(members)
    (_backups, holder) = order.waves([as_data(plan)], ["lb1", "lb2"], restarting=["lb1"])
    assert plan.faults == [] and (holder.members, holder.hands_over) == (["lb1"], hands_over)


def test_where_a_vip_has_two_holders_all_change_at_one_time_and_nobody_hands_over():
    members = hold(adopted("lb1", keepalived={"stop": True}), {"lb2": [VIP]})
    assert waves(members, ["lb1", "lb2"]) == [order.Wave(["lb1", "lb2"])]


def test_a_change_that_only_reloads_moves_nothing():
    plan = _pair.plan(adopted("lb1"))
    assert [member.interrupted for member in plan.members.values()] == ["", ""]


def test_waves_of_several_pairs_come_at_one_time():
    other = {"members": {name: {"proof": None, "interrupted": ""} for name in ("a1", "a2")}, "order": [["a2"], ["a1"]]}
    plan = as_data(_pair.plan(living()))
    assert order.waves([plan, other], ["lb1", "lb2", "a2"]) == [
        order.Wave(["lb2", "a1", "a2"]),
        order.Wave(["lb1"], proves=["lb2"]),
    ]


@pytest.mark.parametrize(
    "found, is_so",
    [
        ({}, False),
        ({"paths": [], "stale": []}, False),
        ({"paths": ["/etc/haproxy/haproxy.cfg"], "stale": []}, True),
        ({"paths": [], "stale": ["haproxy.service has not loaded it."]}, True),
        ({"steps": ["reload onprem-lb-proxy.service"]}, True),
    ],
)
def test_a_check_that_finds_something_to_do_is_a_change(found, is_so):
    assert order.has_changes(found) is is_so


@pytest.mark.parametrize(
    "proof, why",
    [
        ({"faults": []}, None),
        ({"skipped": True}, None),
        ({"faults": ["haproxy.service is not active."]}, "haproxy.service is not active."),
        ({"msg": "MODULE FAILURE"}, "MODULE FAILURE"),
        ({}, "no answer"),
        (None, "no answer"),
    ],
)
def test_a_backup_that_is_not_proved_stops_the_run_before_the_holder(proof, why):
    wave = {"members": ["lb1"], "proves": ["lb2"], "hands_over": []}
    proofs = [["lb1", {}], ["lb2", proof]]
    assert order.unproved(wave, proofs if proof is not None else proofs[:1]) == (
        [
            "lb2 has changed and could not take over, so lb1 is not changed and keeps serving: "
            f"{why} Fix that, and repeat the run."
        ]
        if why
        else []
    )


@pytest.mark.parametrize(
    "found, is_pending",
    [
        ([{}, {"paths": []}, {"steps": []}], False),
        ([{}, {"paths": ["/a"]}], True),
        ([{"steps": ["reload"]}], True),
        ([{"paths": [], "stale": ["it has not loaded its file."]}], False),
    ],
    ids=["nothing", "a file", "a step of the agent", "a file that is only not loaded"],
)
def test_a_state_is_saved_where_files_are_written_or_the_agent_takes_steps(found, is_pending):
    assert order.pending(found) is is_pending
