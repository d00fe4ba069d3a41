# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members that announce change one after the other, each proved."""

from __future__ import annotations

import pytest
from support.plans.racks import VIP, plan, racks


def announcing(*names, count=3, **settings):
    """Return members, of which these have the VIP on lo."""
    members = racks(count, **settings)
    for member in members:
        member["host"]["on_loopback"] = ["127.0.0.1", *([VIP] if member["name"] in names else [])]
    return members


@pytest.mark.parametrize(
    "now, order",
    [
        ((), []),  # nobody serves who could be interrupted
        (("lb2",), [["lb1", "lb3"], ["lb2"]]),
        (("lb1", "lb2", "lb3"), [["lb1"], ["lb2"], ["lb3"]]),
    ],
)
def test_who_announces_changes_alone_and_after_those_that_do_not(now, order):
    assert plan(announcing(*now)).order == order


def test_a_member_that_this_run_leaves_as_it_is_has_no_turn():
    members = announcing("lb1", "lb2", "lb3")
    members[1]["outside_limit"] = True
    assert plan(members).order == [["lb1"], ["lb3"]]


def test_each_is_proved_as_at_the_end_before_the_next_one_changes():
    found = plan(announcing("lb1", "lb2"))
    for member in found.members.values():
        assert member.proof == member.expected and member.expected.sessions
