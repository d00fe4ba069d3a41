# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sync group: Active together or not at all."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, sync_group, tracking
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.machine import ACTIVE, BACKUP, FAULT, SECOND
from support.vrrp.transcripts import event, hears, name, router


class Group:
    """Members and their clock."""

    def __init__(self, *routers):
        self.routers = routers
        self.states = [machine.State() for _router in routers]
        self.effects = []
        for at in range(len(routers)):
            self(at, "start")

    def __call__(self, at, words, now=0):
        what = event(words) if isinstance(words, str) else words
        self.states, effects = sync_group.step(self.routers, self.states, at, what, now)
        self.effects = [(member, name(effect)) for member, effect in effects]
        return self.names

    @property
    def names(self):
        return [state.name for state in self.states]


def pair():
    return Group(router(), router(priority=200))


def three():
    return Group(router(), router(), router())


def active():
    members = pair()
    members(1, "timeout", 4 * SECOND)
    assert members(0, "timeout", 4 * SECOND) == [ACTIVE, ACTIVE]
    return members


def test_the_first_whose_wait_is_over_waits_for_the_other_one():
    members = pair()
    assert members(1, "timeout", 4 * SECOND) == [BACKUP, BACKUP]
    assert members.effects == []
    assert members.states[1].wants_active
    assert members.states[1].deadline == 7 * SECOND + machine.skew_time(members.routers[1], members.states[1])
    assert not members.states[0].wants_active


def test_the_last_whose_wait_is_over_takes_all_of_them_along_and_goes_first():
    members = three()
    members(2, "timeout", 4 * SECOND)
    assert members(0, "timeout", 4 * SECOND) == [BACKUP, BACKUP, BACKUP]
    assert members(1, "timeout", 5 * SECOND) == [ACTIVE, ACTIVE, ACTIVE]
    promoted = ["send 100", "add", "announce"]
    alone, along = "no Advertisement was heard", "its sync group becomes Active"
    assert members.effects == [
        *((1, each) for each in [*promoted, f"Backup to Active: {alone}"]),
        *((0, each) for each in [*promoted, f"Backup to Active: {along}"]),
        *((2, each) for each in [*promoted, f"Backup to Active: {along}"]),
    ]
    assert not any(state.wants_active for state in members.states)


def test_a_wait_is_over_only_when_the_clock_says_so():
    members = pair()
    deadline = members.states[0].deadline
    members(0, "timeout", deadline - 1)
    assert (members.states[0].wants_active, members.states[0].deadline) == (False, deadline)
    members(0, "timeout", deadline)
    assert members.states[0].wants_active


def test_a_member_without_a_timer_does_not_wait():
    members = pair()
    members.states[0] = members.states[0]._replace(deadline=None)
    members(0, "timeout", 4 * SECOND)
    assert not members.states[0].wants_active


def test_an_advertisement_that_counts_ends_the_waiting_for_the_others():
    members = pair()
    members(0, "timeout", 4 * SECOND)
    members(0, "hears 100", 4 * SECOND)
    assert not members.states[0].wants_active
    assert members(1, "timeout", 4 * SECOND) == [BACKUP, BACKUP]


def test_an_advertisement_counts_though_the_wait_is_over_when_the_timer_has_not_yet_said_so():
    members = pair()
    members(0, "hears 100", 4 * SECOND)
    assert members.states[0].deadline == 4 * SECOND + 3_609_375
    assert not members.states[0].wants_active


def test_an_advertisement_that_is_discarded_ends_no_waiting():
    members = pair()
    members(0, "timeout", 4 * SECOND)
    members(0, "hears 99", 4 * SECOND)
    assert members(1, "timeout", 4 * SECOND) == [ACTIVE, ACTIVE]


def test_active_members_advertise_each_at_its_own_time():
    members = active()
    assert members(1, "timeout", 5 * SECOND) == [ACTIVE, ACTIVE]
    assert members.effects == [(1, "send 200")]


