# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gratuitous ARP and unsolicited neighbour advertisements: when, how often, and those that do not fit."""

from __future__ import annotations

import errno

import pytest
from support.vrrp.fakes import DOWN_INTERVAL, FRONT, OTHER, SECOND, VIP, Host

SECOND_VIP = "192.0.2.11"
TWO = FRONT._replace(addresses=(f"{VIP}/32", f"{SECOND_VIP}/24"))
ANNOUNCE = f"announce {VIP} on eth0"


@pytest.fixture
def host():
    return Host()


def moments(host, seconds, step=0.01):
    """When, in seconds from now, the address was announced, and how often."""
    found, began = {}, host.loop.now()
    for _step in range(round(seconds / step)):
        host.let(step)
        count = sum(line == ANNOUNCE for line in host.journal)
        host.journal.clear()
        if count:
            found[round((host.loop.now() - began) / SECOND, 2)] = count
    return found


def test_addresses_are_announced_five_times_at_once_and_after_five_seconds_as_keepalived_does_it(host):
    host.start(FRONT._replace(announce_again=0))
    assert moments(host, 70) == {3.61: 5, 8.61: 5}


def test_they_are_announced_again_now_and_then(host):
    host.start(FRONT._replace(announce_again=60 * SECOND))
    assert moments(host, 130) == {3.61: 5, 8.61: 5, 68.61: 1, 128.61: 1}


def test_each_address_is_announced_before_any_of_them_again(host):
    host.start(TWO)
    host.let(DOWN_INTERVAL)
    announced = [line for line in host.acts() if line.startswith("announce")]
    assert announced == [ANNOUNCE, f"announce {SECOND_VIP} on eth0"] * 5


def test_a_router_that_is_no_longer_active_announces_nothing(host):
    host.start()
    host.let(DOWN_INTERVAL)
    host.hears(200)
    host.done()
    for _second in range(70):
        host.hears(200)
        host.let(1)
    assert host.done() == []


def test_a_router_that_is_active_again_does_not_announce_twice_as_often(host):
    host.start(FRONT._replace(announce_again=60 * SECOND))
    host.let(DOWN_INTERVAL)
    host.hears(200)
    host.done()
    assert moments(host, 70) == {3.61: 5, 8.61: 5, 68.61: 1}


def test_a_worse_router_that_believes_to_be_active_makes_it_announce_again_at_once(host):
    host.start().activate()
    host.hears(50)
    assert host.acts() == [f"send 100 to {OTHER}", f"{ANNOUNCE} x5"]


def test_a_worse_router_that_takes_over_in_the_same_moment_does_not_have_the_last_word(host):
    """It announces the addresses after its first message, and sends another one when it has given up."""
    host.start()
    host.let(DOWN_INTERVAL)
    host.hears(50)
    host.done()
    host.hears(50)
    assert host.acts() == [f"send 100 to {OTHER}", f"{ANNOUNCE} x5"]


def test_a_flood_of_a_worse_routers_messages_becomes_no_flood_of_announcements(host):
    host.start().activate()
    for _count in range(1000):
        host.hears(50)
        host.let(0.001)
    announced = [line for line in host.journal if line == ANNOUNCE]
    assert len(announced) == 5 * (3 + 10)  # three at once, and then at 0.1, 0.2, ... 1 s
    assert host.journal.count(f"send 100 to {OTHER}") >= 1000  # RFC 9568 section 6.4.3
    host.hears(50)
    host.done()
    assert moments(host, 6) == {0.1: 5, 5.1: 5}, "the last word about the addresses is the winner's"


def test_a_router_that_lost_and_won_within_a_moment_announces_at_once(host):
    host.start(FRONT._replace(version=3, interval=SECOND // 100))
    host.let(0.05)
    host.hears(200, of=FRONT._replace(version=3, interval=SECOND // 100))
    host.done()
    host.let(0.04)
    assert f"{ANNOUNCE} x5" in host.done()


def test_addresses_that_cannot_be_announced_are_logged_once_and_tried_again(host):
    host.network.mute = errno.ENETDOWN
    host.start()
    host.let(DOWN_INTERVAL + 6)
    assert host.state == "Active"
    assert [line for line in host.says() if "announced" in line] == [
        "front: its addresses cannot be announced: Network is down"
    ]
    host.network.mute = None
    host.let(60)
    assert host.says() == ["front: its addresses could be announced"]


def test_another_mac_of_the_interface_is_announced_at_once(host):
    """Otherwise other hosts send to the old one until their entries expire."""
    host.start().activate()
    host.netlink.link("eth0", 2, mac=b"\2" * 6)
    host.let()
    assert host.done() == [
        "says front: interface eth0 has another MAC: the addresses are announced again",
        f"{ANNOUNCE} x5",
    ]


def test_another_mac_of_a_backup_is_announced_by_nobody(host):
    host.start()
    host.done()
    host.netlink.link("eth0", 2, mac=b"\2" * 6)
    host.let()
    assert host.done() == []


def test_announcements_that_do_not_fit_into_the_queue_follow_as_soon_as_it_has_room(host):
    many = FRONT._replace(addresses=tuple(f"10.0.0.{number}/32" for number in range(200)))
    host.start(many)
    host.network.room = 100
    host.let(DOWN_INTERVAL)
    sent = 0
    for _count in range(12):
        sent += sum(line.startswith("announce") for line in host.journal)
        host.journal.clear()
        host.network.room = 100
        host.let(0.01)
    assert sent == 5 * 200
    assert host.state == "Active"


def test_a_queue_that_stays_full_is_logged_and_the_next_burst_tries_again(host):
    host.network.room = 3
    host.start(FRONT._replace(announce_again=0))
    host.let(DOWN_INTERVAL + 4.9)
    assert "front: its addresses cannot be announced: Resource temporarily unavailable" not in host.says()
    host.let(0.2)
    assert host.says() == ["front: its addresses cannot be announced: Resource temporarily unavailable"]
    host.network.room = 100
    host.let(0.1)
    assert host.done() == [f"{ANNOUNCE} x5", "says front: its addresses could be announced"]


def test_a_router_that_yields_announces_no_rest(host):
    host.network.room = 2
    host.start()
    host.let(DOWN_INTERVAL)
    host.hears(200)
    host.done()
    host.network.room = 100
    host.hears(200)
    host.let(1)
    assert host.acts() == []
