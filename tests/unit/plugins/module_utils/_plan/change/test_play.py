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
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import moves
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import play as transition
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
OTHER_VIP = "192.0.2.20"
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


@pytest.mark.parametrize("name", [*SPLITTING, *ENGINES])
def test_a_run_that_stops_all_routers_and_never_starts_one_leaves_nobody(name):
    """The play reaches the end of each way, even if nothing changes in a pause between two of its steps."""
    way = to_play(living(3, **CHANGES[name]))
    stops = [[transition.Step(transition.STOP, name)] for name in reversed(way.configurations)]
    (*_play, last) = transition.counterexample(way._replace(waves=stops, gone={VIP: 1_000_000}))
    assert "is held by nobody for" in last


def written(steps, allowed_s=3600):
    """A way of two agents by hand, with one step in each wave.

    lb1 lacks the VIP while it has configuration 1. lb2 has another one from configuration 4 on.

    :param steps: each a member and the number of its new configuration
    """
    way = to_play(living(engine="agent", preempt=False))
    (lb1,), (lb2,) = (way.configurations[name][0] for name in ("lb1", "lb2"))
    without, other = (_with_addresses(lb1, address) for address in ("192.0.2.77", OTHER_VIP))
    other = other._replace(member="lb2", advertisement=other.advertisement._replace(vrid=99))
    configurations = {"lb1": [[lb1], [without], [lb1]], "lb2": [[lb2]] * 4 + [[lb2, other]] * 2}
    waves = [[transition.Step(transition.RELOAD, *step)] for step in steps]
    return way._replace(configurations=configurations, waves=waves, gone={VIP: round(allowed_s * 1_000_000)})


def _with_addresses(instance, *addresses):
    return instance._replace(advertisement=instance.advertisement._replace(addresses=addresses))


def test_a_run_may_end_between_two_steps_and_leave_a_vip_that_only_the_next_one_brings_back():
    """lb2 hears lb1, so it does not take over."""
    way = written([("lb1", 1), ("lb1", 2)])
    assert transition.counterexample(way, 0) == []
    (*play, last) = transition.counterexample(way, 1)
    assert play[-1].endswith("the run ends.")
    assert last.endswith(f"{VIP} is held by nobody, although lb2 could.")


@pytest.mark.parametrize("first, second", [(1, 2), (4, 5)], ids=["nothing else changes", "another VIP moves"])
def test_a_vip_that_is_gone_over_several_steps_is_gone_for_as_long_as_all_of_them_take(first, second):
    steps = [("lb1", 1), ("lb2", first), ("lb2", second), ("lb1", 2)]
    long = moves.numbered(written(steps)).long / 1_000_000
    assert transition.counterexample(written(steps, allowed_s=3.5 * long)) == []
    (*_play, last) = transition.counterexample(written(steps, allowed_s=2.7 * long))
    assert last.endswith(f"although at most {2.7 * long:g} s are said.")


def test_a_vip_that_nobody_has_had_makes_no_more_moments_to_play_on_from(monkeypatch):
    """Else a plan with a new VIP would take many times as long."""
    way = written([("lb2", number) for number in (1, 2, 3)])
    one_vip = {name: [configurations[0]] * 4 for name, configurations in way.configurations.items()}
    new, counts, is_new = [], [], transition.Seen.is_new
    monkeypatch.setattr(transition.Seen, "is_new", lambda *given: new.append(is_new(*given)) or new[-1])
    for each in (way, way._replace(configurations=one_vip)):
        assert transition.counterexample(each) == []
        counts.append(sum(new))
        new.clear()
    assert counts[0] == counts[1]
