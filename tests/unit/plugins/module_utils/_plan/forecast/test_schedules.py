# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Thousands of random schedules; `python3 tests/schedules.py` plays a million."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, packet, sync_group, tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import simulator
from support.scope import FULL
from support.vrrp import schedule_judge, schedules

SCHEDULES = 10_000 if FULL else 2_000
SITUATIONS = {
    *("version 2", "version 3", "IPv4", "IPv6", "multicast", "unicast"),
    *("sync group", "address owner", "preempt_delay", "unequal intervals", "none left"),
    *(machine.INITIALIZE, machine.BACKUP, machine.ACTIVE, machine.FAULT),
    *schedules.VERBS,
}


def test_every_schedule_ends_with_one_active_router_and_never_serves_in_fault():
    figures = schedule_judge.play(range(SCHEDULES))
    assert figures.schedules == SCHEDULES
    assert figures.seen.keys() >= SITUATIONS
    assert min(figures.seen[each] for each in SITUATIONS) > SCHEDULES / 100, figures.seen
    # The bound is 1, and it is tight.
    assert 0.98 < figures.latest[0] <= 1


def test_a_seed_always_gives_the_same_history():
    first, second = schedule_judge.prepare(4), schedule_judge.prepare(4)
    schedule_judge.judge(first), schedule_judge.judge(second)
    assert schedule_judge.history(first) == schedule_judge.history(second)
    assert "Backup -> Active" in "\n".join(schedule_judge.history(first))


def never(*_args):
    return False


def no_row(state, event):
    return {key: row for key, row in machine.TRANSITIONS.items() if key != (state, event)}


BROKEN = {
    "a FAULT changes nothing": (tracking, "in_fault", never),
    "a Backup discards everything": (machine, "TRANSITIONS", no_row(machine.BACKUP, machine.Received)),
    "an Active router discards everything": (machine, "TRANSITIONS", no_row(machine.ACTIVE, machine.Received)),
    "a router that stops keeps its addresses": (machine, "_resignation", lambda _state: []),
    "no router preempts": (machine, "_preempts", never),
    "weights do not count": (tracking, "effective", lambda base, _readings: base),
    "addresses are compared as text": (machine, "_number", str),
    "a sync group does not wait": (sync_group, "_is_held_back", never),
    "a Backup does not wait": (machine, "MISSED", 0),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_machine_is_found_and_the_seed_named(monkeypatch, broken):
    monkeypatch.setattr(*BROKEN[broken])
    with pytest.raises(schedule_judge.Violation, match=r"^seed \d+: \([a-i]\) "):
        schedule_judge.play(range(SCHEDULES))


def instances(*priorities, **changes):
    return [
        simulator.Instance(
            member=f"lb{at}",
            name="blue",
            router=machine.VirtualRouter(2, priority, machine.SECOND, f"192.0.2.{at}", **changes),
            advertisement=packet.Advertisement(2, 51, priority, machine.SECOND, ("192.0.2.200",)),
        )
        for at, priority in enumerate(priorities, 1)
    ]


@pytest.mark.parametrize(
    "members, expected",
    [
        ([], 4),
        (instances(254, 100), 3_609_375 + 4),
        (instances(254, 100, tracked=frozenset({"haproxy"})), 3_996_093 + 4),
        (instances(254, 100, preempt_delay=5_000_000), 3_609_375 + 4 + 1 + 5_000_000 + 3_609_375),
    ],
)
def test_the_settling_time_is_a_sum_of_the_rfcs_timers(members, expected):
    assert simulator.settling_time(members) == expected


def test_the_settling_time_counts_each_transit():
    assert simulator.settling_time(instances(254, 100), transit=1000) == 3_609_375 + 4000


def test_after_a_crash_the_other_member_is_active_within_the_settling_time():
    sim = simulator.Simulation(instances(100, 99))
    sim.start("lb1"), sim.start("lb2")
    sim.run(10 * machine.SECOND)
    sim.crash("lb1")
    sim.run(sim.now + simulator.settling_time(sim.instances))
    assert sim.active() == [1]


def test_a_router_that_is_suspended_says_nothing_and_is_relieved():
    sim = simulator.Simulation(instances(200, 100))
    for member in ("lb1", "lb2"):
        sim.start(member)
    sim.run(10 * machine.SECOND)
    sim.pause("lb1", 30 * machine.SECOND)
    sim.run(20 * machine.SECOND)
    assert sim.active() == [0, 1]  # the first one does not know of it yet
    sim.run(40 * machine.SECOND)
    assert sim.active() == [0]
