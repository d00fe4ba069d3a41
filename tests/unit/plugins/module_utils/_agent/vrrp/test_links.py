# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of the host's interfaces, and from where a Virtual Router sends."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import (
    Address,
    AddressGone,
    AddressUpdated,
    Link,
    LinkGone,
    LinkUpdated,
    Lost,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.links import Egress, Links
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import VirtualAddress

ETH0, ETH1 = Link(2, "eth0", True, b"\0" * 6), Link(3, "eth1", False, b"\1" * 6)


def address(text, index=2, prefix=24, usable=True):
    return Address(index, text, prefix, usable)


FIRST, SECOND, ELSEWHERE = address("192.0.2.1"), address("192.0.2.7"), address("198.51.100.1", 3)
LINK_LOCAL, GLOBAL = address("fe80::1", prefix=64), address("2001:db8::1", prefix=64)


@pytest.fixture
def links():
    found = Links()
    found.learn([ETH0, ETH1], [GLOBAL, FIRST, SECOND, ELSEWHERE, LINK_LOCAL])
    return found


def held(links, interface, *addresses):
    return [found.address for found in links.held(VirtualAddress(each, interface) for each in addresses)]


def place(links, interface="eth0", family=4, wanted=None, floating=()):
    return links.egress(interface, family, wanted, set(floating))


def test_a_router_sends_from_the_first_address_of_its_interface(links):
    assert place(links) == Egress(ETH0, "192.0.2.1")
    assert place(links, "eth1") == Egress(ETH1, "198.51.100.1")


def test_with_ipv6_it_sends_from_the_link_local_address(links):
    assert place(links, family=6) == Egress(ETH0, "fe80::1")
    links.update(AddressGone(LINK_LOCAL))
    assert place(links, family=6) == Egress(ETH0, None)


def test_it_never_sends_from_a_virtual_address(links):
    assert place(links, floating=["192.0.2.1"]).source == "192.0.2.7"
    assert place(links, floating=["192.0.2.1", "192.0.2.7"]) == Egress(ETH0, None)
    assert place(links, family=6, floating=["fe80::1"]) == Egress(ETH0, None)


def test_it_never_sends_from_an_address_that_is_still_checked_for_duplicates(links):
    links.update(AddressUpdated(LINK_LOCAL._replace(usable=False)))
    assert place(links, family=6).source is None
    assert place(links, family=6, wanted="fe80::1").source is None
    links.update(AddressUpdated(LINK_LOCAL))
    assert place(links, family=6).source == "fe80::1"


@pytest.mark.parametrize(
    "wanted, source", [("192.0.2.7", "192.0.2.7"), ("198.51.100.1", "198.51.100.1"), ("9.9.9.9", None)]
)
def test_a_source_that_is_named_may_be_on_any_interface_but_must_be_there(links, wanted, source):
    assert place(links, wanted=wanted) == Egress(ETH0, source)


def test_where_there_is_no_interface_there_is_no_source(links):
    assert place(links, "eth9") == Egress()
    assert place(links, "eth9", wanted="192.0.2.1") == Egress()


def test_an_address_that_is_reported_again_keeps_its_turn(links):
    links.update(AddressUpdated(FIRST))
    assert place(links).source == "192.0.2.1"


def test_the_next_address_takes_the_place_of_one_that_is_gone(links):
    links.update(AddressGone(FIRST))
    assert place(links).source == "192.0.2.7"
    links.update(AddressUpdated(FIRST))
    assert place(links).source == "192.0.2.7"


def test_a_place_is_up_when_its_link_is(links):
    assert place(links).up
    assert not place(links, "eth1").up
    assert not place(links, "eth9").up
    links.update(LinkUpdated(ETH1._replace(up=True)))
    assert place(links, "eth1").up


