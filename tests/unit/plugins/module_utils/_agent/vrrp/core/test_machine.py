# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Virtual Router of RFC 9568 section 6.4 and RFC 3768 section 6.4, event by event."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.machine import (
    ACTIVE,
    BACKUP,
    FAULT,
    INITIALIZE,
)
from support.vrrp.transcripts import hears, name, plays, router

MS = 1000


@pytest.mark.parametrize(
    "version, priority, interval, skew, down",
    [
        (2, 100, 1000 * MS, 609_375, 3_609_375),
        (2, 254, 1000 * MS, 7_812, 3_007_812),
        (2, 1, 1000 * MS, 996_093, 3_996_093),
        (2, 254, 5000 * MS, 7_812, 15_007_812),
        (3, 100, 1000 * MS, 609_375, 3_609_375),
        (3, 254, 5000 * MS, 39_062, 15_039_062),
        (3, 100, 10 * MS, 6_093, 36_093),
        (3, 255, 100 * MS, 390, 300_390),
    ],
)
def test_the_skew_counts_seconds_in_version_2_and_intervals_in_version_3(version, priority, interval, skew, down):
    who, state = router(version, priority, interval=interval), machine.State(active_interval=interval)
    assert machine.skew_time(who, state) == skew
    assert machine.active_down_interval(who, state) == down


def test_a_backup_that_receives_nothing_becomes_active_and_advertises_every_interval():
    plays(
        router(),
        """
        0         start    -> Backup until 3609.375 | Initialize to Backup: start
        3609.375  timeout  -> Active until 4609.375 | send 100, add, announce, \
                                                      Backup to Active: no Advertisement was heard
        4609.375  timeout  -> Active until 5609.375 | send 100
        5609.380  timeout  -> Active until 6609.38 | send 100
        """,
    )


def test_the_address_owner_is_active_at_once():
    plays(
        router(priority=255),
        """
        7  start  -> Active until 1007 | send 255, add, announce, Initialize to Active: start, as the address owner
        """,
    )


def test_a_timer_that_is_early_does_nothing():
    plays(
        router(),
        """
        0         start    -> Backup until 3609.375 | Initialize to Backup: start
        3609.374  timeout  -> Backup until 3609.375
        3609.375  timeout  -> Active until 4609.375 | send 100, add, announce, \
                                                      Backup to Active: no Advertisement was heard
        4609.374  timeout  -> Active until 4609.375
        """,
    )


@pytest.mark.parametrize("state", [BACKUP, ACTIVE])
def test_a_timer_that_was_not_set_does_nothing(state):
    idle = machine.State(state)
    assert machine.step(router(), idle, machine.Timeout(), 10**9) == (idle, [])


def test_a_backup_waits_anew_for_each_advertisement_of_the_same_or_a_higher_priority():
    plays(
        router(),
        """
        0     start      -> Backup until 3609.375 | Initialize to Backup: start
        1000  hears 101  -> Backup until 4609.375
        2000  hears 100  -> Backup until 5609.375
        3000  hears 255  -> Backup until 6609.375
        """,
    )


def test_no_address_decides_between_a_backup_and_its_equal():
    plays(
        router(source="192.0.2.100"),
        """
        0     start                     -> Backup until 3609.375 | Initialize to Backup: start
        1000  hears 100 from 192.0.2.1  -> Backup until 4609.375
        """,
    )


def test_a_lower_priority_does_not_touch_the_timer():
    plays(
        router(),
        """
        0         start     -> Backup until 3609.375 | Initialize to Backup: start
        3000      hears 99  -> Backup until 3609.375
        3609.375  timeout   -> Active until 4609.375 | send 100, add, announce, \
                                                       Backup to Active: no Advertisement was heard
        """,
    )


def test_without_preemption_a_lower_priority_may_stay():
    plays(
        router(preempt=False),
        """
        0     start    -> Backup until 3609.375 | Initialize to Backup: start
        3000  hears 1  -> Backup until 6609.375
        """,
    )


