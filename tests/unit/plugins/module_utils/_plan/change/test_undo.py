# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which members return unless a run is proved, and which of them first."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Undo
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from support.plans.clusters import cluster
from support.plans.pairs import pair
from support.plans.transitions import living


def undo(members):
    plan = planner.draft(_pair.LAYOUT, members)
    assert plan.faults == []
    return plan.undo


def refused(members):
    """Return the reason why nobody returns."""
    found = undo(members)
    assert (found.members, found.first) == ([], "")
    return found.reason


def test_a_first_deployment_has_nothing_to_return_to():
    assert refused(pair()).startswith("no router of this collection runs here yet.")


def test_where_nothing_changes_on_the_link_each_returns_by_itself():
    assert undo(living(priorities=[200, 199])) == Undo(["lb1", "lb2"], "", 0)


def first_is(name, members):
    """Return the undo in which a member returns first. The others know it by its addresses, the VIP among them."""
    number = name[-1]
    return Undo(members, name, 5, first_addresses=[f"192.0.2.{number}", f"2001:db8::{number}", "192.0.2.10"])


@pytest.mark.parametrize("changes", [{"auth_pass": "an0ther1"}, {"vrid": 77}, {"vrrp_version": 3}])
def test_where_members_may_differ_the_sole_router_returns_first(changes):
    assert undo(living(holder="lb2", **changes)) == first_is("lb2", ["lb1", "lb2"])


def test_where_a_member_joins_the_one_that_holds_the_vips_returns_first():
    assert undo(living(3, joining=["lb3"])) == first_is("lb1", ["lb1", "lb2", "lb3"])


def test_a_router_waits_longer_with_a_longer_interval():
    assert undo(living(advert_interval=3)).settle == 13


def test_a_member_outside_the_limit_does_not_return():
    members = living(priorities=[200, 199])
    members[1]["outside_limit"] = True
    assert undo(members).members == ["lb1"]


def test_a_change_of_the_engine_is_left_to_the_next_run():
    assert refused(living(to_engine="agent")).startswith("lb2, lb1 get another engine")


@pytest.mark.parametrize("changes, first", [({"priorities": [200, 199]}, ""), ({"auth_pass": "an0ther1"}, "lb2")])
def test_members_with_the_agent_return_as_those_with_keepalived(changes, first):
    found = undo(living(engine="agent", holder="lb2", **changes))
    assert (found.members, found.first) == (["lb1", "lb2"], first)


@pytest.mark.parametrize("passwords, first", [(("usual1", "usual1"), ""), (("usual1", "an0ther1"), "master-2")])
def test_the_nodes_of_a_cluster_return_as_the_members_of_a_pair_do(passwords, first):
    before, after = passwords
    nodes = cluster(auth_pass=after)
    running, units = planner.draft(ipi.LAYOUT, nodes).members, [*engines.UNITS["native"]]
    for node in nodes:
        instances = [{**each, "auth_pass": before} for each in running[node["name"]].router.instances]
        node["host"].update(instances=instances, own_units=units, active_units=units)
    link = nodes[1]["host"]["addresses"][-1]
    nodes[1]["host"]["addresses"].append({**link, "address": "10.0.0.200", "prefix": 32})
    plan = planner.draft(ipi.LAYOUT, nodes)
    assert plan.faults == []
    assert (plan.undo.members, plan.undo.first) == ([node["name"] for node in nodes], first)


OWN = "/etc/systemd/system/haproxy.service.d/zz-mine.conf"


@pytest.mark.parametrize("what", ["keep", "set_aside"])
def test_an_adoption_is_left_to_the_next_run_and_names_the_files(what):
    members = living()
    members[1]["host"]["takeover"] = {"keepalived": {"keep": [], "set_aside": [], what: [OWN]}}
    assert refused(members).startswith(f"lb2 has {OWN}, not written by this collection")


def test_a_file_of_the_engine_that_does_not_run_here_hinders_nobody():
    members = living(engine="agent")
    members[1]["host"]["takeover"] = {"haproxy": {"keep": [], "set_aside": [OWN]}}
    assert undo(members).members == ["lb1", "lb2"]
