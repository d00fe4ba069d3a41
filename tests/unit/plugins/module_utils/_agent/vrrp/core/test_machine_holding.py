# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Addresses that are there from a former life, which ended without a word; and other settings in mid-life."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.machine import (
    ACTIVE,
    BACKUP,
    FAULT,
    INITIALIZE,
)
from support.vrrp.transcripts import event, plays, router

SECOND = machine.SECOND
TRACKING = router(tracked=frozenset({"haproxy"}))
HOLDING = """
        0         start holding  -> Backup until 1609.375 | Initialize to Backup: start
"""


def test_a_router_that_still_has_its_addresses_waits_for_one_interval_only():
    """A router that has taken them meanwhile sends one in that time; and the next one waits for three."""
    plays(
        router(),
        HOLDING
        + """
        1609.374  timeout        -> Backup until 1609.375
        1609.375  timeout        -> Active until 2609.375 | send 100, add, announce, \
                                                            Backup to Active: no Advertisement was heard
        """,
    )


def test_in_version_3_it_waits_for_one_of_its_own_intervals():
    who = router(3, interval=SECOND // 10)
    plays(who, "0  start holding  -> Backup until 160.937 | Initialize to Backup: start")


@pytest.mark.parametrize("priority", [100, 200])
def test_it_removes_them_when_another_router_has_taken_them(priority):
    plays(
        router(),
        HOLDING
        + f"""
        500       hears {priority}  -> Backup until 4109.375 | remove
        600       hears {priority}  -> Backup until 4209.375
        """,
    )


def test_it_removes_them_also_when_it_is_going_to_preempt():
    plays(
        router(),
        HOLDING
        + """
        500       hears 99  -> Backup until 1609.375 | remove
        600       hears 99  -> Backup until 1609.375
        1609.375  timeout   -> Active until 2609.375 | send 100, add, announce, \
                                                       Backup to Active: no Advertisement was heard
        """,
    )


def test_without_preemption_it_removes_them_and_waits():
    plays(
        router(preempt=False),
        HOLDING
        + """
        500       hears 99  -> Backup until 4109.375 | remove
        """,
    )


def test_a_router_that_resigns_has_not_taken_them():
    plays(
        router(),
        HOLDING
        + """
        500       hears 0   -> Backup until 1109.375
        600       hears 99  -> Backup until 1109.375 | remove
        """,
    )


def test_a_fault_removes_them_and_lets_the_next_one_take_over_which_still_waits_for_this_one():
    plays(
        router(),
        HOLDING
        + """
        500       reads haproxy FAULT  -> Fault | send 0, remove, Backup to Fault: haproxy failed
        600       reads haproxy 0      -> Backup until 4209.375 | Fault to Backup: haproxy is well again
        """,
    )


def test_a_stop_removes_them():
    plays(
        router(),
        HOLDING
        + """
        500       stop           -> Initialize | send 0, remove, Backup to Initialize: stop
        600       start          -> Backup until 4209.375 | Initialize to Backup: start
        """,
    )


def test_a_router_that_has_become_active_no_longer_holds_its_addresses_from_before_the_start():
    plays(
        router(),
        HOLDING
        + """
        1609.375  timeout        -> Active until 2609.375 | send 100, add, announce, \
                                                            Backup to Active: no Advertisement was heard
        2000      hears 101      -> Backup until 5609.375 | send 100, remove, \
                                                 Active to Backup: Advertisement with priority 101 from 192.0.2.1
        3000      hears 101      -> Backup until 6609.375
        4000      stop           -> Initialize | Backup to Initialize: stop
        """,
    )


def test_the_address_owner_goes_on_at_once():
    plays(
        router(priority=255),
        """
        0         start holding  -> Active until 1000 | send 255, add, announce, \
                                                        Initialize to Active: start, as the address owner
        """,
    )


def test_while_a_reading_is_missing_they_stay_unless_another_router_has_taken_them():
    plays(
        TRACKING,
        """
        0         start holding    -> Initialize
        500       hears 0          -> Initialize
        700       reads haproxy 0  -> Backup until 2309.375 | Initialize to Backup: haproxy was read
        """,
    )
    plays(
        TRACKING,
        """
        0         start holding    -> Initialize
        500       hears 1          -> Initialize | remove
        600       hears 1          -> Initialize
        700       reads haproxy 0  -> Backup until 4309.375 | Initialize to Backup: haproxy was read
        """,
    )


def test_what_is_read_first_is_a_fault_and_they_go():
    plays(
        TRACKING,
        """
        0         start holding        -> Initialize
        500       reads haproxy FAULT  -> Fault | send 0, remove, Initialize to Fault: haproxy was read
        """,
    )


def test_a_stop_before_everything_was_read_removes_them():
    plays(
        TRACKING,
        """
        0         start holding  -> Initialize
        500       stop           -> Initialize | send 0, remove
        """,
    )


def test_a_router_that_has_not_started_removes_nothing():
    plays(
        TRACKING,
        """
        500       hears 200  -> Initialize
        """,
    )


# --- other settings ---------------------------------------------------------------------------------------------


def state(name, deadline, **changes):
    return machine.State(name, deadline, active_interval=SECOND, started=True, **changes)


@pytest.mark.parametrize("name", [INITIALIZE, FAULT])
def test_other_settings_set_no_timer_where_none_runs(name):
    before = state(name, None)
    assert machine.reconfigured(router(interval=7 * SECOND), before, 0) == before


@pytest.mark.parametrize("interval, deadline", [(SECOND // 10, SECOND // 10), (SECOND, 700_000), (7 * SECOND, 700_000)])
def test_an_active_router_never_advertises_later_than_both_settings_want_it(interval, deadline):
    after = machine.reconfigured(router(3, interval=interval), state(ACTIVE, 700_000), 0)
    assert (after.name, after.deadline, after.active_interval) == (ACTIVE, deadline, interval)


def test_a_backup_waits_as_long_as_the_new_settings_want_it_from_now_on():
    after = machine.reconfigured(router(interval=2 * SECOND, priority=254), state(BACKUP, 700_000), SECOND)
    assert (after.name, after.deadline, after.active_interval) == (BACKUP, 7_007_812, 2 * SECOND)


def test_a_backup_of_version_3_still_goes_by_what_the_active_router_said():
    after = machine.reconfigured(router(3, interval=5 * SECOND, priority=254), state(BACKUP, 700_000), 0)
    assert (after.deadline, after.active_interval) == (3_007_812, SECOND)


def test_other_settings_forget_nothing_else():
    before = state(BACKUP, 1, readings={"haproxy": -10}, preempt_at=7, wants_active=True, holding=True)
    after = machine.reconfigured(router(), before, 0)
    assert after._replace(deadline=1) == before


# --- who resigns and still serves -------------------------------------------------------------------------------------

RESIGNED = """
        0         start          -> Backup until 3609.375 | Initialize to Backup: start
        3609.375  timeout        -> Active until 4609.375 | send 100, add, announce, \
                                                            Backup to Active: no Advertisement was heard
        4000      leave          -> Leaving until 5200 | send 0, Active to Leaving: stop
"""


def test_a_router_that_resigns_keeps_the_addresses_for_as_long_as_a_takeover_may_need():
    plays(
        router(),
        RESIGNED
        + """
        5199.999  timeout        -> Leaving until 5200
        5200      timeout        -> Initialize | remove, Leaving to Initialize: stop
        """,
    )


def test_the_new_active_routers_first_advertisement_shortens_that_and_no_later_one_lengthens_it():
    plays(
        router(),
        RESIGNED
        + """
        4100      hears 0        -> Leaving until 5200
        4101      hears 50       -> Leaving until 4151
        4150      hears 50       -> Leaving until 4151
        4151      timeout        -> Initialize | remove, Leaving to Initialize: stop
        4152      hears 50       -> Initialize
        """,
    )


def test_the_time_after_a_successors_advertisement_is_no_longer_than_an_interval():
    who = router(3, interval=SECOND // 100)
    state = machine.step(who, machine.State(ACTIVE, deadline=0, started=True), machine.Stop(keep_until_taken=True), 0)[
        0
    ]
    assert state.deadline == SECOND // 100 + machine.LINGER_MAX
    assert machine.step(who, state, event("hears 50"), 1000)[0].deadline == 1000 + SECOND // 100


def test_a_second_stop_removes_them():
    plays(router(), RESIGNED + "4001  stop  -> Initialize | remove, Leaving to Initialize: stop")


def test_only_an_active_router_is_leaving():
    plays(
        router(),
        """
        0         start          -> Backup until 3609.375 | Initialize to Backup: start
        1         leave          -> Initialize | Backup to Initialize: stop
        """,
    )
