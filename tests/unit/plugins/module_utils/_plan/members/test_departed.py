# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members that have left the inventory are known from the record of the last run, and from the others' peers."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import departed as _departed
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Departed
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import versions
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import ROUTERS
from support.plans.pairs import member, pair, running

RECORD = {"lb1": ["192.0.2.1"], "lb2": ["192.0.2.2"], "lb3": ["198.51.100.3", "192.0.2.3"]}


def departed(record=None, peers=(), members=None):
    members = members or pair()
    for one in members:
        one["host"].update(members=record or {}, instances=[running(peers=list(peers))])
        one["host"].setdefault("active_units", ["keepalived.service"])
    plan = _pair.plan(members)
    assert plan.faults == []
    return plan.departed


def test_a_member_that_is_recorded_and_no_longer_planned_has_departed():
    assert departed(RECORD, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) == [Departed("lb3", "198.51.100.3")]


def test_without_a_record_a_former_member_is_known_by_its_address_among_the_peers():
    assert departed(peers=["192.0.2.2", "192.0.2.3"]) == [Departed("192.0.2.3", "192.0.2.3")]


def test_it_is_the_last_one_that_serves_as_long_as_no_router_of_another_one_is_known_to_carry_the_vip():
    def left(*units):
        members = pair()
        for one, active in zip(members, units):
            one["host"].update(members=RECORD, active_units=active, instances=[running(peers=[])])
        (found,) = _departed.departed(members, ["192.0.2.10", "192.0.2.11"])
        return found.irreplaceable

    assert left([], ["haproxy.service"]) == ["192.0.2.10", "192.0.2.11"]
    for router in ROUTERS:
        assert left([], [router]) == left([router], []) == ["192.0.2.11"], "which it does not carry"


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
    assert _pair.plan(members).warnings == ["lb3 is no longer a member: its router is stopped first."]


def test_a_plan_leaves_a_record_in_which_the_next_plan_finds_who_left():
    before = _pair.plan([*pair(), member(3)])
    assert before.record["lb3"] == ["lb3", "192.0.2.3"], "the address to connect to, then those that it sends from"
    found = facts.members(json.dumps(before.record))
    assert departed(found) == [Departed("lb3", "lb3")]
    assert departed(found, members=[*pair(), member(3)]) == []
    assert versions.written_by(json.dumps(before.record)) == VERSION


VIP, STRANGER, FORMER = "192.0.2.10", "aa:bb:cc:dd:ee:ff", "02:00:00:00:00:03"


@pytest.mark.parametrize(
    "answering, refused",
    [
        ({VIP: [FORMER], "192.0.2.3": [FORMER]}, []),
        ({VIP: [STRANGER], "192.0.2.3": [FORMER]}, [STRANGER]),
        ({VIP: [FORMER, STRANGER], "192.0.2.3": [FORMER]}, [STRANGER]),
        ({VIP: [FORMER], "192.0.2.3": []}, [FORMER]),
    ],
    ids=["the former member", "a stranger", "both", "the former member does not answer"],
)
def test_a_former_member_may_hold_a_vip_and_a_stranger_may_not(answering, refused):
    """Its router is stopped before anything changes, so that the others take the VIP."""
    members = pair()
    for one in members:
        one["host"].update(members=RECORD, answering=answering)
    faults = _pair.plan(members).faults
    assert [mac for mac in (FORMER, STRANGER) if any(mac in fault for fault in faults)] == refused
    assert len(faults) == len(refused)


def test_the_router_of_a_former_member_is_heard_and_is_no_stranger():
    """Without the record the VRID is another router's."""
    router = {
        "source": "192.0.2.3",
        "vrid": 51,
        "version": 3,
        "family": "ipv4",
        "addresses": [VIP],
        "interface": "eth0",
    }
    found = {}
    for record in ({}, RECORD):
        members = pair(vips=[{"address": VIP, "vrid": 51}])
        for one in members:
            one["host"].update(members=record, heard=[{**router, "priority": 100, "interval": 1.0, "packets": 3}])
        found[bool(record)] = _pair.plan(members).faults
    assert found[True] == [] and "192.0.2.3" in " ".join(found[False])


FORMER_MEMBER = {"name": "lb3", "address": "192.0.2.3", "irreplaceable": [VIP]}
SEEN = {
    "addresses": [{"address": "192.0.2.3"}],
    "instances": [{"addresses": [f"{VIP}/32"]}],
    "active_units": ["keepalived.service", "haproxy.service"],
    "enabled_units": [],
    "own_units": ["haproxy.service"],
}
OFF = [("lb3", True), (["192.0.2.3"], True), ("lb2, lb3", True), ("lb2", False), ([], False), ("lb33", False)]


@pytest.mark.parametrize("retired, accepted", OFF)
@pytest.mark.parametrize("found", [{}, {"msg": "no route"}, {**SEEN, "addresses": [{"address": "192.0.2.1"}]}, SEEN])
def test_nothing_stops_on_a_former_member_that_is_unread_or_serves_alone_unless_its_user_says_so(
    found, retired, accepted
):
    made = _departed.judged(FORMER_MEMBER, found, [VIP], retired, "ipi")
    assert (made.faults == []) is accepted
    assert all("lb3 is no longer a member" in fault and "-e ipi_retired=lb3." in fault for fault in made.faults)
    assert made.units == (["keepalived.service"] if found is SEEN else []), "this member's own is never stopped"


@pytest.mark.parametrize("router", ROUTERS)
def test_any_router_that_runs_may_be_the_last_one(router):
    assert _departed.judged(FORMER_MEMBER, {**SEEN, "active_units": [router]}, [VIP], [], "pair").faults
    assert not _departed.judged(FORMER_MEMBER, {**SEEN, "active_units": []}, [VIP], [], "pair").faults
