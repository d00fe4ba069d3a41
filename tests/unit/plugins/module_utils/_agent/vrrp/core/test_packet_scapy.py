# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every advertisement that can be written is read again as it was; scapy reads the same in it, and writes the same."""

from __future__ import annotations

import ipaddress
import socket

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import Advertisement
from hypothesis import given
from hypothesis import strategies as st
from support.scapy_layers import IP, VRRP, IPv6, Raw, VRRPv3, scapy_checksum
from support.vrrp.mutations import V4

# What scapy does once, on first use, is no failure on a slow machine.


def of_family(size):
    return st.binary(min_size=size, max_size=size).map(
        lambda raw: socket.inet_ntop(socket.AF_INET6 if size == 16 else socket.AF_INET, raw)
    )


ipv4, ipv6 = of_family(4), of_family(16)
vrids, priorities = st.integers(1, 255), st.integers(0, 255)
seconds = st.integers(1, 255).map(lambda number: number * 1_000_000)
centiseconds = st.integers(1, 4095).map(lambda number: number * 10_000)
passwords = st.binary(max_size=8).filter(lambda text: not text.endswith(b"\x00"))


def advertisements(version, intervals, addresses, authentication):
    fields = (st.just(version), vrids, priorities, intervals, st.lists(addresses, min_size=1, max_size=30).map(tuple))
    return st.tuples(*fields, authentication).map(lambda drawn: Advertisement(*drawn[:5], *drawn[5]))


none = st.just((0, b""))
v2 = advertisements(2, seconds, ipv4, st.one_of(none, st.tuples(st.just(1), passwords)))
v3 = advertisements(3, centiseconds, ipv4, none)
v3_ipv6 = advertisements(3, centiseconds, ipv6, none)


def by_scapy(message, source, destination):
    """The message as scapy reads it in an IP packet, and as scapy would write it, with its own checksum."""
    ip, number = (IPv6, {"nh": 112}) if ":" in source else (IP, {"proto": 112})
    read = ip(bytes(ip(src=source, dst=destination, **number) / Raw(message)))
    layer = read.payload
    again = read.copy()
    again.payload.chksum = None
    return layer, bytes(again)[-len(message) :]


def as_scapy_says_it(advertisement):
    return (advertisement.version, 1, advertisement.vrid, advertisement.priority, len(advertisement.addresses))


@given(v2, ipv4, ipv4)
def test_version_2_round_trip_and_scapy_agrees(advertisement, source, destination):
    message = packet.encode(advertisement, source, destination)
    assert packet.decode(message, source, destination) == advertisement._replace(checksum="rfc3768")
    layer, again = by_scapy(message, source, destination)
    assert isinstance(layer, VRRP)
    assert (layer.version, layer.type, layer.vrid, layer.priority, layer.ipcount) == as_scapy_says_it(advertisement)
    assert (layer.authtype, layer.adv) == (advertisement.auth_type, advertisement.interval // 1_000_000)
    assert tuple(layer.addrlist) == advertisement.addresses
    data = layer.auth1.to_bytes(4, "big") + layer.auth2.to_bytes(4, "big")
    assert data == advertisement.auth_pass.ljust(8, b"\x00")
    assert again == message


@given(st.one_of(st.tuples(v3, ipv4, ipv4), st.tuples(v3_ipv6, ipv6, ipv6)))
def test_version_3_round_trip_and_scapy_agrees(case):
    advertisement, source, destination = case
    message = packet.encode(advertisement, source, destination)
    assert packet.decode(message, source, destination) == advertisement._replace(checksum="rfc5798")
    layer, again = by_scapy(message, source, destination)
    assert isinstance(layer, VRRPv3)
    assert (layer.version, layer.type, layer.vrid, layer.priority, layer.ipcount) == as_scapy_says_it(advertisement)
    assert (layer.res, layer.adv) == (0, advertisement.interval // 10_000)
    assert [ipaddress.ip_address(a) for a in layer.addrlist] == [
        ipaddress.ip_address(a) for a in advertisement.addresses
    ]
    assert again == message


@given(v3)
def test_version_3_without_pseudo_header_round_trip_and_scapy_agrees(advertisement):
    message = packet.encode(advertisement, *V4, checksum="rfc9568")
    assert packet.decode(message, *V4) == advertisement._replace(checksum="rfc9568")
    assert scapy_checksum(message) == 0
