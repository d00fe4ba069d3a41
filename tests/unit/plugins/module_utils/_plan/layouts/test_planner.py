# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that every layout shares: hosts that were not read, settings that are not the plan's, the plan as data."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Plan, as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.plans.clusters import cluster
from support.plans.pairs import member
from support.plans.pairs import pair as two_members


def unread(members, **addresses):
    """The same members, of whom only the address is known by which Ansible reaches them."""
    return [{**each, "host": None, "address": addresses.get(each["name"], each["name"])} for each in members]


def source(plan, name, at=0):
    return plan.members[name].router.instances[at]["source"]


def test_a_host_that_was_not_read_is_assumed_to_have_an_address_beside_each_vip():
    plan = pair.plan(unread(two_members(vips=["192.0.2.10", "2001:db8::10"]), lb1="192.0.2.77"))
    assert plan.faults == []
    assert source(plan, "lb1") == "192.0.2.77"  # its own
    others = [source(plan, "lb2"), source(plan, "lb1", 1), source(plan, "lb2", 1)]  # made up
    assert len({"192.0.2.10", "192.0.2.77", "2001:db8::10", *others}) == 6
    assert plan.members["lb1"].router.interfaces == ["eth0"]


def test_a_host_that_was_not_read_has_the_interface_that_the_user_names():
    plan = pair.plan(unread([member(1, interface="ens3"), member(2)]))
    assert [plan.members[name].router.interfaces for name in ("lb1", "lb2")] == [["ens3"], ["eth0"]]


def test_of_a_cluster_that_was_not_read_both_kinds_of_vips_are_placed():
    read, assumed = ipi.plan(cluster()), ipi.plan(unread(cluster()))
    assert assumed.faults == [] and assumed.table == read.table


@pytest.mark.parametrize("vips", ["192.0.2.10", None, [{}], ["nonsense"]])
def test_vips_of_a_wrong_kind_are_refused_in_the_same_words_where_no_host_was_read(vips):
    members = two_members(vips=vips)
    faults = pair.plan(members).faults
    assert faults and pair.plan(unread(members)).faults == faults


def test_what_is_no_setting_of_the_plan_may_differ_between_members():
    members = two_members()
    members[1]["settings"]["listen"] = 3
    assert pair.plan(members).faults == []


def test_a_member_may_be_called_as_the_layout_is():
    members = [{**each, "name": each["name"].replace("lb", "pair") + ".example"} for each in two_members()]
    members[0]["host"]["problems"] = ["systemd does not run here."]
    assert pair.plan(members).faults == ["pair1.example: systemd does not run here."]


def test_a_plan_becomes_mappings_and_lists_alone():
    plan = pair.plan(two_members())
    data = as_data(plan)
    assert set(data) == set(Plan._fields)
    assert json.loads(json.dumps(data)) == data
    assert data["members"]["lb1"]["router"]["instances"] == plan.members["lb1"].router.instances
    assert data["vips"][0] == plan.vips[0]._asdict()
    balancer = data["members"]["lb1"]["balancer"]
    assert read_services(json.loads(balancer["services"]), "services") == (plan.members["lb1"].balancer.services, [])


OVER_IPV6 = ["192.0.2.10", "2001:db8::10"]


def min_ttls(plan):
    """By member: the `min_ttl` of its IPv4 and its IPv6 instance."""
    return {name: [each.get("min_ttl") for each in member.router.instances] for name, member in plan.members.items()}


def test_an_agent_accepts_the_hop_limit_with_which_keepalived_sends_ipv6():
    members = [member(1, vips=OVER_IPV6, engine="agent"), member(2, vips=OVER_IPV6, engine="native")]
    assert min_ttls(pair.plan(members)) == {"lb1": [None, 64], "lb2": [None, None]}


def test_it_does_so_alone_too_because_the_first_that_moves_to_keepalived_must_be_heard():
    alone = {"lb1": [None, 64], "lb2": [None, 64]}
    assert min_ttls(pair.plan(two_members(vips=OVER_IPV6, engine="agent"))) == alone
    members = two_members(vips=OVER_IPV6, engine="agent")
    members[1]["host"]["own_units"] = ["keepalived.service"]
    assert min_ttls(pair.plan(members)) == alone


def test_multicast_needs_no_lower_hop_limit():
    settings = {"vips": OVER_IPV6, "multicast": True}
    members = [member(1, engine="agent", **settings), member(2, engine="native", **settings)]
    assert min_ttls(pair.plan(members)) == {"lb1": [None, None], "lb2": [None, None]}
