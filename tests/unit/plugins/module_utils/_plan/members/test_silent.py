# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member that does not answer: what the others know of it, what may change without it, and who replaces it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import silent
from ansible_collections.onprem.lb.plugins.module_utils._plan.members.hosts import auth_pass
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import member
from support.plans.transitions import living, to_play, turns_of

RECORD = {"lb1": ["lb1.example", "192.0.2.1"], "lb2": ["lb2.example", "192.0.2.2"], "lb3": ["lb3.example", "192.0.2.3"]}
SILENT = (
    "lb2 does not answer: this run leaves it as it is, and does not verify it. Its address is that of the last run's "
    "record on lb1, its settings are assumed to be its peers'."
)


def recorded(members):
    for each in members:
        each["host"]["members"] = {one["name"]: RECORD[one["name"]] for one in members}
    return members


def without_lb2(count=2, **changes):
    """A run with --limit that leaves lb2 out, which does not answer."""
    members = recorded(living(count, to_engine="auto", **changes))
    members[1].update(host=None, silent=True, outside_limit=True, address="lb2.example")
    return members


def test_it_is_named_and_the_living_are_planned_with_its_recorded_address():
    plan = _pair.plan(without_lb2())
    assert (plan.faults, plan.warnings) == ([], [SILENT])
    assert [instance["peers"] for instance in plan.members["lb1"].router.instances] == [["192.0.2.2"]]
    assert plan.record["lb2"] == ["lb2.example", "192.0.2.2"], "the next run knows it as well"
    assert "lb2: native, as is assumed, because it does not answer" in plan.engines


@pytest.mark.parametrize("changes", [{"priorities": [200, 199]}, {"preempt": False}, {"track_interval": 1}])
@pytest.mark.parametrize("count", [2, 3])
def test_what_cannot_split_is_changed_on_the_living(count, changes):
    changes = {**changes, **({"priorities": [200, 199, 198][:count]} if "priorities" in changes else {})}
    plan = _pair.plan(without_lb2(count, **changes))
    assert (plan.faults, plan.warnings[0], plan.sole_router) == ([], SILENT, "")


@pytest.mark.parametrize(
    "changes, kept",
    [
        ({"auth_pass": "an0ther1"}, "another password there"),
        ({"vrid": 77}, "VRID 51 there instead of 77"),
        ({"vrrp_version": 3}, "VRRP version 2 there instead of 3"),
        ({"multicast": True}, "unicast there instead of multicast"),
    ],
)
def test_what_would_split_is_refused_with_the_setting_and_the_mend(changes, kept):
    assert _pair.plan(without_lb2(**changes)).faults == [
        f"lb2 does not answer, and 192.0.2.10 would keep {kept}: both sides would hold the VIP. "
        "Wait until lb2 answers, or switch it off and take it out of the inventory, "
        "or accept that with -e pair_accept_split=true."
    ]
    assert _pair.plan(without_lb2(**changes, accept_split=True)).faults == []


def test_the_password_in_use_is_known_from_the_living():
    members = without_lb2()
    for each in members:
        each["settings"]["auth_pass"] = ""
    assert auth_pass(members, new_uuid=lambda: "new") == "0f3a9c1e"


def test_without_a_record_its_address_is_not_made_up():
    members = without_lb2()
    members[0]["host"]["members"] = {}
    assert _pair.plan(members).faults == [
        "lb2 does not answer, and no other member has a record of it from an earlier run, so its address is not known: "
        "repeat the run when it answers, or take it out of the inventory."
    ]


def test_it_may_itself_be_the_host_that_answers_for_the_vip():
    members = without_lb2(holder="lb2")
    members[0]["host"]["answering"] = {"192.0.2.10": ["02:00:00:00:00:02"]}
    assert _pair.plan(members).faults == []


def test_the_next_run_brings_it_back_without_a_move():
    """lb1 has the settings of the run before, lb2 still older ones."""
    members = recorded(living(before={"priorities": [200, 199]}, priorities=[250, 249]))
    alone = planner.draft(
        _pair.LAYOUT, [member(number, priorities=[250, 249], auth_pass="0f3a9c1e") for number in (1, 2)]
    )
    for instance, planned in zip(members[0]["host"]["instances"], alone.members["lb1"].router.instances):
        instance["priority"] = planned["priority"]
    plan = _pair.plan(members)
    given, _plan = turns_of(members)
    assert (plan.faults, plan.sole_router) == ([], "")
    assert set(to_play(members).gone.values()) == {0} and not [line for line in plan.warnings if "moves" in line]
    assert [turn.name for turn in given if turn.is_changed] == ["lb1", "lb2"]


def test_a_new_host_with_another_address_replaces_a_dead_member():
    """As docs/operations.md says: the same name, another address. It starts when the others send to it."""
    members = recorded(living())
    new = member(3, auth_pass="0f3a9c1e")
    members[1].update(host=new["host"], address="192.0.2.3")
    plan = _pair.plan(members)
    assert (plan.faults, plan.departed, plan.sole_router, plan.joining) == ([], [], "", ["lb2"])
    assert [plan.members[name].router.peers for name in ("lb1", "lb2")] == [["192.0.2.3"], ["192.0.2.1"]]
    assert plan.record["lb2"] == ["192.0.2.3"]
    assert "192.0.2.2 -> 192.0.2.3   at most     0 ms   harmless" in plan.warnings[1]


def test_it_is_assumed_to_run_so_that_the_play_has_it():
    given, _plan = turns_of(silent.complete(without_lb2(3)))
    assert {turn.name: turn.runs for turn in given}["lb2"]
