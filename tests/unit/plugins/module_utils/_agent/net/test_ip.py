# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reading and writing IP headers."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import ip
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from hypothesis import given
from hypothesis import strategies as st
from support.scapy_layers import IP, IPv6
from support.vrrp.packets import A6, GROUP, GROUP6, V2, V6, A, ipv4, ipv6

MESSAGE = packet.encode(V2, A, GROUP)
MESSAGE6 = packet.encode(V6, A6, GROUP6)


@pytest.mark.parametrize("padding", [b"", b"\0" * 18])
def test_a_message_is_read_with_its_envelope_and_without_the_padding_of_a_short_frame(padding):
    assert ip.read(ipv4(ttl=64) + padding, ip.IPV4) == (A, GROUP, 64, MESSAGE, True, 0)
    assert ip.read(ipv6(hop_limit=64) + padding, ip.IPV6) == (A6, GROUP6, 64, MESSAGE6, True, 0)


def test_options_of_ipv4_are_passed_over():
    assert ip.read(ipv4(options=b"\x94\x04\0\0" * 2), ip.IPV4).message == MESSAGE


@pytest.mark.parametrize("fragment, whole", [(0x2000, False), (0x0001, False), (0x1000, False), (0x4000, True)])
def test_a_fragment_is_distinguished_from_dont_fragment(fragment, whole):
    assert ip.read(ipv4(fragment=fragment), ip.IPV4).whole == whole


@pytest.mark.parametrize(
    "data, protocol",
    [
        (b"", ip.IPV4),
        (ipv4()[:19], ip.IPV4),
        (b"\x44" + ipv4()[1:], ip.IPV4),
        (b"\x65" + ipv4()[1:], ip.IPV4),
        (ipv4(protocol=17), ip.IPV4),
        (ipv6(), ip.IPV4),
        (b"", ip.IPV6),
        (ipv6()[:39], ip.IPV6),
        (b"\x45" + ipv6()[1:], ip.IPV6),
        (ipv6(following=58), ip.IPV6),
        (ipv4() + ipv4(), ip.IPV6),
        (ipv4(), 0x0806),
        (ipv6(), 0x0806),
    ],
)
def test_what_is_no_vrrp_is_nothing(data, protocol):
    assert ip.read(data, protocol) is None


def test_a_message_that_was_cut_is_read_as_far_as_it_goes():
    assert ip.read(ipv4()[:30], ip.IPV4).message == MESSAGE[:10]
    assert ip.read(ipv6()[:50], ip.IPV6).message == MESSAGE6[:10]


def test_what_lies_behind_the_length_that_ip_says_is_not_read():
    short4, short6 = bytearray(ipv4()), bytearray(ipv6())
    short4[3] -= 8
    short6[5] -= 8
    assert ip.read(bytes(short4), ip.IPV4).message == MESSAGE[:-8]
    assert ip.read(bytes(short6), ip.IPV6).message == MESSAGE6[:-8]


@given(st.binary(max_size=80), st.sampled_from([ip.IPV4, ip.IPV6, 0]), st.sampled_from([0x45, 0x4F, 0x60]))
def test_noise_never_breaks_the_reader(noise, protocol, first):
    ip.read(noise, protocol)
    ip.read(bytes([first]) + noise[:5] + b"\x70" + noise[5:7] + b"\x70" + noise[7:], protocol)


def test_scapy_reads_the_ipv4_header_as_it_was_meant():
    read = IP(ip.ipv4_header(A, GROUP, len(MESSAGE)) + MESSAGE)
    assert (read.version, read.ihl, read.tos, read.len, read.ttl, read.proto) == (4, 5, 0xC0, 40, 255, 112)
    assert (read.src, read.dst, read.id, read.flags.value, read.frag) == (A, GROUP, 0, 0, 0)


def test_scapy_reads_the_ipv6_header_as_it_was_meant():
    read = IPv6(ip.ipv6_header(A6, GROUP6, 58, 32) + bytes(32))
    assert (read.version, read.tc, read.fl, read.plen, read.nh, read.hlim) == (6, 0, 0, 32, 58, 255)
    assert (read.src, read.dst) == (A6, GROUP6)
