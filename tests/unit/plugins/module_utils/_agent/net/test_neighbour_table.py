# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Neighbours in messages of the kernel. With a real one: tests/netns/test_agent_netlink.py."""

from __future__ import annotations

import socket
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import messages
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.neighbour_table import Neighbour, unanswered_in
from hypothesis import given
from hypothesis import strategies as st

INCOMPLETE, REACHABLE, FAILED = 0x01, 0x02, 0x20


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
