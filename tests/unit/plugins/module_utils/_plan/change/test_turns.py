# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run says of each VIP on its way. Found by `test_changes_of_living_layouts`, which plays all of it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import order, turns
from support.plans.living import living, turns_of
from support.plans.variables import draft

API, INGRESS = "10.0.0.200", "10.0.0.201"
TWO = {"vips": ["192.0.2.10", "192.0.2.11"]}
SYNC = {"sync": True, **TWO}
SHARD = {"address": "10.0.0.202", "name": "blue", "members": ["master-0", "worker-0"]}


def rows(layout, before, planned, vip, alone=""):
    """The rows of a VIP: the label, the class, and for how many milliseconds it is gone."""
    given = turns_of(layout, before, planned)
    together = order.routers_together(given, alone)
    found = turns.rows(given, alone, [] if together else order.order(given)).get(vip, [])
    return [(row.label, row.kind, round(row.gone * 1000)) for row in found]


def test_a_vip_of_which_nothing_splits_is_said_to_move_to_the_router_that_runs_alone():
    """The API gets IPv6, so routers are stopped that carry the ingress as well."""
    planned = {"api_vips": [API, "2001:db8::200"]}
    assert rows("ipi", {}, planned, INGRESS, "master-0") == [("member", "moves", 12)]
    assert rows("ipi", {}, planned, INGRESS) == []
    (row,) = rows("ipi", {}, {"vrrp_version": 3}, INGRESS, "master-0")
    assert row == ("VRRP version", "splits", 12), "which says so already"


def test_where_two_members_leave_the_third_one_takes_over():
    planned = {"ingress_members": ["master-2", "master-1"]}
    assert ("member", "moves", 109) in rows("ipi", {}, planned, API)


@pytest.mark.parametrize(
    "before, planned, moves", [([200, 199, 150], [254, 253, 228], True), ([254, 253, 228], [200, 199, 150], False)]
)
def test_a_backup_whose_new_priority_is_above_the_holders_old_one_takes_the_vip_on_the_way(before, planned, moves):
    found = rows("pair", {"priorities": before}, {"priorities": planned}, "192.0.2.10")
    assert {kind for _label, kind, _gone in found} == {"moves" if moves else "harmless"}


@pytest.mark.parametrize("vips", [["192.0.2.10"], ["192.0.2.10", {"address": "192.0.2.11", "first": "lb2"}]])
def test_a_backup_that_has_its_old_priority_for_longer_than_the_holder_takes_the_vip_on_the_way(vips):
    """All routers change at one time, because a VIP goes; or lb1 before lb2, because each holds one."""
    before = {"vips": ["192.0.2.10", {"address": "192.0.2.11", "first": "lb2"}]}
    found = rows("pair", before, {"vips": vips, "priorities": [200, 199, 150]}, "192.0.2.10")
    assert ("priority", "moves", 0) in found


@pytest.mark.parametrize(
    "before, planned, is_gone",
    [
        ({}, SYNC, True),
        (SYNC, {**SYNC, "vips": ["192.0.2.10", {"address": "192.0.2.11", "vrid": 77}]}, True),
        (TWO, {**SYNC, "vips": ["192.0.2.10", {"address": "192.0.2.11", "first": "lb1"}]}, False),
        (SYNC, TWO, False),
        ({}, TWO, False),
    ],
)
def test_a_vip_that_begins_in_a_sync_group_takes_the_others_along(before, planned, is_gone):
    """Seen with keepalived 2.2.7: the whole group is Backup after the reload, for 3 s; the agent does the same."""
    of_group = [row for row in rows("pair", before, planned, "192.0.2.10") if row[0] == "sync group"]
    assert of_group == [("sync group", "moves", 4000)] * is_gone


def test_a_sole_router_that_gets_its_new_settings_before_it_has_taken_over_waits_for_all_of_its_timer():
    """In the preset upstream all have priority 20, so the Skew_Time is 0.9 s."""
    gone = turns.longest_gaps(turns_of("ipi", {"preset": "upstream"}, {}), "master-0", [])[INGRESS]
    assert gone == 236 / 256 + 3 + 1


def test_a_sole_router_changes_its_engine_last_because_it_holds_all_vips():
    members = living("ipi", {"engine": "native"}, {"engine": "agent", "auth_pass": "an0ther1"}).members
    plan = draft("ipi", members)
    assert (plan.sole_router, plan.migration_order[-1]) == ("master-0", "master-0")


def test_what_splits_and_a_change_of_engine_may_keep_a_vip_away_one_after_the_other():
    gaps = turns.longest_gaps(turns_of("pair", {"engine": "native"}, {"engine": "agent", "vrid": 77}), "lb1", [])
    assert gaps["192.0.2.10"] == 4 + 3 / 256
