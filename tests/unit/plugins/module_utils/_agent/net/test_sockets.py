# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The raw sockets of VRRP, without a network. With one: tests/netns/test_agent_net.py."""

from __future__ import annotations

import errno
import socket
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import sockets
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from support.vrrp.packets import A6, GROUP, GROUP6, V2, V6, A, ipv4

MESSAGE, MESSAGE6 = packet.encode(V2, A, GROUP), packet.encode(V6, A6, GROUP6)
JOIN4, JOIN6 = (0, 35), (41, 20)


class Wire:
    """A raw socket without a network."""

    def __init__(self, arriving=(), refuses=None):
        self.arriving, self.refuses = list(arriving), refuses
        self.made, self.options, self.blocking, self.sent, self.closed = None, [], None, [], False

    def make(self, *kind):
        self.made = kind
        return self

    def setsockopt(self, level, option, value):
        if (level, option) == self.refuses:
            raise OSError(errno.ENODEV, "no such device")
        self.options.append((level, option, value))

    def setblocking(self, blocking):
        self.blocking = blocking

    def recvmsg(self, _size, ancillary_size):
        """What arrives is told with all about it, or is bytes alone."""
        assert ancillary_size >= sum(map(socket.CMSG_SPACE, (20, 4, 16)))
        if not self.arriving:
            raise BlockingIOError(errno.EAGAIN, "nothing there")
        message = self.arriving.pop(0)
        return message if isinstance(message, tuple) else (message, [], 0, None)

    def sendto(self, *sent):
        self.sent.append(sent)

    sendmsg = sendto

    def close(self):
        self.closed = True


def opened(family, wire, multicast=True):
    return {4: sockets.RawSocket4, 6: sockets.RawSocket6}[family]("eth0", 7, multicast, wire.make)


