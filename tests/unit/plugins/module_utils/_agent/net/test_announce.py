# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Announcing an address, without a network. With one: tests/netns/test_agent_net.py."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import announce, arp, ndisc
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import Link

MAC = bytes.fromhex("525400000001")
ETH0 = Link(2, "eth0", True, MAC)


class Wire:
    def __init__(self):
        self.sent, self.blocking, self.closed = [], True, False

    def setblocking(self, blocking):
        self.blocking = blocking

    def setsockopt(self, *_option):
        pass

    def sendto(self, frame, where):
        assert not self.blocking
        self.sent.append((frame, where))

    def close(self):
        self.closed = True


def announced(link, address, forwarding=()):
    wire = Wire()
    announce.Announcer(lambda: wire, lambda interface: interface in forwarding).announcing(link, address)()
    return wire.sent


def test_ipv4_is_announced_by_gratuitous_arp():
    assert announced(ETH0, "192.0.2.10") == [(arp.arp_frame(MAC, "192.0.2.10", "192.0.2.10"), ("eth0", 0))]


def test_ipv6_is_announced_by_an_unsolicited_advertisement():
    assert announced(ETH0, "2001:db8::10", ["eth1"]) == [(ndisc.advert_frame("2001:db8::10", MAC), ("eth0", 0))]


def test_a_router_says_that_it_is_one():
    expected = ndisc.advert_frame("2001:db8::10", MAC, router=True)
    assert announced(ETH0, "2001:db8::10", ["eth0"]) == [(expected, ("eth0", 0))]


@pytest.mark.parametrize("mac", [b"", bytes(20)])
def test_on_what_is_no_ethernet_nothing_can_be_announced(mac):
    with pytest.raises(OSError) as refused:
        announced(ETH0._replace(mac=mac), "192.0.2.10")
    assert refused.value.errno == errno.EOPNOTSUPP


@pytest.mark.parametrize(
    "address, frame",
    [
        ("192.0.2.2", arp.arp_frame(MAC, "0.0.0.0", "192.0.2.2")),
        ("2001:db8::2", ndisc.solicitation_frame("2001:db8::2", MAC, "2001:db8::1")),
    ],
)
def test_it_asks_for_the_mac_of_a_host(address, frame):
    wire = Wire()
    announce.Announcer(lambda: wire).ask(ETH0, "2001:db8::1", address)
    assert wire.sent == [(frame, ("eth0", 0))]


def test_on_what_is_no_ethernet_nobody_can_be_asked():
    with pytest.raises(OSError) as refused:
        announce.Announcer(Wire).ask(ETH0._replace(mac=b""), "192.0.2.1", "192.0.2.2")
    assert refused.value.errno == errno.EOPNOTSUPP


def test_an_interface_that_is_gone_forwards_nothing():
    assert announce.forwards("there-is-none") is False


def test_it_is_closed():
    wire = Wire()
    announce.Announcer(lambda: wire).close()
    assert wire.closed
