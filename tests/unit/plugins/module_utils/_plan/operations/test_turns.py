# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members that announce return to a state in turn, each proved, and to none in which nobody would serve."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import order
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import rollback, turns

VIP, OTHER, ROUTER = "203.0.113.10", "203.0.113.11", "10.0.1.1"
ID, NAMES = "20260131T120000Z", ("lb1", "lb2", "lb3")
UNITS = ["haproxy.service", "frr.service", "onprem-lb-anycast.service"]


def state(serves=True, vips=(VIP,), then="bgp", now="bgp", present=False, **values):
    return {
        "id": ID,
        "purpose": "onprem.lb.site",
        "backup": "",
        "engine": "native",
        "is_present": present,
        "files": [] if present else ["/etc/frr/frr.conf"],
        "keeps_names": False,
        "changes_link": False,
        "unicast": {"now": {}, "then": {}},
        "could_serve": bool(vips),
        "reach": {"now": now, "then": then},
        "announced": {"now": [VIP] if serves else [], "vips": [*vips], "sessions": [ROUTER], "units": UNITS},
        "settle": 1.0,
        **values,
    }


def steps(**states):
    every = {name: states.get(name, state()) for name in NAMES}
    return rollback.steps(
        [
            {
                "name": name,
                "members": [*NAMES],
                "vips": [VIP],
                "engine": "auto",
                "seen": {"macs": [], "answering": {}, "members": {}, "addresses": [], "held": [], "instances": []},
                "states": {"states": [each] if each else [], "engine": "native"},
            }
            for name, each in every.items()
        ]
    )


def test_each_that_serves_returns_alone_once_the_one_before_is_proved():
    found = steps()
    assert (found.faults, found.members, found.first) == ([], [*NAMES], "lb3")
    assert found.turns == [
        {"members": ["lb1"], "proves": []},
        {"members": ["lb2"], "proves": ["lb1"]},
        {"members": ["lb3"], "proves": ["lb2"]},
        {"members": [], "proves": ["lb3"]},
    ]
    assert found.lines[-4:-1] == [f"{name} returns, and must serve then." for name in NAMES]
    assert found.settle == order.settle(order.USUAL_S) and "only" not in str(found.lines)


def test_those_that_serve_nobody_return_first_and_those_that_are_as_then_not_at_all():
    found = steps(lb2=state(serves=False), lb3=state(present=True))
    assert [turn["members"] for turn in found.turns] == [["lb2"], ["lb1"], []]
    assert found.first == "lb1" and {*found.proofs} == {"lb1", "lb2"}


def test_a_member_is_proved_by_what_the_state_had():
    assert steps().proofs["lb1"] == {
        "vips": [{"address": VIP}],
        "sessions": [ROUTER],
        "units": UNITS,
        "services": [],
        "targets": [],
    }


def test_a_state_in_which_nobody_could_announce_what_is_served_is_refused():
    nobody = {name: state(vips=[]) for name in NAMES}
    (fault,) = steps(**nobody).faults
    assert fault.startswith(f"In the state {ID} no member could announce {VIP}, so nobody would")
    assert steps(**{**nobody, "lb2": state()}).faults == []
    assert steps(**{name: state(vips=[OTHER]) for name in NAMES}).faults[0].startswith(f"In the state {ID} no member")
    assert steps(**{name: state(serves=False, vips=[OTHER]) for name in NAMES}).faults == []


@pytest.mark.parametrize("now, then", [("bgp", "vrrp"), ("vrrp", "bgp")])
def test_no_rollback_leads_from_one_reach_to_the_other(now, then):
    names = {"bgp": "BGP", "vrrp": "VRRP"}
    found = steps(**{name: state(then=then, now=now, serves=False) for name in NAMES})
    assert found.members == [] and found.faults[0] == (
        f"lb1 had its VIPs by {names[then]} in the state {ID}, and has them by {names[now]}: no run leads from one to "
        "the other yet."
    )


def test_a_member_that_the_state_lacks_stays():
    found = steps(lb2={})
    assert found.faults == [] and found.members == ["lb1", "lb3"]


@pytest.mark.parametrize(
    "proof, faults",
    [
        ({"faults": []}, []),
        ({"skipped": True}, []),
        ({"faults": ["VIP is not on lo."]}, ["VIP is not on lo."]),
        ({"msg": "unreachable"}, ["unreachable"]),
        ({}, ["no answer"]),
    ],
)
def test_whoever_is_not_proved_ends_it_before_the_next_one_returns(proof, faults):
    hosts = [{"inventory_hostname": "lb1", "__rollback_proof": proof}]
    turn = {"members": ["lb2"], "proves": ["lb1"]}
    said = [f"lb1 has returned and does not serve, so lb2 stays as it is: {fault}" for fault in faults]
    assert turns.unproved(turn, hosts) == said
    assert bool(turns.unproved({"members": [], "proves": ["lb1"]}, hosts)) is bool(faults)
    assert turns.unproved(turn, []) != []
