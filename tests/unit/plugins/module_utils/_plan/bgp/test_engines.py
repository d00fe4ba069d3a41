# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members that announce change their engine one after the other, each while another one is proved to serve."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import engines
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp.refused import refused
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import handed
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import AGENT, FRR_UNIT, NATIVE, UNITS
from ansible_collections.onprem.lb.plugins.module_utils._shared.paths import GATE
from support.plans.racks import ASN, VIP, plan, racks

OTHER = {AGENT: NATIVE, NATIVE: AGENT}
NAMES = ["lb1", "lb2", "lb3"]


def living(*serving, count=3, runs=NATIVE, to=AGENT, **settings):
    """Return members with the one engine, to which a run gives the other one; these have the VIP on lo."""
    members = racks(count, engine=to, **settings)
    for member in members:
        units = [UNITS[runs].balancer, FRR_UNIT, GATE]
        member["host"].update(own_units=units, active_units=units, existing_units=units, unremovable={})
        member["host"]["on_loopback"] = ["127.0.0.1", *([VIP] if member["name"] in serving else [])]
    return members


@pytest.mark.parametrize("to", [AGENT, NATIVE])
def test_they_change_one_after_the_other_and_those_that_serve_nobody_first(to):
    members = living("lb1", "lb3", runs=OTHER[to], to=to)
    found = plan(members)
    assert refused(members, found, "pair") == found.faults == []
    assert found.migration_order == ["lb2", "lb1", "lb3"] and found.order == [["lb2"], ["lb1"], ["lb3"]]
    assert [each.replaces for each in found.members.values()] == [OTHER[to]] * 3
    assert "lb1, lb3 leave one after the other" in found.warnings[-1]


def test_each_is_proved_with_every_path_and_until_then_as_it_runs():
    for member in plan(living(*NAMES)).members.values():
        assert member.expected.every_path and member.expected.units[0] == UNITS[AGENT].balancer
        assert member.proof.units == [UNITS[NATIVE].balancer, FRR_UNIT, GATE]
        assert member.proof.announced == [VIP] and member.proof.services == member.proof.targets == []


def test_the_packages_go_so_that_no_member_returns_by_itself():
    assert plan(living(*NAMES)).undo.reason.startswith("lb1, lb2, lb3 get another engine, and packages with it.")


def test_where_the_engine_stays_nobody_leaves():
    found = plan(living(*NAMES, to=NATIVE))
    assert found.migration_order == [] and not [each for each in found.members.values() if each.leaves]
    assert not [said for said in found.warnings if "engine" in said]


@pytest.mark.parametrize("services, expected", [(True, ["haproxy"]), (False, [])])
def test_to_haproxy_comes_no_keepalived(services, expected):
    members = living(*NAMES, runs=AGENT, to=NATIVE)
    data = as_data(plan(members))["members"]["lb1"]
    data["balancer"]["services"] = data["balancer"]["services"] if services else "[]"
    about = handed.About("pair", members[0]["host"], auth_pass="", raw={}, waits=False, before=False)
    assert handed.to_components(data, about)["agent"]["successors"] == expected


@pytest.mark.parametrize("away", [{"outside_limit": True}, {"silent": True, "host": {}}])
def test_the_only_one_of_a_run_that_can_serve_keeps_its_engine(away):
    members = living("lb1", "lb2", count=2)
    found = plan(members)
    members[1].update(away)
    (one,) = refused(members, found, "pair")
    assert one.startswith(f"lb1 would change its engine, and no other member of this run serves {VIP} meanwhile")
    members[0]["host"]["on_loopback"] = []
    assert refused(members, found, "pair") == [], "where nobody serves, nothing is taken away"


def test_frr_is_told_of_both_families():
    members = living(*NAMES, vips=[VIP, "2001:db8:ffff::10"])
    for number, member in enumerate(members, 1):
        member["settings"]["bgp"]["peers"] += [{"address": f"2001:db8:{number}::1", "asn": 64601}]
    told = plan(members).members["lb1"].leaves["frr"]
    assert f"router bgp {ASN}" in told["prefer_others"] and told["prefer_others"][-1] == "bgp graceful-shutdown"
    assert [word for word in told["withdraw"] if "family" in word][::2] == [
        f"address-family {family} unicast" for family in ("ipv4", "ipv6")
    ]


WELL, ILL, SILENT, SKIPPED = {"faults": []}, {"faults": ["no session."]}, {}, {"skipped": True}


@pytest.mark.parametrize("leaves", NAMES)
@pytest.mark.parametrize("seen", [*itertools.product([WELL, ILL, SILENT, SKIPPED], repeat=2)])
def test_it_leaves_only_while_another_one_is_proved(leaves, seen):
    data = as_data(plan(living(*NAMES)))
    others = [engines.Proof(name, found) for name, found in zip([each for each in NAMES if each != leaves], seen)]
    found = engines.last_one(data, leaves, [engines.Proof(leaves, WELL), engines.Proof("of-others", WELL), *others])
    assert bool(found) == (WELL not in seen)
    assert not found or found[0].startswith(f"Without {leaves} nobody is proved to serve {VIP}, so it keeps its engine")


def test_another_vip_is_no_proof_and_who_serves_nobody_needs_none():
    data = as_data(plan(living("lb1", count=2)))
    other = [engines.Proof("lb1", WELL)]
    assert engines.last_one(data, "lb2", []) == []
    data["members"]["lb2"]["leaves"]["vips"] = [VIP, "203.0.113.11"]
    (found,) = engines.last_one(data, "lb2", other)
    assert "serve 203.0.113.11, so" in found


@pytest.mark.parametrize("leaves, units", [("lb1", NATIVE), ("lb3", AGENT)])
def test_another_one_shows_what_it_runs_by_then(leaves, units):
    asked = engines.asked(as_data(plan(living(*NAMES))), "lb2", leaves)
    assert asked["units"][0] == UNITS[units].balancer and asked["every_path"] and asked["sessions"]
    serves_nobody = engines.asked(as_data(plan(living("lb1"))), "lb2", "lb2")
    assert serves_nobody["announced"] == [VIP], "so it is not proved before it serves"
