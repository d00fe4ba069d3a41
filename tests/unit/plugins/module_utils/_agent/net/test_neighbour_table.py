# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Neighbours in messages of the kernel. With a real one: tests/netns/test_agent_netlink.py."""

from __future__ import annotations

import socket
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import messages
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.neighbour_table import (
    Neighbour,
    known_in,
    question,
    unanswered_in,
)
from hypothesis import given
from hypothesis import strategies as st

INCOMPLETE, REACHABLE, FAILED = 0x01, 0x02, 0x20
MAC = bytes.fromhex("020000000007")


def body(family, state, packed):
    return struct.pack("=BxxxiHBB", family, 2, state, 0, 1) + messages.attribute(1, packed)


@pytest.mark.parametrize("family, address", [(socket.AF_INET, "192.0.2.20"), (socket.AF_INET6, "2001:db8::20")])
def test_a_neighbour_that_the_kernel_asks_for_is_unanswered(family, address):
    packed = socket.inet_pton(family, address)
    assert unanswered_in(body(family, INCOMPLETE, packed)) == Neighbour(2, address)
    assert [unanswered_in(body(family, state, packed)) for state in (REACHABLE, FAILED)] == [None, None]


@pytest.mark.parametrize("family, packed", [(socket.AF_BRIDGE, bytes(6)), (socket.AF_INET, bytes(16))])
def test_what_is_no_address_is_left_out(family, packed):
    assert unanswered_in(body(family, INCOMPLETE, packed)) is None


@given(st.binary(max_size=64))
def test_no_message_raises(message):
    unanswered_in(message)
    known_in(message)


@pytest.mark.parametrize("state", [0x02, 0x04, 0x08, 0x10, 0x40, 0x80])
def test_a_neighbour_whose_mac_the_kernel_knows_has_it(state):
    message = body(socket.AF_INET, state, socket.inet_aton("192.0.2.20")) + messages.attribute(2, MAC)
    assert known_in(message) == Neighbour(2, "192.0.2.20", "02:00:00:00:00:07")
    assert unanswered_in(message) is None


def test_without_a_mac_or_with_none_of_ethernet_nothing_is_known():
    packed = socket.inet_aton("192.0.2.20")
    assert known_in(body(socket.AF_INET, REACHABLE, packed)) is None
    assert known_in(body(socket.AF_INET, REACHABLE, packed) + messages.attribute(2, bytes(4))) is None
    assert known_in(body(socket.AF_INET, FAILED, packed) + messages.attribute(2, MAC)) is None


@pytest.mark.parametrize("family, address", [(socket.AF_INET, "192.0.2.20"), (socket.AF_INET6, "2001:db8::20")])
def test_a_question_is_as_if_a_packet_were_sent(family, address):
    use = 0x01
    assert question(2, address) == struct.pack("=BxxxiHBB", family, 2, 0, use, 0) + messages.attribute(
        1, socket.inet_pton(family, address)
    )
