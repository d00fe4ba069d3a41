# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a refused run says can be left for a second one. Both runs are then planned as the sentence says."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import second_run, turns
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import UNITS
from support.plans.living import living
from support.plans.transitions import living as living_pair
from support.plans.transitions import turns_of
from support.plans.variables import LAYOUTS

MEMBERS = {"ingress_members": ["worker-0", "master-1"]}
SHARDED = {
    "ingress_vips": ["10.0.0.201", {"address": "10.0.0.202", "name": "blue", "members": ["master-0", "worker-0"]}]
}
NATIVE, AGENT = {"engine": "native"}, {"engine": "agent"}


# Of the two Virtual Routers that members get and give up, the address of one changes.
SHARDS = {
    "ingress_vips": [
        {"address": "10.0.0.201", "name": "red", "members": ["master-1", "master-2"]},
        {"address": "10.0.0.202", "name": "blue", "members": ["master-0", "worker-0"]},
    ]
}
VIPS = ["10.0.0.200", "10.0.0.201"]


def faults(before, planned):
    return planner.draft(LAYOUTS["ipi"], living("ipi", before, planned).members).faults


def alone(before, planned, holder):
    """Return what is wrong where all routers but one are stopped, as a run that failed leaves them."""
    members = living("ipi", before, planned).members
    for member in members:
        host = member["host"]
        own = [info for info in host["addresses"] if info["address"] not in VIPS]
        holds = [{**own[0], "address": vip, "prefix": 32} for vip in VIPS if member["name"] == holder]
        units = [unit for unit in host["active_units"] if holds or unit != UNITS[AGENT["engine"]].router]
        member["host"] = {**host, "addresses": own + holds, "active_units": units}
    return planner.draft(LAYOUTS["ipi"], members).faults


@pytest.mark.parametrize(
    "before, planned, left, first",
    [
        ({**AGENT, **MEMBERS}, NATIVE, "the members that carry 10.0.0.201", {**NATIVE, **MEMBERS}),
        (
            {**AGENT, **MEMBERS},
            {**AGENT, "vrrp_version": 3},
            "the members that carry 10.0.0.201",
            {**AGENT, **MEMBERS, "vrrp_version": 3},
        ),
        (
            {**NATIVE, **MEMBERS},
            {**AGENT, "multicast": True, "api_vips": [{"address": "10.0.0.200", "vrid": 77}]},
            "the members that carry 10.0.0.201 and of ipi_engine",
            {**NATIVE, **MEMBERS, "multicast": True, "api_vips": [{"address": "10.0.0.200", "vrid": 77}]},
        ),
        (
            AGENT,
            {**AGENT, **SHARDED, "advert_interval": 2},
            "the members that carry 10.0.0.201, 10.0.0.202",
            {**AGENT, "advert_interval": 2},
        ),
        (
            {**NATIVE, **SHARDS},
            {**NATIVE, "api_vips": ["10.0.0.210"]},
            "the members that carry 10.0.0.200, 10.0.0.210",
            NATIVE,
        ),
    ],
)
def test_a_refusal_names_what_a_second_run_may_change_and_the_first_is_safe_without_it(before, planned, left, first):
    why, *_play = faults(before, planned)
    assert why == (
        f"There is no safe transition from the running settings to this plan: leave the change of {left} for a "
        "second run, or accept that with -e ipi_accept_split=true."
    )
    assert faults(before, first) == []
    assert "and" in left or faults(first, planned) == []


def test_where_routers_are_stopped_the_first_run_only_starts_them():
    why, *_play = alone(AGENT, {**AGENT, **MEMBERS}, "master-0")
    assert "leave the change of the members that carry 10.0.0.201 for a second run, or accept" in why
    assert alone(AGENT, AGENT, "master-0") == faults(AGENT, {**AGENT, **MEMBERS}) == []


@pytest.mark.parametrize(
    "label, settings",
    [
        ("VRID", {"vrid": 77}),
        ("VRRP version", {"vrrp_version": 3}),
        ("interval", {"advert_interval": 2}),
        ("password", {"auth_pass": "an0ther1"}),
        ("multicast", {"multicast": True}),
    ],
)
def test_what_is_named_to_be_left_is_left_and_nothing_else_of_the_run(label, settings):
    given, plan = turns_of(living_pair(to_engine="agent", priorities=[200, 199], **settings))
    runs = {each.mend: each.turns for each in second_run.smaller(given, plan.migration_order, "pair")}
    left = turns.changed(runs[f"leave the change of {label} for a second run"])
    assert {change.label for found in left.values() for change in found} - {"peers"} == {"priority"}
    assert all(turn.replaces for turn in runs[f"leave the change of {label} for a second run"])
    kept = turns.changed(runs["leave the change of pair_engine for a second run"])
    assert label in {change.label for found in kept.values() for change in found}