def test_a_member_that_keeps_its_state_moves_no_other():
    members = active()
    members.states[0] = members.states[0]._replace(name=BACKUP)
    assert members(1, "timeout", 5 * SECOND) == [BACKUP, ACTIVE]
    assert members(0, "hears 200", 5 * SECOND) == [BACKUP, ACTIVE]


def test_no_member_waits_for_one_that_is_active_already():
    members = pair()
    members.states[1] = members.states[1]._replace(name=ACTIVE)
    assert members(0, "timeout", 4 * SECOND) == [ACTIVE, ACTIVE]


def test_one_that_yields_takes_all_of_them_along():
    members = active()
    assert members(1, "hears 201", 5 * SECOND) == [BACKUP, BACKUP]
    assert members.effects == [
        (1, "send 200"),
        (1, "remove"),
        (1, "Active to Backup: Advertisement with priority 201 from 192.0.2.1"),
        (0, "remove"),
        (0, "Active to Backup: its sync group becomes Backup"),
    ]


def test_one_in_fault_takes_all_of_them_there_and_each_active_one_gives_up():
    members = active()
    assert members(0, "reads haproxy FAULT", 5 * SECOND) == [FAULT, FAULT]
    assert members.effects == [
        *((0, each) for each in ["send 0", "remove", "Active to Fault: haproxy failed"]),
        *((1, each) for each in ["send 0", "remove", "Active to Fault: the sync group failed"]),
    ]
    assert members.states[1].readings == {sync_group.GROUP: tracking.FAULT}
    assert members.states[0].readings == {"haproxy": tracking.FAULT}


def test_they_leave_fault_together():
    members = pair()
    assert members(0, "reads haproxy FAULT", SECOND) == [FAULT, FAULT]
    assert members(1, "reads link FAULT", SECOND) == [FAULT, FAULT]
    assert members(0, "reads haproxy 0", SECOND) == [FAULT, FAULT]
    assert members(1, "reads link 0", 2 * SECOND) == [BACKUP, BACKUP]
    assert members.effects == [
        (1, "Fault to Backup: link is well again"),
        (0, "Fault to Backup: the sync group is well again"),
    ]


def test_each_of_three_must_be_well():
    members = three()
    members(0, "reads haproxy FAULT")
    assert members(2, "reads haproxy FAULT") == [FAULT, FAULT, FAULT]
    assert members(0, "reads haproxy 0") == [FAULT, FAULT, FAULT]
    assert members(2, "reads haproxy 0") == [BACKUP, BACKUP, BACKUP]


def test_a_member_without_all_readings_holds_the_others_back():
    members = Group(router(), router(tracked=frozenset({"haproxy"})))
    assert members(0, "timeout", 4 * SECOND) == [BACKUP, machine.INITIALIZE]
    assert members.states[0].wants_active


def test_address_owners_come_back_from_fault_together():
    members = Group(router(priority=255), router(priority=255))
    assert members.names == [ACTIVE, ACTIVE]
    members(0, "reads haproxy FAULT", SECOND)
    assert members(0, "reads haproxy 0", SECOND) == [ACTIVE, ACTIVE]


def test_a_stop_concerns_one_member_and_ends_its_waiting():
    members = pair()
    members(0, "timeout", 4 * SECOND)
    assert members(0, "stop", 4 * SECOND) == [machine.INITIALIZE, BACKUP]
    assert members(1, "timeout", 4 * SECOND) == [machine.INITIALIZE, BACKUP]


def test_a_step_leaves_the_states_it_began_with_as_they_were():
    members = pair()
    before = list(members.states)
    sync_group.step(members.routers, members.states, 0, machine.TrackerUpdate("haproxy", tracking.FAULT), SECOND)
    sync_group.step(members.routers, members.states, 1, hears(0), SECOND)
    assert members.states == before