def test_an_interface_is_found_by_the_name_that_it_has_now(links):
    links.update(LinkUpdated(ETH0._replace(name="lan")))
    assert links.named("eth0") is None
    assert place(links, "lan") == Egress(ETH0._replace(name="lan"), "192.0.2.1")


def test_an_interface_that_takes_over_a_name_has_its_own_addresses(links):
    links.update(LinkUpdated(ETH0._replace(name="lan")))
    links.update(LinkUpdated(ETH1._replace(name="eth0")))
    assert place(links) == Egress(ETH1._replace(name="eth0"), "198.51.100.1")


def test_an_interface_that_is_gone_has_taken_its_addresses_along(links):
    links.update(LinkGone(ETH0))
    links.update(LinkUpdated(ETH0))
    assert place(links) == Egress(ETH0, None)
    assert place(links, wanted="198.51.100.1").source == "198.51.100.1"


def test_what_is_gone_twice_is_gone(links):
    for _count in range(2):
        links.update(LinkGone(ETH1))
        links.update(AddressGone(SECOND))
    assert links.named("eth1") is None


def test_an_address_is_held_on_its_interface_with_the_prefix_length_that_it_has_there(links):
    links.update(AddressUpdated(address("192.0.2.10", prefix=32)))
    assert held(links, "eth0", "192.0.2.10/32", "192.0.2.1/24", "192.0.2.11/32") == ["192.0.2.10/32", "192.0.2.1/24"]
    assert held(links, "eth0", "192.0.2.10/24") == ["192.0.2.10/32"]
    assert held(links, "eth1", "192.0.2.10/32") == []
    assert held(links, "eth9", "192.0.2.10/32") == []


def test_an_address_may_be_there_with_two_prefix_lengths(links):
    links.update(AddressUpdated(address("192.0.2.1", prefix=32)))
    assert held(links, "eth0", "192.0.2.1/32", "192.0.2.1/24") == ["192.0.2.1/24", "192.0.2.1/32"]
    links.update(AddressGone(FIRST))
    assert held(links, "eth0", "192.0.2.1/24") == ["192.0.2.1/32"]
    links.update(AddressUpdated(FIRST))
    links.update(AddressGone(address("192.0.2.1", prefix=32)))
    assert held(links, "eth0", "192.0.2.1/32", "192.0.2.1/24") == ["192.0.2.1/24"]


def test_an_address_is_usable_with_its_prefix_length_after_duplicate_detection(links):
    assert links.usable(2, "192.0.2.1/24")
    assert not links.usable(2, "192.0.2.1/32")
    assert not links.usable(3, "192.0.2.1/24")
    links.update(AddressUpdated(GLOBAL._replace(usable=False)))
    assert not links.usable(2, "2001:db8::1/64")


def test_what_is_learnt_anew_replaces_all_that_was_known(links):
    links.learn([ETH1], [])
    assert links.named("eth0") is None
    assert place(links, "eth1") == Egress(ETH1, None)


def test_that_events_were_lost_says_nothing_of_what_is_there(links):
    links.update(Lost())
    assert place(links) == Egress(ETH0, "192.0.2.1")


@pytest.mark.parametrize(
    "before, now, same",
    [
        (Egress(), Egress(ETH0), True),
        (Egress(), Egress(), True),
        (Egress(ETH0), Egress(ETH0._replace(up=False)), True),
        (Egress(ETH0), Egress(ETH0._replace(index=9)), False),
        (Egress(ETH0), Egress(), False),
    ],
)
def test_a_place_follows_another_one_on_the_same_interface(before, now, same):
    assert now.follows(before) == same


def test_one_address_with_two_prefix_lengths_is_two(links):
    links.update(AddressUpdated(address("192.0.2.1", prefix=32)))
    links.update(AddressGone(address("192.0.2.1", prefix=32)))
    assert held(links, "eth0", "192.0.2.1/24", "192.0.2.1/32") == ["192.0.2.1/24"]
    assert place(links) == Egress(ETH0, "192.0.2.1")
