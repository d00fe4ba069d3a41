# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the MACs of the servers come from, with a kernel that the test plays."""

from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.macs import KNOWN_INTERVAL, UNKNOWN_INTERVAL, Macs
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.neighbour_table import Neighbour
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import (
    Address,
    AddressGone,
    AddressUpdated,
    Link,
    LinkGone,
    LinkUpdated,
    Lost,
    NeighbourKnown,
)
from support.agent.loops import Time

A, B = "192.0.2.1", "2001:db8::2"
MAC_A, MAC_B, OWN = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:99"
ETH0 = Link(2, "eth0", True, bytes.fromhex(OWN.replace(":", "")))


class Case(Time):
    """A loop, a log and a kernel."""

    def __init__(self):
        super().__init__()
        self.present, self.here, self.table = [Link(1, "lo", True, bytes(6)), ETH0], [], []
        self.asked, self.changes, self.log, self.pending, self.ready = [], [], Counter(), [], None
        self.macs = Macs(self, self, self, self.changes.append)

    # the loop

    def watch(self, _descriptor, callback):
        self.ready = callback

    # the kernel

    def fileno(self):
        return 7

    def follow_neighbours(self):
        self.log["followed"] += 1

    def links(self):
        return self.present

    def addresses(self):
        return self.here

    def neighbours(self):
        return self.table

    def ask(self, index, address):
        self.asked.append((index, address))
        if address == "192.0.2.66":
            raise OSError(100, "Network is down")

    def events(self):
        found, self.pending = self.pending, []
        return found

    def happens(self, *events):
        self.pending += events
        self.ready(1)

    # the log

    def warning(self, text):
        self.log[text] += 1


@pytest.fixture
def case():
    found = Case()
    found.macs.want("eth0", [A, B])
    return found


def known(address, mac, index=2):
    return NeighbourKnown(Neighbour(index, address, mac))


def test_what_the_kernel_knows_already_is_taken_from_its_table():
    case = Case()
    case.table = [Neighbour(2, A, MAC_A), Neighbour(3, B, MAC_B), Neighbour(2, "192.0.2.77", MAC_B)]
    case.macs.want("eth0", [A, B])
    assert (case.macs.known, case.macs.unknown) == ({A: MAC_A}, [B])


def test_what_it_does_not_know_it_is_made_to_ask_for_until_it_does(case):
    assert case.asked == [(2, A), (2, B)]
    case.happens(known(A, MAC_A))
    case.advance(UNKNOWN_INTERVAL)
    assert len(case.asked) == 4
    case.happens(known(B, MAC_B))
    case.asked.clear()
    case.advance(UNKNOWN_INTERVAL)  # it was asked for before
    case.asked.clear()
    case.advance(KNOWN_INTERVAL - 1)
    assert case.asked == []
    case.advance(1)
    assert case.asked == [(2, A), (2, B)], "another host may have the address by now"


def test_a_mac_that_changes_is_told_and_logged_and_one_that_stays_is_neither(case):
    case.happens(known(A, MAC_A))
    case.happens(known(A, MAC_A), known(A, MAC_B, index=3), known("192.0.2.77", MAC_B))
    assert case.changes == [False] and case.macs.known == {A: MAC_A}
    case.happens(known(A, MAC_B))
    assert case.changes == [False, False] and case.macs.known == {A: MAC_B}
    assert case.log[f"{A} has the MAC address {MAC_B} now, and had {MAC_A}."] == 1


def test_an_address_of_this_host_has_the_links_own_mac(case):
    case.happens(AddressUpdated(Address(1, A, 32, True)))
    assert case.macs.known == {A: OWN}
    case.happens(AddressGone(Address(1, A, 32, True)))
    assert case.macs.known == {} and case.changes == [False, False]


def test_another_link_of_the_name_is_told_and_the_macs_stay(case):
    case.happens(known(A, MAC_A))
    case.happens(LinkGone(ETH0))
    assert case.changes[-1] is True and case.macs.link is None
    case.asked.clear()
    case.happens(LinkUpdated(ETH0._replace(index=5)))
    assert case.changes[-1] is True and case.macs.known == {A: MAC_A}
    assert case.asked == [(5, A), (5, B)]


def test_a_carrier_that_goes_is_no_other_link(case):
    case.happens(LinkUpdated(ETH0._replace(up=False)), LinkUpdated(ETH0._replace(index=9, name="eth1")))
    assert case.changes == []


def test_lost_events_are_made_up_for_by_reading_all(case):
    case.table = [Neighbour(2, A, MAC_A)]
    case.happens(Lost())
    assert case.macs.known == {A: MAC_A} and case.changes == [False]


def test_another_interface_has_other_macs(case):
    case.happens(known(A, MAC_A))
    case.present = [ETH0._replace(index=3, name="eth1")]
    case.macs.want("eth1", [A, B])
    assert case.macs.known == {}


def test_a_question_that_is_refused_does_not_keep_others_back():
    case = Case()
    case.macs.want("eth0", ["192.0.2.66", "192.0.2.7"])
    assert case.asked == [(2, "192.0.2.66"), (2, "192.0.2.7")]
