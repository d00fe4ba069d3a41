# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel's links and addresses, without a kernel. With one: tests/netns/test_agent_net.py."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import messages, netlink
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.messages import Message
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import (
    Address,
    AddressGone,
    AddressUpdated,
    Link,
    LinkGone,
    LinkUpdated,
    Lost,
)
from hypothesis import given
from hypothesis import strategies as st

MAC = bytes.fromhex("525400000001")
ETH0 = Link(2, "eth0", True, MAC)
VIP = Address(2, "192.0.2.10", 32, usable=True)
UP, RUNNING, MULTICAST = 0x01, 0x40, 0x1000
FAR_END = socket.inet_aton("198.51.100.1")


def same(events, expected):
    """As tuples a link that is gone and one that is here are equal."""
    return [(type(event), event) for event in events] == [(type(event), event) for event in expected]


def link_body(flags=UP | RUNNING | MULTICAST, family=0, attrs=((3, b"eth0\0"), (1, MAC))):
    return struct.pack("=BxHiII", family, 1, 2, flags, 0) + b"".join(itertools.starmap(messages.attribute, attrs))


def address_body(address="192.0.2.10", prefix=32, flags=0, attrs=None):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    attrs = attrs if attrs is not None else ((1, packed),)
    return struct.pack("=BBBBI", family, prefix, flags, 0, 2) + b"".join(itertools.starmap(messages.attribute, attrs))


@pytest.mark.parametrize("flags, up", [(UP | RUNNING, True), (UP, False), (RUNNING, False), (0, False)])
def test_a_link_is_up_when_it_is_set_up_and_has_a_carrier(flags, up):
    assert netlink.link_in(link_body(flags | MULTICAST)) == ETH0._replace(up=up)


def test_what_a_bridge_tells_of_its_port_is_not_about_the_link():
    """What it would tell last is that the port is removed: from the bridge."""
    assert netlink.link_in(link_body(family=socket.AF_BRIDGE)) is None


def test_a_wireless_event_does_not_describe_the_link():
    assert netlink.link_in(link_body(attrs=((3, b"wlan0\0"), (11, b"scan")))) is None


def test_a_link_without_an_ethernet_address_or_with_a_strange_name_is_read():
    assert netlink.link_in(link_body(attrs=((3, b"tun\xff\0"),))) == Link(2, "tun\\xff", True, b"")


@pytest.mark.parametrize(
    "flags, usable",
    [
        (0x80, True),
        (0x81, True),
        (0xA2, True),
        (0xC0, False),
        (0xC8, False),
        (0x88, False),
    ],
)
def test_the_state_of_an_address_is_read_from_its_flags(flags, usable):
    expected = Address(2, "2001:db8::10", 64, usable)
    packed = socket.inet_pton(socket.AF_INET6, "2001:db8::10")
    assert netlink.address_in(address_body("2001:db8::10", 64, flags)) == expected
    # Where there are all of them the byte does not count.
    attrs = ((1, packed), (8, struct.pack("=I", 0x100 | flags)))
    assert netlink.address_in(address_body("2001:db8::10", 64, 0xFF, attrs)) == expected


def test_the_near_end_of_a_point_to_point_link_is_its_address():
    attrs = ((1, FAR_END), (2, socket.inet_aton("192.0.2.10")))
    assert netlink.address_in(address_body(attrs=attrs)) == VIP


@pytest.mark.parametrize("attrs", [(), ((1, b""),), ((1, FAR_END + b"\0"),), ((8, b"\0" * 4),)])
def test_an_address_that_makes_no_sense_is_nothing(attrs):
    assert netlink.address_in(address_body(attrs=attrs)) is None


def test_an_address_of_another_family_is_nothing():
    assert netlink.address_in(b"\x11" + address_body()[1:]) is None


def datagram(*kinds_and_bodies, flags=0, serial=0):
    found = b""
    for kind, body in kinds_and_bodies:
        found += messages.encode(Message(kind, flags, serial, body))
        found += b"\0" * (-len(found) % 4)
    return found


def test_events_are_returned_in_order_and_others_are_left_out():
    data = datagram((16, link_body()), (20, address_body()), (24, b"a route"), (21, address_body()), (17, link_body()))
    assert same(netlink.events_in(data), [LinkUpdated(ETH0), AddressUpdated(VIP), AddressGone(VIP), LinkGone(ETH0)])


@given(st.binary(max_size=120), st.sampled_from([16, 17, 20, 21]), st.integers(0, 60))
def test_noise_never_breaks_the_readers(noise, kind, cut):
    netlink.events_in(noise)
    netlink.events_in(datagram((kind, noise)))
    netlink.events_in(datagram((kind, link_body()[:cut] + noise)))
    netlink.events_in(datagram((kind, address_body()[:cut] + noise)))


