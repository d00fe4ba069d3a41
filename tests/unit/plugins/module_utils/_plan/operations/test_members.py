# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is a living member is told by the members themselves: what needs all of them is refused without one."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import maintenance, rollback, switchover
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.steps import FORMER
from support.members import RECORD, VIP, instance, pair, seen

STATE = {"id": "20260131T120000Z", "purpose": "onprem.lb.site", "backup": "", "engine": "native", "is_present": False}
STATE.update(
    files=[],
    keeps_names=False,
    unicast={"now": {}, "then": {}},
    changes_link=True,
    could_serve=True,
    settle=5,
    reach={"now": "vrrp", "then": "vrrp"},
    announced={"now": [], "vips": [], "sessions": [], "units": []},
)


def rolled_back(given):
    states = {"states": [STATE], "engine": "native"}
    return rollback.steps([{**host, "states": states} for host in given])


# A restore is a rollback to the state that it has brought.
OPERATIONS = {
    "rollback": rolled_back,
    "switchover": switchover.steps,
    "maintenance": lambda given: maintenance.plan(given, [], "a reboot"),
    "drain": lambda given: maintenance.drain(given, "lb2", "a reboot", []),
}
KNOWN = {"lb1": ["192.0.2.1"], "lb2": ["192.0.2.2"]}
PEERS = [{**instance(VIP, 254), "peers": ["192.0.2.1", "192.0.2.2", "192.0.2.3"]}]


@pytest.fixture(params=OPERATIONS.values(), ids=OPERATIONS)
def faults(request):
    """What an operation refuses of a pair, of whose first member something else is read."""
    return lambda **first: request.param(pair(seen(1, [VIP], **first), seen(2))).faults


@pytest.mark.parametrize(
    "first, name",
    [
        ({"members": {**KNOWN, "lb3": ["192.0.2.3"]}}, "lb3"),
        ({"members": {**KNOWN, "lb3": ["192.0.2.3"]}, "instances": PEERS}, "lb3"),
        ({"instances": PEERS}, "192.0.2.3"),
    ],
    ids=["in the record", "in both", "among the peers"],
)
def test_one_that_the_members_know_and_the_inventory_does_not_is_named(faults, first, name):
    assert faults(**first) == [f"{name} {FORMER}"]


def test_a_host_that_holds_a_vip_and_is_no_member_is_named(faults):
    (fault,) = faults(answering={VIP: ["02:00:00:00:00:02", "02:00:00:00:00:09"]})
    assert VIP in fault and "another host (02:00:00:00:00:09)" in fault


@pytest.mark.parametrize("record", [{}, KNOWN, {"old": ["192.0.2.1"], "lb2": ["192.0.2.99"]}])
def test_one_that_was_renamed_or_has_another_address_is_a_member(faults, record):
    assert faults(members=record) == []


def test_the_way_back_of_a_switchover_asks_for_nobody_else():
    given = pair(seen(1, held_back=RECORD, members={**KNOWN, "lb3": ["192.0.2.3"]}), seen(2, [VIP]))
    assert switchover.steps(given, back=True).faults == []
