# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a refused run says can be left for a second one. Both runs are then planned as the sentence says."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import UNITS
from support.plans.living import living
from support.plans.variables import LAYOUTS

MEMBERS = {"ingress_members": ["worker-0", "master-1"]}
SHARDED = {
    "ingress_vips": ["10.0.0.201", {"address": "10.0.0.202", "name": "blue", "members": ["master-0", "worker-0"]}]
}
NATIVE, AGENT = {"engine": "native"}, {"engine": "agent"}


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
        ({**AGENT, **MEMBERS}, NATIVE, "who carries 10.0.0.201", {**NATIVE, **MEMBERS}),
        (
            {**AGENT, **MEMBERS},
            {**AGENT, "vrrp_version": 3},
            "who carries 10.0.0.201",
            {**AGENT, **MEMBERS, "vrrp_version": 3},
        ),
        (
            {**NATIVE, **MEMBERS},
            {**AGENT, "multicast": True, "api_vips": [{"address": "10.0.0.200", "vrid": 77}]},
            "who carries 10.0.0.201 and ipi_engine",
            {**NATIVE, **MEMBERS, "multicast": True, "api_vips": [{"address": "10.0.0.200", "vrid": 77}]},
        ),
        (
            AGENT,
            {**AGENT, **SHARDED, "advert_interval": 2},
            "who carries 10.0.0.201, 10.0.0.202",
            {**AGENT, "advert_interval": 2},
        ),
    ],
)
def test_a_refusal_names_what_a_second_run_may_change_and_the_first_is_safe_without_it(before, planned, left, first):
    why, *_play = faults(before, planned)
    assert why == (
        f"No safe way leads from what runs to this plan: leave {left} for a second run, "
        "or accept that with -e ipi_accept_split=true."
    )
    assert faults(before, first) == []
    assert "and" in left or faults(first, planned) == []


def test_where_routers_are_stopped_the_first_run_only_starts_them():
    why, *_play = alone(AGENT, {**AGENT, **MEMBERS}, "master-0")
    assert "leave who carries 10.0.0.201 for a second run, or accept" in why
    assert alone(AGENT, AGENT, "master-0") == faults(AGENT, {**AGENT, **MEMBERS}) == []
