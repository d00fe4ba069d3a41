# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Neighbour Discovery, written and read."""

from __future__ import annotations

import ipaddress

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import ndisc
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.arp import mac_text
from hypothesis import given
from hypothesis import strategies as st
from support.scapy_layers import Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6

MAC = bytes.fromhex("525400000001")

macs = st.binary(min_size=6, max_size=6)
ipv6 = st.integers(1, 2**128 - 1).map(lambda n: str(ipaddress.IPv6Address(n)))


@given(macs, ipv6)
def test_every_advertisement_claims_its_target(mac, target):
    message = ndisc.advert(target, mac)
    claim, claimed_by = ndisc.advert_claim(message, 255)
    assert (ipaddress.ip_address(claim), claimed_by) == (ipaddress.ip_address(target), mac_text(mac))


@given(st.binary(max_size=100))
def test_noise_never_breaks_the_reader(noise):
    ndisc.advert_claim(noise, 255)
    ndisc.advert_claim(b"\x88\x00" + noise, 255)


def test_an_advertisement_from_beyond_a_router_is_not_believed():
    message = ndisc.advert("2001:db8::1", MAC)
    assert ndisc.advert_claim(message, 254) is None


def test_an_advertisement_with_an_empty_option_is_not_believed():
    message = ndisc.advert("2001:db8::1", MAC)[:24] + b"\x02\x00" + b"\x00" * 6
    assert ndisc.advert_claim(message, 255) is None


def test_a_solicitation_carries_our_mac_and_leaves_the_checksum_to_the_kernel():
    message = ndisc.solicitation("2001:db8::1", MAC)
    assert message[:8].hex() == "8700000000000000"
    assert message[24:] == b"\x01\x01" + MAC
    assert ndisc.advert_claim(message, 255) is None


def test_the_solicited_node_group_is_made_of_the_last_three_octets():
    # The example of RFC 4291, 2.7.1.
    assert ndisc.solicited_node("4037::1:800:200e:8c6c") == "ff02::1:ff0e:8c6c"


@pytest.mark.parametrize("router", [False, True])
def test_scapy_reads_the_announcement_of_a_new_holder_as_it_was_meant(router):
    read = Ether(ndisc.advert_frame("2001:db8::1", MAC, router))
    assert (read.dst, read.src, read.type) == ("33:33:00:00:00:01", "52:54:00:00:00:01", 0x86DD)
    assert (read[IPv6].src, read[IPv6].dst, read[IPv6].hlim) == ("2001:db8::1", "ff02::1", 255)
    said = read[ICMPv6ND_NA]
    assert (said.code, said.R, said.S, said.O, said.tgt) == (0, int(router), 0, 1, "2001:db8::1")
    assert said[ICMPv6NDOptDstLLAddr].lladdr == "52:54:00:00:00:01"


def test_scapy_reads_a_solicitation_as_it_was_meant():
    read = Ether(ndisc.solicitation_frame("2001:db8::2", MAC, "2001:db8::1"))
    assert (read.dst, read.src, read.type) == ("33:33:ff:00:00:02", "52:54:00:00:00:01", 0x86DD)
    assert (read[IPv6].src, read[IPv6].dst, read[IPv6].hlim) == ("2001:db8::1", "ff02::1:ff00:2", 255)
    assert read[ICMPv6ND_NS].tgt == "2001:db8::2"
    assert read[ICMPv6NDOptSrcLLAddr].lladdr == "52:54:00:00:00:01"


@given(macs, ipv6, st.booleans())
def test_scapy_calculates_the_same_checksum(mac, target, router):
    frame = Ether(ndisc.advert_frame(target, mac, router))
    ours = frame[ICMPv6ND_NA].cksum
    del frame[ICMPv6ND_NA].cksum
    assert ours == Ether(bytes(frame))[ICMPv6ND_NA].cksum