@pytest.mark.parametrize("changes", [{"preempt": False}, {"preempt_delay": 60 * machine.SECOND}])
def test_the_address_owner_preempts_whatever_is_configured(changes):
    plays(
        router(priority=255, **changes),
        """
        0     start                       -> Active until 1000 | send 255, add, announce, \
                                                    Initialize to Active: start, as the address owner
        500   hears 255 from 192.0.2.200  -> Backup until 3503.906 | send 255, remove, \
                                                    Active to Backup: Advertisement with priority 255 from 192.0.2.200
        1500  hears 254 from 192.0.2.200  -> Backup until 3503.906
        """,
    )


@pytest.mark.parametrize("preempt", [True, False])
def test_a_resignation_starts_skew_time_only_once(preempt):
    plays(
        router(preempt=preempt),
        """
        0         start      -> Backup until 3609.375 | Initialize to Backup: start
        1000      hears 200  -> Backup until 4609.375
        1500      hears 0    -> Backup until 2109.375
        2000      hears 0    -> Backup until 2109.375
        2109.375  timeout    -> Active until 3109.375 | send 100, add, announce, \
                                                        Backup to Active: no Advertisement was heard
        """,
    )


def test_an_active_router_answers_who_gives_up_and_waits_a_whole_interval():
    plays(
        router(priority=255),
        """
        0    start    -> Active until 1000 | send 255, add, announce, \
                                             Initialize to Active: start, as the address owner
        300  hears 0  -> Active until 1300 | send 255
        """,
    )


ACTIVE_AT_3610 = """
        0         start    -> Backup until 3609.375 | Initialize to Backup: start
        3609.375  timeout  -> Active until 4609.375 | send 100, add, announce, \
                                                      Backup to Active: no Advertisement was heard
"""


def test_an_active_router_yields_to_a_higher_priority_with_a_last_word():
    plays(
        router(),
        ACTIVE_AT_3610
        + """
        4000      hears 101  -> Backup until 7609.375 | send 100, remove, \
                                        Active to Backup: Advertisement with priority 101 from 192.0.2.1
        """,
    )


def test_an_active_router_tells_a_worse_one_and_the_link_who_is_active_and_leaves_its_timer_alone():
    plays(
        router(),
        ACTIVE_AT_3610
        + """
        4000      hears 99  -> Active until 4609.375 | send 100, announce
        """,
    )


@pytest.mark.parametrize(
    "own, other, yields",
    [
        ("192.0.2.9", "192.0.2.10", True),
        ("192.0.2.10", "192.0.2.9", False),
        ("192.0.2.255", "192.0.3.0", True),
        ("fe80::9", "fe80::10", True),
        ("fe80::ff", "fe80::1:0", True),
        ("fe80::1:0", "fe80::ff", False),
    ],
)
def test_between_equal_active_routers_the_address_decides_as_a_number(own, other, yields):
    state = machine.State(ACTIVE, deadline=1000 * MS)
    moved, _effects = machine.step(router(source=own), state, hears(100, other), 500 * MS)
    assert moved.name == (BACKUP if yields else ACTIVE)


def test_its_own_advertisement_is_not_answered():
    plays(
        router(),
        ACTIVE_AT_3610
        + """
        4000      hears 100 from 192.0.2.100  -> Active until 4609.375
        """,
    )


def test_version_3_learns_the_interval_of_the_active_router_and_forgets_it_when_active():
    state = plays(
        router(3),
        """
        0       start                -> Backup until 3609.375 | Initialize to Backup: start
        100     hears 200 every 100  -> Backup until 460.937
        200     hears 0 every 5000   -> Backup until 260.937
        300     timeout              -> Active until 1300 | send 100, add, announce, \
                                                            Backup to Active: no Advertisement was heard
        """,
    )
    assert state.active_interval == machine.SECOND


