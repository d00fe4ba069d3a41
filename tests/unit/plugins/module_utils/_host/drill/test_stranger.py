# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frames of a stranger with the VIP. What hosts make of them: test_drill_events."""

from __future__ import annotations

import ipaddress

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import stranger

VIP, VIP6, ASKER = (ipaddress.ip_address(each).packed for each in ("192.0.2.10", "2001:db8::10", "192.0.2.3"))
ASKER_MAC = bytes.fromhex("020000000003")


def request(target, operation=stranger.REQUEST):
    """An ARP packet of the client."""
    frame = stranger.arp(operation, stranger.BROADCAST, ASKER, bytes(6), target)
    return frame.replace(stranger.MAC, ASKER_MAC)


def solicitation(target, source="2001:db8::3", kind=stranger.SOLICITATION):
    """A Neighbour Solicitation of the client, without a checksum."""
    frame = bytearray(stranger.advertisement(stranger.BROADCAST, bytes(16), target))
    frame[6:12], frame[54], frame[22:38] = ASKER_MAC, kind, ipaddress.ip_address(source).packed
    return bytes(frame)


def test_it_announces_an_ipv4_address_to_everybody():
    assert stranger.announcement(VIP).hex() == (
        "ffffffffffff02006f6c62210806000108000604000102006f6c6221c000020a000000000000c000020a"
    )


def test_it_announces_an_ipv6_address_to_all_nodes_with_a_good_checksum():
    frame = stranger.announcement(VIP6)
    assert frame[:14].hex() == "33330000000102006f6c622186dd"
    packet, body = frame[14:], frame[54:]
    assert packet[8:40] == VIP6 + ipaddress.ip_address("ff02::1").packed and packet[6:8] == bytes([58, 255])
    pseudo = packet[8:40] + len(body).to_bytes(4, "big") + (58).to_bytes(4, "big")
    assert stranger.checksum(pseudo + body) == 0
    assert body[:2] + body[4:] == b"\x88\0" + b"\x20\0\0\0" + VIP6 + b"\2\1" + stranger.MAC


def test_it_answers_who_asks_for_the_address():
    answer = stranger.answer(request(VIP), VIP)
    assert (answer[:6], answer[6:12], answer[20:22]) == (ASKER_MAC, stranger.MAC, b"\0\2")
    assert answer[22:42] == stranger.MAC + VIP + ASKER_MAC + ASKER
    answer = stranger.answer(solicitation(VIP6), VIP6)
    assert answer[:12] == ASKER_MAC + stranger.MAC and answer[62:78] == VIP6
    assert answer[38:54] == ipaddress.ip_address("2001:db8::3").packed


@pytest.mark.parametrize(
    "frame, address",
    [
        (request(ASKER), VIP),
        (request(VIP, stranger.REPLY), VIP),
        (solicitation(VIP6[:-1] + b"\x11"), VIP6),
        (solicitation(VIP6, kind=stranger.ADVERTISEMENT), VIP6),
        (solicitation(VIP6, source="::"), VIP6),  # Duplicate Address Detection of the holder's own
        (b"\0" * 14, VIP),
    ],
)
def test_it_answers_nothing_else(frame, address):
    assert stranger.answer(frame, address) == b""
