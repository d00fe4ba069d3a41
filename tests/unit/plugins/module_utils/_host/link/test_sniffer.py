# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reading packets off the link, without a link. With one: tests/netns/test_vrrp_info.py."""

from __future__ import annotations

import socket
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.link import sniffer
from support.bpf_machine import run
from support.vrrp.packets import A6, GROUP, GROUP6, V2, V3, V6, A, ipv4, ipv6

MAC = bytes.fromhex("020000000001")


def observe(data, protocol=sniffer.IPV4, **more):
    return sniffer.observe(sniffer.Frame(data, protocol, MAC, own=False, **more), "eth0", 1.5)


@pytest.mark.parametrize("message", [V2, V3])
def test_an_advertisement_is_read_from_ipv4(message):
    found = observe(ipv4(message))
    reading = "rfc3768" if message.version == 2 else "rfc5798"
    assert found == (1.5, "eth0", "02:00:00:00:00:01", A, GROUP, message._replace(checksum=reading), False)


def test_an_advertisement_is_read_from_ipv6():
    found = observe(ipv6(), sniffer.IPV6)
    assert (found.source, found.destination, found.message) == (A6, GROUP6, V6._replace(checksum="rfc5798"))


@pytest.mark.parametrize("fragment", [0x2000, 0x0001, 0x1000])
def test_a_fragment_is_counted_and_not_misread(fragment):
    found = observe(ipv4(fragment=fragment))
    assert (found.message.reason, found.source) == ("fragment", A)
    assert observe(ipv4(fragment=0x4000)).message.vrid == 51, "which may not be fragmented, and is not"


@pytest.mark.parametrize("data, protocol", [(ipv4(ttl=254), sniffer.IPV4), (ipv6(hop_limit=1), sniffer.IPV6)])
def test_what_came_from_behind_a_router_is_counted(data, protocol):
    assert observe(data, protocol).message.reason == "hop_limit"


def test_the_hop_limit_of_unicast_is_not_judged():
    """keepalived sends 64 over IPv6 and does not look at it."""
    assert observe(ipv6(hop_limit=64, destination="fe80::2"), sniffer.IPV6).message.vrid == 51
    assert observe(ipv4(V3, ttl=1, destination="192.0.2.2")).message.vrid == 51


def test_what_is_no_vrrp_says_nothing():
    assert observe(ipv4(protocol=17)) is None
    assert observe(ipv4(), sniffer.IPV6) is None
    assert observe(ipv4(), 0x0806) is None


def test_a_message_that_was_cut_is_counted():
    assert observe(ipv4()[:30]).message.reason == "length"
    assert observe(ipv6()[:50], sniffer.IPV6).message.reason == "length"


def auxdata(status, tag):
    return [(263, 8, struct.pack("=IIIHHHH", status, 60, 60, 0, 0, tag, 0x8100))]


@pytest.mark.parametrize(
    "ancillary, vlan",
    [
        ([], 0),
        (auxdata(0x01, 7), 0),
        (auxdata(0x11, 0x6007), 7),
        # A priority tag: no VLAN.
        (auxdata(0x11, 0x6000), 0),
        ([(1, 2, b""), *auxdata(0x11, 7)], 7),
        ([(263, 8, b"\xff" * 8)], 0),
    ],
)
def test_the_tag_that_the_kernel_took_from_a_frame_tells_its_vlan(ancillary, vlan):
    assert sniffer.vlan_of(ancillary) == vlan


def test_what_is_tagged_for_a_vlan_is_not_on_this_link():
    assert observe(ipv4(), vlan=7) is None


@pytest.mark.parametrize(
    "protocol, data, passes",
    [
        (sniffer.IPV4, ipv4(), True),
        (sniffer.IPV6, ipv6(), True),
        (sniffer.IPV4, ipv4(protocol=6), False),
        (sniffer.IPV6, ipv6(following=6), False),
        (sniffer.IPV4, ipv6(), False),
        (sniffer.IPV6, ipv4(protocol=6), False),
        (0x0806, ipv4(), False),
        (0x0806, ipv6(), False),
    ],
)
def test_only_vrrp_gets_through_the_filter(protocol, data, passes):
    assert bool(run(sniffer.VRRP_ONLY, data, protocol)) == passes


class FakeSocket:
    def __init__(self, *messages):
        self.messages, self.timeouts, self.closed = list(messages), [], False

    def settimeout(self, seconds):
        self.timeouts.append(seconds)

    def recvmsg(self, _size, _ancillary):
        if not self.messages:
            raise socket.timeout
        return self.messages.pop(0)

    def close(self):
        self.closed = True


def message(interface="eth0", kind=2, ancillary=()):
    return ipv4(), ancillary, 0, (interface, sniffer.IPV4, kind, 1, MAC)


def test_an_ear_hears_on_its_interfaces_and_knows_its_own_voice():
    fake = FakeSocket(message(), message("eth9"), message("eth1", kind=4), message(ancillary=auxdata(0x11, 7)))
    with sniffer.InterfaceSocket(["eth0", "eth1"], lambda interfaces: fake) as sock:
        assert sock.receive(0.5) == ("eth0", sniffer.Frame(ipv4(), sniffer.IPV4, MAC, False, 0))
        assert sock.receive(0.5) is None
        assert sock.receive(0.5)[1].own
        assert sock.receive(0.5)[1].vlan == 7
        assert sock.receive(0.25) is None
        assert (fake.timeouts[-1], fake.closed) == (0.25, False)
    assert fake.closed


def test_it_listens_until_the_time_is_over_also_where_the_link_is_never_silent():
    times = iter([10.0, 11.0, 11.5, 12.5, 13.6])
    fake = FakeSocket(*[message()] * 9)
    found = sniffer.listen(
        ["eth0"], 3.5, lambda: next(times), lambda names: sniffer.InterfaceSocket(names, lambda _names: fake)
    )
    assert [heard.at for heard in found] == [1.0, 1.5, 2.5, pytest.approx(3.6)]
    assert fake.timeouts == [3.5, 2.5, 2.0, 1.0]
    assert fake.closed


LINKS = {"lo": 0x49, "eth0": 0x1043, "eth1": 0x1002, "eth2": 0x1003}


def choose(wanted, links):
    return sniffer.choose_interfaces(wanted, lambda: list(enumerate(links)), links.get)


def test_without_a_name_every_interface_is_listened_on_that_is_up_but_lo():
    assert choose(None, LINKS) == ["eth0", "eth2"]
    assert choose("eth2", LINKS) == ["eth2"]
    assert choose("lo", LINKS) == ["lo"]


@pytest.mark.parametrize(
    "wanted, links, sentence",
    [
        ("eth9", LINKS, "There is no interface eth9: there are lo, eth0, eth1, eth2."),
        ("eth1", LINKS, "Interface eth1 is down, so nothing can be heard on it: set it up first."),
        ("", {"lo": 0x49, "eth1": 0}, "No interface but lo is up, so nothing can be heard: set one up first."),
    ],
)
def test_where_nothing_can_be_heard_it_says_why(wanted, links, sentence):
    with pytest.raises(sniffer.CannotListen) as refused:
        choose(wanted, links)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 3601])
def test_an_impossible_time_is_refused(seconds):
    with pytest.raises(sniffer.CannotListen) as refused:
        sniffer.collect(None, seconds)
    assert str(refused.value) == f"seconds is {seconds}: a number from 0.1 to 3600 seconds is required."


def test_the_kernel_knows_that_lo_is_a_loopback():
    assert sniffer.flags_of("lo") & sniffer.IFF_LOOPBACK
