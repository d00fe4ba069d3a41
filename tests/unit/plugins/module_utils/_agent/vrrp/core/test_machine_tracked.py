# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keepalived adds to the RFCs: FAULT, weights, and a delay before preempting."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine
from support.vrrp.transcripts import plays, router

TRACKING = router(tracked=frozenset({"haproxy", "link"}))


def test_a_router_takes_no_part_before_everything_is_read_for_the_first_time():
    plays(
        TRACKING,
        """
        0   start            -> Initialize
        10  reads haproxy 0  -> Initialize
        20  reads link 0     -> Backup until 3629.375 | Initialize to Backup: link was read
        """,
    )


def test_what_is_read_before_the_start_counts_but_starts_nothing():
    plays(
        TRACKING,
        """
        0   reads haproxy 0    -> Initialize
        10  reads link -20     -> Initialize
        20  start              -> Backup until 3707.5 | Initialize to Backup: start
        """,
    )


@pytest.mark.parametrize("priority", [100, 255])
def test_a_router_that_begins_with_a_fault_is_in_fault(priority):
    plays(
        TRACKING._replace(priority=priority),
        """
        0   start                -> Initialize
        10  reads haproxy FAULT  -> Initialize
        20  reads link 0         -> Fault | Initialize to Fault: link was read
        """,
    )


BACKUP = """
        0   reads haproxy 0  -> Initialize
        0   reads link 0     -> Initialize
        0   start            -> Backup until 3609.375 | Initialize to Backup: start
"""
ACTIVE = (
    BACKUP
    + """
        3609.375  timeout    -> Active until 4609.375 | send 100, add, announce, \
                                                        Backup to Active: no Advertisement was heard
"""
)


def test_a_backup_goes_to_fault_without_a_word_and_its_timer_ends():
    plays(
        TRACKING,
        BACKUP
        + """
        500       reads haproxy FAULT  -> Fault | Backup to Fault: haproxy failed
        3609.375  timeout              -> Fault
        3700      hears 0              -> Fault
        """,
    )


def test_an_active_router_in_fault_gives_up_at_once_and_its_addresses_go():
    plays(
        TRACKING,
        ACTIVE
        + """
        4000      reads haproxy FAULT  -> Fault | send 0, remove, Active to Fault: haproxy failed
        """,
    )


def test_a_fault_is_over_when_the_last_thing_is_well_again():
    plays(
        TRACKING,
        BACKUP
        + """
        100       reads haproxy FAULT  -> Fault | Backup to Fault: haproxy failed
        200       reads link FAULT     -> Fault
        300       reads haproxy 0      -> Fault
        400       reads link 0         -> Backup until 4009.375 | Fault to Backup: link is well again
        """,
    )


def test_the_address_owner_comes_back_from_fault_as_active():
    plays(
        TRACKING._replace(priority=255),
        """
        0    reads haproxy 0    -> Initialize
        0    reads link FAULT   -> Initialize
        0    start              -> Fault | Initialize to Fault: start
        100  reads link 0       -> Active until 1100 | send 255, add, announce, \
                                            Fault to Active: link is well again, as the address owner
        """,
    )


def test_what_was_learned_is_forgotten_in_fault():
    plays(
        TRACKING._replace(version=3),
        BACKUP
        + """
        100       hears 200 every 100  -> Backup until 460.937
        200       reads link FAULT     -> Fault | Backup to Fault: link failed
        300       reads link 0         -> Backup until 3909.375 | Fault to Backup: link is well again
        """,
    )


def test_a_router_in_fault_stops_and_forgets_no_reading():
    plays(
        TRACKING,
        BACKUP
        + """
        100       reads link FAULT     -> Fault | Backup to Fault: link failed
        200       stop                 -> Initialize | Fault to Initialize: stop
        300       reads link 0         -> Initialize
        400       start                -> Backup until 4009.375 | Initialize to Backup: start
        """,
    )


def test_a_router_that_waits_for_a_reading_stops_without_a_change():
    plays(
        TRACKING,
        """
        0   start            -> Initialize
        10  stop             -> Initialize
        20  reads haproxy 0  -> Initialize
        30  reads link 0     -> Initialize
        """,
    )


def test_a_weight_changes_the_next_advertisement_and_no_timer():
    plays(
        TRACKING,
        ACTIVE
        + """
        4000      reads haproxy -30  -> Active until 4609.375
        4609.375  timeout            -> Active until 5609.375 | send 70
        4700      hears 80           -> Backup until 8426.562 | send 70, remove, \
                                                Active to Backup: Advertisement with priority 80 from 192.0.2.1
        5000      reads haproxy 20   -> Backup until 8426.562
        5100      hears 119          -> Backup until 8426.562
        5200      hears 120          -> Backup until 8731.25
        """,
    )


DELAYED = router(preempt_delay=2 * machine.SECOND)


def test_the_delay_begins_with_the_first_lower_priority_and_then_the_timer_runs_out():
    plays(
        DELAYED,
        """
        0         start     -> Backup until 3609.375 | Initialize to Backup: start
        3000      hears 99  -> Backup until 6609.375
        4000      hears 99  -> Backup until 7609.375
        4999.999  hears 99  -> Backup until 8609.374
        5000      hears 99  -> Backup until 8609.374
        6000      hears 98  -> Backup until 8609.374
        """,
    )


@pytest.mark.parametrize("priority", [100, 101])
def test_the_delay_ends_with_a_priority_that_is_not_lower(priority):
    plays(
        DELAYED,
        f"""
        0     start             -> Backup until 3609.375 | Initialize to Backup: start
        1000  hears 99          -> Backup until 4609.375
        2000  hears {priority}  -> Backup until 5609.375
        3000  hears 99          -> Backup until 6609.375
        4999  hears 99          -> Backup until 8608.375
        5000  hears 99          -> Backup until 8608.375
        """,
    )


def test_the_delay_does_not_apply_when_the_active_router_is_gone_or_resigns():
    plays(
        DELAYED,
        """
        0         start     -> Backup until 3609.375 | Initialize to Backup: start
        1000      hears 99  -> Backup until 4609.375
        1100      hears 0   -> Backup until 1709.375
        1709.375  timeout   -> Active until 2709.375 | send 100, add, announce, \
                                                       Backup to Active: no Advertisement was heard
        """,
    )


def test_the_delay_begins_anew_in_each_backup_state():
    plays(
        DELAYED,
        """
        0         start      -> Backup until 3609.375 | Initialize to Backup: start
        1000      hears 99   -> Backup until 4609.375
        4609.375  timeout    -> Active until 5609.375 | send 100, add, announce, \
                                                        Backup to Active: no Advertisement was heard
        5000      hears 101  -> Backup until 8609.375 | send 100, remove, \
                                        Active to Backup: Advertisement with priority 101 from 192.0.2.1
        6000      hears 99   -> Backup until 9609.375
        """,
    )


def test_without_preemption_no_delay_ends_the_waiting():
    plays(
        DELAYED._replace(preempt=False),
        """
        0     start     -> Backup until 3609.375 | Initialize to Backup: start
        1000  hears 99  -> Backup until 4609.375
        3500  hears 99  -> Backup until 7109.375
        """,
    )
