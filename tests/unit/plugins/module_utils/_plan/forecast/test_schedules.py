# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Some thousands of the random schedules of which `python3 tests/schedules.py` plays a million."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, packet, sync_group, tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import simulator
from support.scope import FULL
from support.vrrp import schedule_judge, schedules

SCHEDULES = 10_000 if FULL else 2_000
SITUATIONS = {
    *("version 2", "version 3", "IPv4", "IPv6", "multicast", "unicast"),
    *("sync group", "address owner", "preempt_delay", "unequal intervals", "nobody left"),
    *(machine.INITIALIZE, machine.BACKUP, machine.ACTIVE, machine.FAULT),
    *schedules.VERBS,
}


def test_every_schedule_ends_with_one_active_router_and_never_serves_in_fault():
    figures = schedule_judge.play(range(SCHEDULES))
    assert figures.schedules == SCHEDULES
    assert figures.seen.keys() >= SITUATIONS
    assert min(figures.seen[each] for each in SITUATIONS) > SCHEDULES / 100, figures.seen
    # The bound is one, and no larger than it must be.
    assert 0.98 < figures.latest[0] <= 1


def test_a_seed_always_gives_the_same_history():
    first, second = schedule_judge.prepare(4), schedule_judge.prepare(4)
    schedule_judge.judge(first), schedule_judge.judge(second)
    assert schedule_judge.story(first) == schedule_judge.story(second)
    assert "Backup -> Active" in "\n".join(schedule_judge.story(first))


def never(*_args):
    return False


def no_row(state, event):
    return {key: row for key, row in machine.TRANSITIONS.items() if key != (state, event)}


BROKEN = {
    "a FAULT changes nothing": (tracking, "in_fault", never),
    "a Backup does not hear": (machine, "TRANSITIONS", no_row(machine.BACKUP, machine.Received)),
    "an Active one does not hear": (machine, "TRANSITIONS", no_row(machine.ACTIVE, machine.Received)),
    "who stops keeps the addresses": (machine, "_resignation", lambda _state: []),
    "nobody preempts": (machine, "_preempts", never),
    "weights do not count": (tracking, "effective", lambda base, _readings: base),
    "addresses are compared as text": (machine, "_number", str),
    "a group does not wait": (sync_group, "_is_held_back", never),
    "nobody waits": (machine, "MISSED", 0),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_machine_is_found_and_the_seed_named(monkeypatch, broken):
    monkeypatch.setattr(*BROKEN[broken])
    with pytest.raises(schedule_judge.Violation, match=r"^seed \d+: \([a-i]\) "):
        schedule_judge.play(range(SCHEDULES))


def seats(*priorities, **changes):
    return [
        simulator.Seat(
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
        (seats(254, 100), 3_609_375 + 4),
        (seats(254, 100, tracked=frozenset({"haproxy"})), 3_996_093 + 4),
        (seats(254, 100, preempt_delay=5_000_000), 3_609_375 + 4 + 1 + 5_000_000 + 3_609_375),
    ],
)
def test_the_settling_time_is_a_sum_of_the_rfcs_timers(members, expected):
    assert simulator.settling_time(members) == expected


def test_the_settling_time_counts_each_transit():
    assert simulator.settling_time(seats(254, 100), transit=1000) == 3_609_375 + 4000


def test_what_loses_an_advertisement_costs_the_whole_settling_time_but_no_more():
    world = simulator.Simulation(seats(100, 99))
    world.start("lb1"), world.start("lb2")
    world.run(10 * machine.SECOND)
    world.crash("lb1")
    world.run(world.now + simulator.settling_time(world.seats))
    assert world.active() == [1]
