# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import arp, linux, ndisc
from ansible_collections.onprem.lb.plugins.module_utils._host.link import neighbours

MAC = bytes.fromhex("525400000001")
OTHER = "52:54:00:00:00:02"


@pytest.mark.parametrize(
    ("route", "interface", "why", "router"),
    [
        ([{"dst": "192.0.2.1", "dev": "eth0", "flags": []}], "eth0", "", ""),
        ([{"dst": "192.0.2.1", "dev": "eth0", "gateway": "10.0.0.1"}], "", "behind the router 10.0.0.1", "10.0.0.1"),
        ([{"dst": "192.0.2.1", "dev": "eth0", "via": {"host": "fe80::1"}}], "", "behind the router fe80::1", "fe80::1"),
        ([{"type": "local", "dst": "192.0.2.1", "dev": "lo"}], "", "holds the address itself", ""),
        ([], "", "no route", ""),
    ],
)
def test_only_who_is_on_the_link_can_be_asked(route, interface, why, router):
    link = neighbours.link_to(json.dumps(route))
    assert (link.interface, link.router) == (interface, router)
    assert why in link.reason


def test_a_route_that_cannot_be_read_is_no_route():
    assert "no route" in neighbours.link_to("RTNETLINK answers: Network is unreachable").reason


class Wire:
    """A raw socket without a network."""

    def __init__(self, arriving=()):
        self.arriving, self.sent, self.closed = list(arriving), [], False

    def send(self, frame):
        self.sent.append(frame)

    def sendto(self, message, where):
        self.sent.append((message, where))

    def recvfrom(self, _size):
        if not self.arriving:
            raise BlockingIOError(errno.EAGAIN, "nothing there")
        return self.arriving.pop(0)

    def recvmsg(self, _size, _ancillary):
        return self.recvfrom(0)

    def close(self):
        self.closed = True


def prober(wire, version=4):
    return neighbours.NeighbourProber("eth0", version, opener=lambda _interface, _version: wire, mac_of=lambda _i: MAC)


def test_the_asker_does_not_hear_itself():
    frame = arp.arp_frame(MAC, "192.0.2.1", "192.0.2.1")
    theirs = arp.arp_frame(arp.mac_bytes(OTHER), "192.0.2.1", "0.0.0.0", arp.ARP_REPLY)
    wire = Wire([(frame, ("eth0", 0x806, linux.PACKET_OUTGOING)), (theirs, ("eth0", 0x806, 0))])
    assert prober(wire).replies() == [("192.0.2.1", OTHER)]


def test_the_ipv6_asker_asks_the_solicited_node_group_and_reads_the_hop_limit():
    message = ndisc.advert("2001:db8::1", arp.mac_bytes(OTHER))
    hops = [(41, 52, struct.pack("=i", 255))]
    wire = Wire([(message, hops, 0, None), (message, [], 0, None)])
    six = prober(wire, 6)
    six.probe("2001:db8::1")
    assert wire.sent[0][1] == ("ff02::1:ff00:1", 0)
    assert six.replies() == [("2001:db8::1", OTHER)]


class Link:
    """What ``holders_on_link`` needs of the world: probers whose answers arrive at set times, and the clock."""

    def __init__(self, answers):
        self.now, self.answers, self.asked, self.closed = 100.0, sorted(answers), [], 0

    def clock(self):
        return self.now

    def wait(self, _askers, seconds):
        first = min([at for at, *_rest in self.answers], default=1e9)
        self.now += max(0.0, min(seconds, first - self.now))

    def factory(self, interface, version):
        link = self

        class Asker:
            def probe(self, address):
                link.asked.append((link.now, interface, version, address))

            def replies(self):
                due = [a for a in link.answers if a[0] <= link.now and a[1] == interface]
                link.answers = [a for a in link.answers if a not in due]
                return [(address, mac) for _at, _interface, address, mac in due]

            def close(self):
                link.closed += 1

        return Asker()

    def answering(self, wanted, wait_s=1.0, **more):
        return neighbours.holders_on_link(wanted, wait_s, self.clock, self.factory, self.wait, **more)


def test_both_of_two_holders_are_seen_however_late_the_second_answers():
    one, two = "02:00:00:00:00:01", "02:00:00:00:00:02"
    link = Link([(100.1, "eth0", "192.0.2.1", two), (100.99, "eth0", "192.0.2.1", one)])
    assert link.answering({"eth0": ["192.0.2.1"]}) == {"192.0.2.1": [one, two]}
    assert link.now == pytest.approx(101.0)


def test_every_address_is_asked_for_twice_in_its_own_family_and_the_sockets_are_closed():
    link = Link([])
    found = link.answering({"eth0": ["192.0.2.1", "2001:DB8::1"], "eth1": ["198.51.100.1"]})
    assert found == {"192.0.2.1": [], "2001:DB8::1": [], "198.51.100.1": []}
    first = [probe[1:] for probe in link.asked[:3]]
    assert first == [("eth0", 4, "192.0.2.1"), ("eth0", 6, "2001:db8::1"), ("eth1", 4, "198.51.100.1")]
    assert [probe[1:] for probe in link.asked[3:]] == first
    assert link.asked[3][0] == pytest.approx(100.5)
    assert link.closed == 3


def test_an_answer_counts_only_for_what_was_asked_on_that_interface():
    link = Link([(100.1, "eth1", "192.0.2.1", OTHER), (100.2, "eth0", "192.0.2.9", OTHER)])
    wanted = {"eth0": ["192.0.2.1"], "eth1": ["198.51.100.1"]}
    assert link.answering(wanted) == {"192.0.2.1": [], "198.51.100.1": []}


def test_the_sockets_are_closed_when_one_cannot_be_opened():
    link = Link([])
    good = link.factory

    def factory(interface, version):
        if version == 6:
            raise PermissionError(errno.EPERM, "not permitted")
        return good(interface, version)

    link.factory = factory
    with pytest.raises(PermissionError):
        link.answering({"eth0": ["192.0.2.1", "2001:db8::1"]})
    assert link.closed == 1