def test_an_ipv4_address_is_written_as_ip_addr_add_does():
    four = "c000020a"
    assert netlink.address_body(2, "192.0.2.10/24", adding=True).hex() == (
        "02180000" + "02000000" + "08000200" + four + "08000100" + four
    )
    assert netlink.address_body(2, "192.0.2.10", adding=True)[1] == 32


@pytest.mark.parametrize(
    "address, adding, flags, deprecated",
    [
        ("2001:db8::10/128", True, 0x02, True),
        ("2001:db8::10/64", True, 0x02, False),
        ("2001:db8::10/128", False, 0, False),
    ],
)
def test_an_ipv6_address_is_usable_at_once_and_never_a_source_where_it_is_alone(address, adding, flags, deprecated):
    body = netlink.address_body(2, address, adding)
    assert body[:8] == struct.pack("=BBBBI", 10, int(address.rpartition("/")[2]), flags, 0, 2)
    attributes = messages.attributes(body[8:])
    assert attributes[1] == attributes[2] == socket.inet_pton(socket.AF_INET6, "2001:db8::10")
    assert attributes.get(6) == (struct.pack("=IIII", 0, 0xFFFFFFFF, 0, 0) if deprecated else None)


class Kernel:
    """Both sockets of a ``Netlink``: answers what it is asked, and returns the prepared data."""

    def __init__(self, *answers):
        self.answers = list(answers)  # for each request: a list of datagrams, made for its serial number
        self.arriving = []  # for the other socket: data, or what is raised
        self.asked, self.waiting, self.options, self.bound, self.closed = [], [], [], None, 0

    def setsockopt(self, *option):
        self.options.append(option)

    def settimeout(self, seconds):
        self.timeout = seconds

    def setblocking(self, blocking):
        self.blocking = blocking

    def bind(self, where):
        self.bound = where

    def send(self, data):
        (message,) = messages.decode(data)
        self.asked.append(message)
        self.waiting += self.answers.pop(0)(message.serial)

    def recv(self, _size):
        if self.waiting:
            return self.waiting.pop(0)
        if not self.arriving:
            raise BlockingIOError(errno.EAGAIN, "nothing there")
        next_one = self.arriving.pop(0)
        if isinstance(next_one, OSError):
            raise next_one
        return next_one

    def close(self):
        self.closed += 1


def opened(*answers):
    kernel = Kernel(*answers)
    return netlink.Netlink(lambda: kernel), kernel


def ends(number=0, kind=messages.ERROR, flags=0):
    """An answer that has nothing but its end."""
    return lambda serial: [datagram((kind, struct.pack("=i", -number)), flags=flags, serial=serial)]


def dump(*bodies, kind=20, flags=0):
    """An answer in one datagram for each body, and one for its end."""
    return lambda serial: [
        *(datagram((kind, body), flags=flags, serial=serial) for body in bodies),
        *ends(0, messages.DONE)(serial),
    ]


def test_an_address_is_added_once_and_that_it_is_there_already_is_an_error_of_its_own():
    kernel_side, kernel = opened(ends(), ends(errno.EEXIST))
    kernel_side.adding(2, "192.0.2.10/32")()
    with pytest.raises(FileExistsError):
        kernel_side.adding(2, "192.0.2.10/32")()
    create_exclusive_acknowledge_request = 0x400 | 0x200 | 0x04 | 0x01
    expected = (20, create_exclusive_acknowledge_request, netlink.address_body(2, "192.0.2.10/32", True))
    assert [(m.kind, m.flags, m.body) for m in kernel.asked] == [expected, expected]


@pytest.mark.parametrize("number", [errno.ENODEV, errno.ENXIO])
def test_that_an_address_is_gone_with_its_interface_is_no_error(number):
    kernel_side, kernel = opened(ends(), ends(number))
    kernel_side.delete(2, "2001:db8::10/128")
    kernel_side.delete(2, "2001:db8::10/128")
    expected = (21, 0x04 | 0x01, netlink.address_body(2, "2001:db8::10/128", False))
    assert [(m.kind, m.flags, m.body) for m in kernel.asked] == [expected, expected]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EADDRNOTAVAIL, errno.ENODEV])
def test_what_keeps_an_address_from_being_added_is_an_error(number):
    with pytest.raises(OSError) as refused:
        opened(ends(number))[0].adding(2, "192.0.2.10/32")()
    assert (refused.value.errno, refused.value.strerror) == (number, os.strerror(number))
    assert refused.value.filename == "192.0.2.10/32"


@pytest.mark.parametrize("number", [errno.EPERM, errno.EADDRNOTAVAIL])
def test_what_keeps_an_address_from_being_deleted_is_an_error(number):
    with pytest.raises(OSError) as refused:
        opened(ends(number))[0].delete(2, "192.0.2.10/32")
    assert refused.value.errno == number


