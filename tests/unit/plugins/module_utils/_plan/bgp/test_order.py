# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members that announce change one after the other, each proved."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import serving, undoing
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import order
from ansible_collections.onprem.lb.plugins.module_utils._shared.paths import GATE
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


def test_where_nobody_announces_yet_there_is_nothing_to_return_to():
    found = plan(announcing()).undo
    assert (found.members, found.first) == ([], "") and found.reason.startswith("no member announces its VIPs yet.")


def test_all_return_and_the_one_that_changes_last_after_the_others():
    found = plan(announcing("lb1", "lb2")).undo
    assert (found.members, found.first, found.reason) == (["lb1", "lb2", "lb3"], "lb2", "")
    assert plan(announcing("lb1", "lb2", "lb3")).undo.first == plan(announcing("lb1", "lb2", "lb3")).order[-1][0]


def test_a_member_outside_the_limit_does_not_return():
    members = announcing("lb1", "lb2", "lb3")
    members[2]["outside_limit"] = True
    assert (plan(members).undo.members, plan(members).undo.first) == (["lb1", "lb2"], "lb2")


def test_an_frr_of_others_that_a_run_takes_over_is_not_given_back():
    members = announcing("lb1")
    members[1]["host"]["existing_units"] = ["frr.service"]
    assert plan(members).undo.members == [] and "lb2 has an FRR" in plan(members).undo.reason
    members[1]["host"]["own_units"] = ["frr.service"]  # by its role alone, for something else
    assert plan(members).undo.members == []
    members[1]["host"]["own_units"] = ["frr.service", GATE]
    assert plan(members).undo.members == ["lb1", "lb2", "lb3"]


@pytest.mark.parametrize("interval", [2, 60])
def test_they_show_whether_they_serve_for_as_long_as_a_check_of_the_balancer_lasts(interval):
    """A check that takes minutes to fail is not waited for."""
    members = announcing("lb1", checks=[{"script": "/usr/bin/true", "interval": interval}])
    usual = plan(announcing("lb1")).undo.settle
    proof_s = serving.proof_s(plan(members).undo.settle)
    assert serving.proof_s(usual) <= proof_s <= 1 + order.LONGEST_S
    assert (proof_s == serving.proof_s(usual)) is (interval == 60)


def test_the_members_and_the_run_know_the_same_times():
    assert (order.LATER_S, order.RETURN_S) == (undoing.LATER_S, undoing.RETURN_S)


def test_a_configuration_of_others_that_a_run_takes_over_is_not_given_back_either():
    members = announcing("lb1", engine="native")
    members[1]["host"]["takeover"] = {"haproxy": {"keep": ["/etc/haproxy/haproxy.cfg"], "set_aside": []}}
    found = plan(members).undo
    assert found.members == [] and found.reason.startswith("lb2 has /etc/haproxy/haproxy.cfg, not written by")
    members[1]["outside_limit"] = True
    assert plan(members).undo.members == ["lb1", "lb3"]