@pytest.mark.parametrize("family, number", [(4, socket.AF_INET), (6, socket.AF_INET6)])
def test_it_is_bound_to_its_interface_before_anything_else(family, number):
    wire = Wire()
    opened(family, wire)
    assert wire.made == (number, socket.SOCK_RAW, 112)
    assert wire.options[0] == (socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0\0")
    assert wire.blocking is False


@pytest.mark.parametrize("family, join", [(4, JOIN4), (6, JOIN6)])
def test_only_for_multicast_it_is_in_the_group_and_by_the_interfaces_number(family, join):
    groups = {4: socket.inet_aton(GROUP) + bytes(4), 6: socket.inet_pton(socket.AF_INET6, GROUP6)}
    wire, silent = Wire(), Wire()
    opened(family, wire)
    opened(family, silent, multicast=False)
    assert (*join, groups[family] + struct.pack("=i", 7)) in wire.options
    assert join not in [option[:2] for option in silent.options]


@pytest.mark.parametrize("family, join", [(4, JOIN4), (6, JOIN6)])
@pytest.mark.parametrize("refuses", [(1, 25), None])
def test_a_socket_that_cannot_be_made_ready_is_closed(family, join, refuses):
    wire = Wire(refuses=refuses or join)
    with pytest.raises(OSError):
        opened(family, wire)
    assert wire.closed


def test_ipv4_is_sent_with_a_header_of_our_own():
    wire = Wire()
    opened(4, wire).sending(MESSAGE, A, GROUP)()
    ((data, where),) = wire.sent
    # But for identification and checksum, which the kernel fills in.
    assert data[:4] + data[6:10] + data[12:] == ipv4()[:4] + ipv4()[6:10] + ipv4()[12:]
    assert where == (GROUP, 0)


def test_ipv6_is_sent_from_the_source_and_the_interface_that_were_named():
    wire = Wire()
    opened(6, wire).sending(MESSAGE6, A6, GROUP6)()
    ((data, ancillary, _flags, where),) = wire.sent
    assert (data, where) == ([MESSAGE6], (GROUP6, 0, 0, 7))
    assert ancillary == [(41, 50, socket.inet_pton(socket.AF_INET6, A6) + struct.pack("=i", 7))]


def cmsgs(destination=GROUP6, hop_limit=255):
    where = socket.inet_pton(socket.AF_INET6, destination) + struct.pack("=i", 7)
    return [(41, 50, where), (41, 52, struct.pack("=i", hop_limit))]


def test_ipv4_is_received_with_its_envelope():
    port = opened(4, Wire([ipv4(ttl=64)]))
    assert port.receive() == (A, GROUP, 64, MESSAGE, True, 0)
    assert port.receive() is None


def test_ipv6_is_received_with_its_envelope():
    wire = Wire(
        [
            (MESSAGE6, cmsgs("fe80::2", 64), 0, (A6, 0, 0, 7)),
            (MESSAGE6, cmsgs(), 0, ("fe80::3%eth0", 0, 0, 7)),
        ]
    )
    port = opened(6, wire)
    assert port.receive() == (A6, "fe80::2", 64, MESSAGE6, True, 0)
    assert port.receive() == ("fe80::3", GROUP6, 255, MESSAGE6, True, 0)
    assert port.receive() is None


NOW = 1_800_000_000_000_000_000  # nanoseconds since 1970


def stamped(ago):
    """What the kernel tells of a message that arrived so many microseconds ago."""
    return (socket.SOL_SOCKET, 35, struct.pack("@ll", *divmod(NOW - ago * 1000, 10**9)))


@pytest.mark.parametrize("ago, age", [(0, 0), (140, 140), (1000, 1000), (1001, 0), (3600 * 10**6, 0), (-1, 0)])
@pytest.mark.parametrize("family", [4, 6])
def test_how_old_a_message_is_counts_if_no_clock_can_have_been_set_meanwhile(monkeypatch, family, ago, age):
    monkeypatch.setattr(sockets.time, "time_ns", lambda: NOW)
    arriving = {
        4: (ipv4(), [stamped(ago)], 0, None),
        6: (MESSAGE6, [*cmsgs(), stamped(ago)], 0, (A6, 0, 0, 7)),
    }
    wire = Wire([arriving[family]])
    assert opened(family, wire).receive().age == age
    assert (socket.SOL_SOCKET, 35, 1) in wire.options


def test_a_stamp_of_another_size_is_none():
    wire = Wire([(ipv4(), [(socket.SOL_SOCKET, 35, b"now")], 0, None)])
    assert opened(4, wire).receive().age == 0


@pytest.mark.parametrize("nonsense", [b"", b"\x45", ipv4(protocol=17), b"\xff" * 100])
def test_what_is_no_vrrp_over_ipv4_is_skipped(nonsense):
    assert opened(4, Wire([nonsense, ipv4()])).receive().message == MESSAGE
    assert opened(4, Wire([nonsense])).receive() is None


@pytest.mark.parametrize("ancillary", [[], cmsgs()[:1], cmsgs()[1:], [(41, 50, b"\0"), (41, 52, b"\0")]])
def test_a_message_over_ipv6_without_all_ancillary_data_is_skipped(ancillary):
    arriving = [(MESSAGE6, ancillary, 0, (A6, 0, 0, 7)), (MESSAGE6, cmsgs(), 0, (A6, 0, 0, 7))]
    assert opened(6, Wire(arriving)).receive().hop_limit == 255


@pytest.mark.parametrize("multicast, destination", [(True, "ff02::1"), (False, "ff02::1"), (False, GROUP6)])
def test_an_ipv6_group_that_another_socket_of_this_host_joined_is_skipped(multicast, destination):
    arriving = [
        (MESSAGE6, cmsgs(destination), 0, (A6, 0, 0, 7)),
        (MESSAGE6, cmsgs("fe80::2"), 0, (A6, 0, 0, 7)),
    ]
    assert opened(6, Wire(arriving), multicast).receive().destination == "fe80::2"


@pytest.mark.parametrize("family, kind", [(4, sockets.RawSocket4), (6, sockets.RawSocket6)])
def test_the_family_chooses_the_port(monkeypatch, family, kind):
    made = []
    monkeypatch.setattr(kind, "__init__", lambda self, *arguments: made.append(arguments))
    assert isinstance(sockets.open_socket("eth0", 7, family, True), kind)
    assert made == [("eth0", 7, True)]
