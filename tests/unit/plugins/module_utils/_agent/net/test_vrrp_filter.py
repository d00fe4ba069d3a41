# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the filter of a VRRP socket accepts; that the kernel takes it: tests/netns/test_agent_net.py."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import vrrp_filter
from support.bpf_machine import run

OPTIONS = bytes([7]) * 12
PACKETS = {  # by family, what comes before the message
    4: [bytes([0x45]) + bytes(19), bytes([0x48]) + bytes(19) + OPTIONS],
    6: [b""],
}


def accepted(vrids, first, vrid, family=4, before=None):
    before = PACKETS[family][0] if before is None else before
    return bool(run(vrrp_filter.program(family, vrids), before + bytes([first, vrid]) + bytes(10)))


@pytest.mark.parametrize("family, before", [(family, before) for family, all_ in PACKETS.items() for before in all_])
def test_the_message_is_found_behind_the_ip_header_whatever_its_length(family, before):
    assert accepted({51}, 0x31, 51, family, before)
    assert not accepted({51}, 0x31, 52, family, before)


@pytest.mark.parametrize("first, there", [(0x21, True), (0x31, True), (0x3F, True), (0x01, False), (0x41, False)])
def test_versions_2_and_3_are_accepted_whatever_their_type(first, there):
    assert accepted({51}, first, 51) is there


@pytest.mark.parametrize("vrids", [{51}, {1, 255}, {16, 32, 48}, set(range(1, 256)), set()])
def test_exactly_these_vrids_are_accepted(vrids):
    assert {vrid for vrid in range(256) if accepted(vrids, 0x21, vrid)} == vrids


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("family", [4, 6])
def test_a_message_that_is_too_short_is_dropped(family, size):
    assert run(vrrp_filter.program(family, {51}), PACKETS[family][0] + b"\x31\x33"[:size]) == 0


def test_the_kernel_can_jump_over_every_vrid():
    """Its jumps have 8 bits."""
    assert max(step[1] for step in vrrp_filter.program(4, range(1, 256))) == 255
