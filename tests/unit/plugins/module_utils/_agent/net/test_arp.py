# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ARP frames, written and read."""

from __future__ import annotations

import ipaddress

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import arp
from hypothesis import given
from hypothesis import strategies as st

MAC = bytes.fromhex("525400000001")

macs = st.binary(min_size=6, max_size=6)
ipv4 = st.integers(1, 2**32 - 1).map(lambda n: str(ipaddress.IPv4Address(n)))


def test_a_request_is_an_arp_probe_so_that_it_changes_no_cache():
    frame = arp.arp_frame(MAC, "0.0.0.0", "192.0.2.1")
    body = "000108000604000152540000000100000000000000000000c0000201"
    assert frame.hex() == "ffffffffffff" + "525400000001" + "0806" + body
    assert arp.arp_claim(frame) is None


def test_an_announcement_is_a_request_whose_sender_is_its_target():
    body = "0001080006040001525400000001c0000201000000000000c0000201"
    assert arp.arp_frame(MAC, "192.0.2.1", "192.0.2.1").hex()[28:] == body


@given(macs, ipv4, ipv4, st.sampled_from([arp.ARP_REQUEST, arp.ARP_REPLY]))
def test_every_arp_sender_claims_its_address(mac, sender, target, operation):
    frame = arp.arp_frame(mac, sender, target, operation)
    assert arp.arp_claim(frame + b"\x00" * 18) == (sender, arp.mac_text(mac))


@given(st.binary(max_size=100))
def test_noise_never_breaks_the_reader(noise):
    arp.arp_claim(noise)
    arp.arp_claim(b"\xff" * 12 + b"\x08\x06" + noise)


@pytest.mark.parametrize(
    "place, value",
    [
        (12, b"\x08\x00"),  # IPv4
        (14, b"\x00\x06"),  # not over Ethernet
        (16, b"\x86\xdd"),  # not for IPv4
        (18, b"\x08"),  # a longer MAC
        (20, b"\x00\x03"),  # RARP
    ],
)
def test_what_is_no_arp_for_ipv4_over_ethernet_claims_nothing(place, value):
    frame = arp.arp_frame(MAC, "192.0.2.1", "192.0.2.1")
    assert arp.arp_claim(frame[:place] + value + frame[place + len(value) :]) is None


def test_a_mac_is_read_as_people_write_it():
    assert arp.mac_bytes("52:54:00:00:00:01") == arp.mac_bytes("52-54-00-00-00-01") == MAC
    assert arp.mac_text(MAC) == "52:54:00:00:00:01"
    with pytest.raises(ValueError, match="52:54 is not an Ethernet address"):
        arp.mac_bytes("52:54")