def test_what_adds_an_address_is_made_ready_and_asks_the_kernel_when_it_is_called():
    kernel_side, kernel = opened(dump(), ends(), ends(errno.EPERM))
    add, other = kernel_side.adding(2, "192.0.2.10/32"), kernel_side.adding(2, "192.0.2.11/32")
    assert (kernel_side.links(), len(kernel.asked)) == ([], 1)
    add()
    with pytest.raises(PermissionError):
        other()
    assert [m.body for m in kernel.asked[1:]] == [
        netlink.address_body(2, f"192.0.2.{last}/32", True) for last in (10, 11)
    ]


def test_a_late_answer_to_an_earlier_question_is_not_taken_for_this_ones():
    def late(serial):
        return [*ends(errno.EPERM)(serial - 1), *ends()(serial)]

    opened(late)[0].adding(2, "192.0.2.10/32")()


def test_all_links_are_returned():
    kernel_side, kernel = opened(dump(link_body(), link_body(attrs=((3, b"eth1\0"),)), kind=16))
    assert kernel_side.links() == [ETH0, Link(2, "eth1", True, b"")]
    assert [(m.kind, m.flags, m.body) for m in kernel.asked] == [(18, 0x301, bytes(16))]


def test_all_addresses_are_returned():
    kernel_side, kernel = opened(dump(address_body(), address_body("192.0.2.11")))
    assert kernel_side.addresses() == [VIP, VIP._replace(address="192.0.2.11")]
    assert [(m.kind, m.flags, m.body) for m in kernel.asked] == [(22, 0x301, bytes(8))]


def test_a_dump_that_was_interrupted_is_repeated():
    interrupted = dump(address_body("192.0.2.11"), flags=messages.DUMP_INTERRUPTED)
    kernel_side, kernel = opened(interrupted, interrupted, dump(address_body()))
    assert kernel_side.addresses() == [VIP]
    assert len(kernel.asked) == 3


def test_a_dump_that_is_always_interrupted_is_returned_as_it_was_last():
    interrupted = dump(address_body(), flags=messages.DUMP_INTERRUPTED)
    kernel_side, kernel = opened(*[interrupted] * 99)
    assert kernel_side.addresses() == [VIP]
    assert len(kernel.asked) == netlink.DUMP_TRIES


@pytest.mark.parametrize("kind", [messages.ERROR, messages.DONE])
def test_a_kernel_that_will_not_tell_is_an_error(kind):
    with pytest.raises(OSError) as refused:
        opened(ends(errno.EPERM, kind))[0].links()
    assert refused.value.errno == errno.EPERM


def test_it_listens_for_links_and_addresses_before_anything_is_asked():
    _kernel_side, kernel = opened()
    assert (kernel.bound, kernel.blocking) == ((0, 0x1 | 0x10 | 0x100), False)
    assert (socket.SOL_SOCKET, 33, netlink.RECEIVE_BUFFER) in kernel.options


def test_events_are_returned_oldest_first_until_there_are_none():
    kernel_side, kernel = opened()
    kernel.arriving = [datagram((20, address_body())), datagram((24, b"a route")), datagram((21, address_body()))]
    assert same(kernel_side.events(), [AddressUpdated(VIP), AddressGone(VIP)])
    assert kernel_side.events() == []


def lost():
    return OSError(errno.ENOBUFS, "no buffer space")


def test_events_older_than_a_loss_are_not_returned_after_it():
    """Or an address that has come back meanwhile, which no later event reports, would seem gone."""
    kernel_side, kernel = opened()
    kernel.arriving = [datagram((16, link_body())), lost(), datagram((21, address_body()))]
    assert same(kernel_side.events(), [Lost()])
    kernel.arriving = [datagram((20, address_body()))]
    assert same(kernel_side.events(), [AddressUpdated(VIP)])


def test_a_flood_is_returned_in_parts_so_that_an_advertisement_may_go_between_them():
    kernel_side, kernel = opened()
    kernel.arriving = [datagram((20, address_body()))] * (netlink.BATCH + 1)
    assert same(kernel_side.events(), [AddressUpdated(VIP)] * netlink.BATCH)
    assert same(kernel_side.events(), [AddressUpdated(VIP)])


def test_a_loss_is_reported_once_however_many_events_are_discarded_for_it():
    kernel_side, kernel = opened()
    kernel.arriving = [lost(), *[datagram((21, address_body()))] * netlink.BATCH, lost(), datagram((17, link_body()))]
    assert same(kernel_side.events(), [Lost()])
    assert kernel_side.events() == []


@pytest.mark.parametrize("before", [[], [lost()]])
def test_another_error_is_not_taken_for_a_loss(before):
    kernel_side, kernel = opened()
    kernel.arriving = [*before, OSError(errno.EBADF, "closed")]
    with pytest.raises(OSError) as refused:
        kernel_side.events()
    assert refused.value.errno == errno.EBADF


def test_both_sockets_are_closed():
    kernel_side, kernel = opened()
    kernel_side.close()
    assert kernel.closed == 2
