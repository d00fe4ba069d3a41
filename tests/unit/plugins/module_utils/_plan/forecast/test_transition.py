# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way from what runs to a plan, played in every order: an exhaustive small model.

Every class of change, two to four members, and up to two faults on the way: a member is lost, an Advertisement is lost,
the run ends. A play that goes wrong is printed as a timeline. In the full scope each member is the holder once. In the
quick one the best and the last are, between which lie the others, and four members have only those changes whose plays
are few.
"""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import transition
from support.plans.transitions import VIP, living, to_play, without_care
from support.scope import FULL

SPLITTING = {
    "VRID": {"vrid": 77},
    "VRRP version": {"vrrp_version": 3},
    "interval in version 2": {"advert_interval": 2},
    "password": {"auth_pass": "an0ther1"},
    "multicast": {"multicast": True},
    "VIPs of one VRID, keepalived 2.2.7": {"shared": ["192.0.2.77"]},
    "VRRP version, agents": {"vrrp_version": 3, "engine": "agent"},
}
HARMLESS = {
    "VIPs of one VRID, keepalived 2.3.3": {"shared": ["192.0.2.77"], "version": "2.3.3"},
    "VIPs of one VRID, agents": {"shared": ["192.0.2.77"], "engine": "agent"},
    "interval in version 3": {"advert_interval": 0.25, "before": {"vrrp_version": 3}},
    "preemption": {"preempt": False},
    "prefix": {"vips": [f"{VIP}/24"]},
    "another holder": {"vips": [{"address": VIP, "first": "lb2"}]},
}
ENGINES = {
    "engine": {"to_engine": "agent"},
    "engine, from agent to native": {"engine": "agent", "to_engine": "native"},
    "engine and password": {"to_engine": "agent", "auth_pass": "an0ther1"},
}
CHANGES = {**SPLITTING, **HARMLESS, **ENGINES}
COUNTS, FAULTS = (2, 3, 4), 2
FEW_PLAYS = ("interval in version 2", "engine and password")


def holders(count):
    numbers = range(1, count + 1) if FULL else (1, count)
    return [f"lb{number}" for number in numbers]


@pytest.mark.parametrize(
    "name, count", [(name, count) for name in CHANGES for count in COUNTS if FULL or count < 4 or name in FEW_PLAYS]
)
def test_no_order_and_no_two_faults_split_a_run_or_leave_the_vip_for_longer_than_said(name, count):
    for holder in holders(count):
        way = to_play(living(count, holder=holder, **CHANGES[name]))
        assert transition.counterexample(way, FAULTS) == []


@pytest.mark.parametrize("count", COUNTS[1:])
def test_a_member_joins_in_spite_of_two_faults(count):
    for holder in holders(count - 1):
        way = to_play(living(count, holder=holder, joining=[f"lb{count}"]))
        assert transition.counterexample(way, FAULTS) == []


def test_the_shortest_play_of_a_run_in_the_wrong_order_is_shown():
    """The sole router gets its new settings before the others stop. No fault is needed, so the play has none."""
    way = to_play(living(3, auth_pass="an0ther1"))
    stop, alone, start = (wave for wave in way.waves if wave)
    assert transition.counterexample(way._replace(waves=[alone, stop, start]), FAULTS) == [
        "  0.000 s  192.0.2.10 is held by lb1.",
        "  0.000 s  the run reloads lb1's router with new settings.",
        "  2.020 s    lb2: Backup -> Active (no Advertisement was heard).",
        "  5.000 s  192.0.2.10 is held by lb1 and lb2.",
    ]


def test_an_order_that_only_a_fault_reveals_is_found():
    """lb3 joins before lb2 sends to it, which nobody notices while lb1 lives."""
    way = to_play(living(3, joining=["lb3"]))
    lb2, lb1, lb3 = (wave for wave in way.waves if wave)
    hasty = way._replace(waves=[lb1, lb3, lb2])
    assert transition.counterexample(hasty, 0) == []
    assert transition.counterexample(hasty, FAULTS) == [
        "  0.000 s  192.0.2.10 is held by lb1.",
        "  0.000 s  lb1 is lost.",
        "  0.500 s  the run starts lb3's router with new settings.",
        "  0.500 s    lb3: Initialize -> Backup (start).",
        "  2.020 s    lb2: Backup -> Active (no Advertisement was heard).",
        "  3.609 s    lb3: Backup -> Active (no Advertisement was heard).",
        "  5.500 s  192.0.2.10 is held by lb2 and lb3.",
    ]


@pytest.mark.parametrize("name", SPLITTING)
def test_without_the_sole_router_every_change_of_that_class_splits(name):
    (*_play, last) = transition.counterexample(without_care(living(**SPLITTING[name])))
    assert last.endswith(f"{VIP} is held by lb1 and lb2.")


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_change_needs_no_care_even_with_two_faults(name):
    assert transition.counterexample(without_care(living(**HARMLESS[name])), FAULTS) == []


def test_the_shortest_counterexample_is_a_timeline():
    assert transition.counterexample(without_care(living(auth_pass="an0ther1"))) == [
        "  0.000 s  192.0.2.10 is held by lb1.",
        "  0.000 s  the run reloads lb1's router with new settings.",
        "  2.020 s    lb2: Backup -> Active (no Advertisement was heard).",
        "  5.000 s  192.0.2.10 is held by lb1 and lb2.",
    ]


def test_a_member_that_joins_before_the_others_send_to_it_splits():
    way = to_play(living(3, joining=["lb3"]))
    at_once = way._replace(waves=[[step for wave in way.waves for step in wave]])
    (*_play, last) = transition.counterexample(at_once)
    assert last.endswith("is held by lb1 and lb3.")


def test_a_vip_that_is_gone_for_longer_than_said_is_a_counterexample():
    way = to_play(living(vrid=77))
    (*play, last) = transition.counterexample(way._replace(gone={VIP: 3_000_000}))
    assert last.endswith(f"{VIP} is held by nobody for 3.00781 s, although at most 3 s are said.")
    assert any("lb2's router" in line for line in play), "the others stop first"


def test_a_run_that_stops_all_routers_and_never_starts_one_leaves_nobody():
    way = to_play(living(auth_pass="an0ther1"))
    stops = [[transition.Step(transition.STOP, name)] for name in way.configurations]
    (*_play, last) = transition.counterexample(way._replace(waves=stops))
    assert "is held by nobody for" in last