def test_version_3_learns_the_interval_of_whom_it_yields_to():
    plays(
        router(3),
        ACTIVE_AT_3610
        + """
        4000      hears 101 every 100  -> Backup until 4360.937 | send 100, remove, \
                                                  Active to Backup: Advertisement with priority 101 from 192.0.2.1
        """,
    )


def test_version_3_learns_nothing_from_a_lower_priority():
    plays(
        router(3),
        """
        0    start               -> Backup until 3609.375 | Initialize to Backup: start
        100  hears 99 every 100  -> Backup until 3609.375
        200  hears 100           -> Backup until 3809.375
        """,
    )


def test_version_2_learns_no_interval():
    plays(
        router(2),
        """
        0         start                -> Backup until 3609.375 | Initialize to Backup: start
        100       hears 200 every 100  -> Backup until 3709.375
        3709.375  timeout              -> Active until 4709.375 | send 100, add, announce, \
                                                                  Backup to Active: no Advertisement was heard
        4000      hears 200 every 100  -> Backup until 7609.375 | send 100, remove, \
                                                    Active to Backup: Advertisement with priority 200 from 192.0.2.1
        """,
    )


def test_an_active_router_that_stops_says_so_before_its_addresses_go():
    plays(
        router(),
        ACTIVE_AT_3610
        + """
        4000      stop     -> Initialize | send 0, remove, Active to Initialize: stop
        5000      timeout  -> Initialize
        """,
    )


def test_a_backup_stops_without_a_word_and_may_start_again():
    plays(
        router(),
        """
        0     start    -> Backup until 3609.375 | Initialize to Backup: start
        1000  stop     -> Initialize | Backup to Initialize: stop
        9000  start    -> Backup until 12609.375 | Initialize to Backup: start
        """,
    )


def test_a_sync_group_moves_its_routers():
    plays(
        router(),
        """
        0     start    -> Backup until 3609.375 | Initialize to Backup: start
        100   promote  -> Active until 1100 | send 100, add, announce, \
                                              Backup to Active: its sync group becomes Active
        200   demote   -> Backup until 3809.375 | remove, Active to Backup: its sync group becomes Backup
        """,
    )


def test_a_demoted_router_counts_with_its_own_interval():
    learned = machine.State(ACTIVE, deadline=0, active_interval=7)
    assert machine.step(router(), learned, machine.Demote(), 0)[0].active_interval == machine.SECOND


STATES = (INITIALIZE, BACKUP, ACTIVE, FAULT)
EVENTS = (
    machine.Start(),
    machine.Stop(),
    machine.Timeout(),
    hears(200),
    machine.TrackerUpdate("haproxy", 0),
    machine.Promote(),
    machine.Demote(),
)
IGNORED = {
    INITIALIZE: {machine.Timeout, machine.Received, machine.Promote, machine.Demote},
    BACKUP: {machine.Start, machine.Demote},
    ACTIVE: {machine.Start, machine.Promote},
    FAULT: {machine.Start, machine.Timeout, machine.Received, machine.Promote, machine.Demote},
}


@pytest.mark.parametrize("name, event", list(itertools.product(STATES, EVENTS)))
def test_what_has_no_row_in_the_table_does_nothing(name, event):
    state = machine.State(name, deadline=0, started=True)
    ignored = machine.step(router(), state, event, machine.SECOND) == (state, [])
    assert ignored == (type(event) in IGNORED[name])


@pytest.mark.parametrize("before, event", list(itertools.product(STATES, EVENTS)))
def test_a_step_leaves_the_state_it_began_with_as_it_was(before, event):
    readings = {"haproxy": None}
    state = machine.State(before, deadline=0, readings=readings, started=True)
    copy = machine.State(before, deadline=0, readings={"haproxy": None}, started=True)
    first = machine.step(router(), state, event, machine.SECOND)
    assert (state, readings) == (copy, {"haproxy": None})
    again = machine.step(router(), state, event, machine.SECOND)
    assert (first[0], [name(effect) for effect in first[1]]) == (again[0], [name(effect) for effect in again[1]])
