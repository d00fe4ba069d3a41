# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members that have left the inventory are known from the record of the last run, and from the others' peers."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import pair as _pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Departed
from support.plans.pairs import member, pair, running

RECORD = {"lb1": ["192.0.2.1"], "lb2": ["192.0.2.2"], "lb3": ["198.51.100.3", "192.0.2.3"]}


def departed(record=None, peers=(), members=None):
    members = members or pair()
    for one in members:
        one["host"].update(members=record or {}, instances=[running(peers=list(peers))])
    plan = _pair.plan(members)
    assert plan.faults == []
    return plan.departed


def test_a_member_that_is_recorded_and_no_longer_planned_has_departed():
    assert departed(RECORD, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) == [Departed("lb3", "198.51.100.3")]


def test_without_a_record_a_former_member_is_known_by_its_address_among_the_peers():
    assert departed(peers=["192.0.2.2", "192.0.2.3"]) == [Departed("192.0.2.3", "192.0.2.3")]


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"lb1": ["192.0.2.1"], "lb2": ["192.0.2.2"]},
        {"old-name": ["192.0.2.1"], "lb2": ["192.0.2.2"]},
        {"lb1": ["192.0.2.99"], "lb2": ["192.0.2.2"]},
    ],
)
def test_a_member_that_stays_was_renamed_or_got_another_address_has_not_departed(record):
    peers = [address for addresses in record.values() for address in addresses]
    assert departed(record, peers) == []


def test_the_plan_announces_whom_it_stops_first():
    members = pair()
    members[0]["host"]["members"] = RECORD
    assert _pair.plan(members).warnings == ["lb3 was a member and is none any more: its router is stopped first."]


def test_a_plan_leaves_a_record_in_which_the_next_plan_finds_who_left():
    before = _pair.plan([*pair(), member(3)])
    assert before.record["lb3"] == ["lb3", "192.0.2.3"], "the address to connect to, then those that it sends from"
    assert departed(before.record) == [Departed("lb3", "lb3")]
    assert departed(before.record, members=[*pair(), member(3)]) == []
