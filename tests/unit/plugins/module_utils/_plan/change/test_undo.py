# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which members return unless a run is proved, and which of them first."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states.undoing import ROLES
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import undo as undoing
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


# --- a member's part in a run's undo ------------------------------------------------------------------------------

RUN = undoing.Run(
    here=["lb1", "lb2"],
    prefix="pair",
    undo_after=35.0,
    dry=False,
    changing=["lb1"],
    interrupted=[],
    interrupted_as="",
    id="20260131T120000Z",
    silence=40.0,
    configs={"haproxy": "/h.cfg"},
)


def part(name="lb2", of_plan=None, **run):
    found = Undo(["lb1", "lb2"], "lb1", 5.0, 100.0, first_addresses=["192.0.2.1"])._asdict()
    members = {each: {"firewall": {"interfaces": ["eth0"]}} for each in ("lb1", "lb2", "lb3")}
    return undoing.part({"members": members, "undo": {**found, **(of_plan or {})}}, name, RUN._replace(**run))


def test_a_member_of_a_run_that_changes_something_is_armed_for_as_long_as_all_others():
    assert part() == {
        "run": "20260131T120000Z",
        "role": "other",
        "after": 145.0,
        "settle": 5.0,
        "setting": "pair_undo_after",
        "members": ["lb1", "lb2"],
        "purpose": "onprem.lb.site",
        "first": ["192.0.2.1"],
        "configs": {"haproxy": "/h.cfg"},
        "interfaces": ["eth0"],
        "unarmed": "",
    }
    assert part("lb1")["role"] == "first"
    assert part(of_plan={"first": ""})["role"] == "alone"


@pytest.mark.parametrize(
    "run, of_plan, why",
    [
        ({"changing": []}, {}, ""),
        ({"undo_after": 0.0}, {}, "pair_undo_after is 0."),
        ({"undo_after": 0.0, "changing": []}, {}, ""),
        ({}, {"members": [], "first": "", "reason": "lb2 has a file."}, "lb2 has a file."),
        ({"dry": True}, {}, ""),
    ],
    ids=["nothing changes", "the user wants none", "neither", "there is nothing to return to", "check mode"],
)
def test_a_run_that_arms_nobody_says_why_if_something_changes(run, of_plan, why):
    found = part(of_plan=of_plan, **run)
    assert (found["run"], found["role"], found["unarmed"]) == ("", "alone", why)


def test_an_interrupted_run_is_armed_anew_or_keeps_the_role_that_it_gave():
    again = {"changing": [], "interrupted": ["lb2"], "interrupted_as": "first"}
    assert (part(**again)["run"], part(**again)["role"]) == (RUN.id, "other")
    assert part(**again, undo_after=0.0)["role"] == "first"
    assert part(**{**again, "interrupted": ["lb9"]})["run"] == "", "none of the members that return"


@pytest.mark.parametrize(
    "answers, is_late",
    [
        ([], False),
        ([{"skipped": True}, {"postponed": True}, {}], False),
        ([{"skipped": True}, {"postponed": True}, {"postponed": False}], True),
        ([{"failed": True}], True),
    ],
    ids=["nobody has an undo", "in time", "one took too long", "one did not answer"],
)
def test_a_heartbeat_is_late_if_it_took_too_long_for_one_member(answers, is_late):
    assert undoing.is_late(answers) is is_late


def test_a_run_whose_heartbeats_take_too_long_more_than_eight_times_ends():
    assert undoing.late(8, "ipi_undo_after") == []
    (sentence,) = undoing.late(9, "ipi_undo_after")
    assert sentence.endswith("with a larger ipi_undo_after.")


def test_the_roles_are_those_of_the_host():
    assert (undoing.ALONE, undoing.FIRST, undoing.OTHER) == ROLES
