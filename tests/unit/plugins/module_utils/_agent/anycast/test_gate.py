# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VIPs a host should have, for all that may be known of it."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import gate
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast.settings import HELD_BACK, Vip
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result
from ansible_collections.onprem.lb.plugins.module_utils._shared import held_back

VIP = Vip("front", "192.0.2.10/32", ("a", "b"))
OTHER = Vip("six", "2001:db8::10/128", ("a",))
FREE = gate.Record()
HELD, UNREADABLE = gate.Record("held back by anna"), gate.Record(known=False)
UP, DOWN, NONE, LACKS = "up", "down", "no result", "could not be made"
STATES = (UP, DOWN, NONE, LACKS)


def results(**states):
    made = {
        UP: lambda name: Result(name, True, 0, "fine"),
        DOWN: lambda name: Result(name, False, 0, "refused"),
        LACKS: lambda name: Result(name, False, 0, "cannot run it", known=False),
    }
    return {name: made[state](name) for name, state in states.items() if state != NONE}


@pytest.mark.parametrize("record", [FREE, HELD, UNREADABLE])
@pytest.mark.parametrize("states", [*itertools.product(STATES, STATES)], ids=" and ".join)
def test_only_what_is_known_changes_anything(states, record):
    decision = gate.decide(VIP, results(a=states[0], b=states[1]), record)
    goes = record is HELD or DOWN in states
    comes = states == (UP, UP) and record is FREE
    assert decision.wanted is (False if goes else True if comes else None)
    assert decision.reason in gate.REASONS and bool(decision.detail) is not comes


@pytest.mark.parametrize(
    "states, record, decision",
    [
        ((UP, UP), FREE, (True, "serves", "")),
        ((DOWN, NONE), FREE, (False, "failed", "a: refused")),
        ((DOWN, DOWN), FREE, (False, "failed", "a: refused; b: refused")),
        ((LACKS, NONE), FREE, (None, "not_known", "not known: a, b")),
        ((UP, UP), UNREADABLE, (None, "not_known", "not known: whether this host is held back")),
        ((UP, UP), HELD, (False, "held_back", "held back by anna")),
    ],
)
def test_a_decision_has_its_reason(states, record, decision):
    assert gate.decide(VIP, results(a=states[0], b=states[1]), record) == decision


def test_a_file_that_says_down_is_the_reason_with_its_number():
    found = {**results(b=UP), "a": Result("a", False, 1, "")}
    assert gate.decide(VIP, found, FREE).detail == "a: 1"


YES, NO, AS_IT_IS = (gate.Decision(wanted, "x", "") for wanted in (True, False, None))


@pytest.mark.parametrize("there", [[], ["192.0.2.10/32"], ["192.0.2.10/24"], ["192.0.2.10/24", "192.0.2.10/32"]])
@pytest.mark.parametrize("decision", [YES, NO, AS_IT_IS])
def test_what_is_to_be_done_follows_from_the_decision_and_what_is_there(decision, there):
    todo = gate.changes([(VIP, decision)], {"front": there}, {*there})
    strays = [each for each in there if each != VIP.address]
    assert todo.remove == ([(VIP, there)] if decision is NO and there else [])
    assert todo.add == ([VIP] if decision is YES and VIP.address not in there else [])
    assert todo.strays == ([(VIP, strays)] if decision is YES and strays else [])


def test_an_address_that_is_there_and_cannot_be_used_is_added_anew():
    assert gate.changes([(OTHER, YES)], {"six": [OTHER.address]}, set()).add == [OTHER]


def test_a_vip_of_which_nothing_is_known_is_none_of_its_business():
    assert gate.changes([(VIP, AS_IT_IS), (OTHER, NO)], {"front": [VIP.address]}, set()) == ([], [], [])


def test_the_records_that_hold_a_host_back_are_those_of_the_router():
    assert {*HELD_BACK} == {*held_back.PATHS.values()}
