# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which members return unless a run is proved, and which of them first."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import pair as _pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Undo
from support.plans.pairs import pair

from .test_transition import change


def serving(members):
    """The members, with routers of this collection that run."""
    for member in members:
        member["host"].update(own_units=["keepalived.service"], active_units=["keepalived.service"])
    return members


@pytest.fixture
def undo(monkeypatch):
    """The undo of a run that changes a pair which runs already."""
    plan = _pair.plan

    def of(**changes):
        monkeypatch.setattr(_pair, "plan", lambda members: plan(serving(members)))
        return change(**changes).undo

    return of


def test_a_first_deployment_has_nothing_to_return_to():
    assert _pair.plan(pair()).undo == Undo()


def test_where_nothing_changes_on_the_link_each_returns_by_itself(undo):
    assert undo(priorities=[200, 199]) == Undo(["lb1", "lb2"], "", 0)


@pytest.mark.parametrize("changes", [{"auth_pass": "an0ther1"}, {"vrid": 77}, {"vrrp_version": 3}])
def test_where_members_may_differ_the_sole_router_returns_first(undo, changes):
    assert undo(holder="lb2", **changes) == Undo(["lb1", "lb2"], "lb2", 5)


def test_a_router_waits_longer_with_a_longer_interval(undo):
    assert undo(advert_interval=3).settle == 13


def test_a_member_outside_the_limit_does_not_return(undo):
    assert undo(outside=True, priorities=[200, 199]).members == ["lb1"]


def test_a_change_of_the_engine_is_left_to_the_next_run(undo):
    assert undo(engine="agent") == Undo()


def test_an_adoption_is_left_to_the_next_run():
    members = serving(pair())
    members[1]["host"]["takeover"] = {"keepalived": {"keep": ["/etc/keepalived/keepalived.conf"], "set_aside": []}}
    assert _pair.plan(members).undo == Undo()
