# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Segments of TCP as bytes. That kernels take them, and their checksums: tests/netns/test_direct_proof.py."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import segments
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.segments import ACK, RST, SYN, Ends, Segment
from support.bpf_machine import run

CLASS = 0xEC
ENDS = {
    4: Ends("192.0.2.9", 40001, "192.0.2.100", 6443),
    6: Ends("2001:db8::9", 40001, "2001:db8::100", 6443),
}
HEADER = {4: 20, 6: 40}
families = pytest.mark.parametrize("family", ENDS)


def packet(family, flags=SYN, sequence=0xFFFFFFFF):
    return segments.write(ENDS[family], flags, sequence, CLASS)


def folded(data):
    """Return the sum of RFC 1071, word by word."""
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@families
@pytest.mark.parametrize("flags", [SYN, RST, SYN | ACK])
def test_what_is_written_is_read(family, flags):
    written = segments.write(ENDS[family], flags, 5, 0xEF, 7)
    assert segments.read(written) == Segment(ENDS[family], flags, 7, 5, 0xEF)


@families
def test_an_answer_says_what_it_acknowledges(family):
    answer = bytearray(packet(family))
    answer[HEADER[family] + 8 : HEADER[family] + 12] = bytes.fromhex("01020304")
    assert segments.read(bytes(answer)).acknowledged == 0x01020304


@families
@pytest.mark.parametrize("sequence", [0, 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_the_checksums_are_those_of_the_internet(family, sequence):
    whole = packet(family, SYN, sequence)
    header, tcp = whole[: HEADER[family]], whole[HEADER[family] :]
    addresses = header[12:20] if family == 4 else header[8:40]
    assert folded(addresses + len(tcp).to_bytes(4, "big") + bytes([0, 0, 0, 6]) + tcp) == 0xFFFF
    assert family == 6 or folded(header) == 0xFFFF


@families
def test_the_traffic_class_is_in_the_header(family):
    whole = packet(family)
    found = whole[1] if family == 4 else (whole[0] & 0x0F) << 4 | whole[1] >> 4
    assert found == CLASS


@families
def test_what_is_cut_off_or_no_tcp_is_nothing(family):
    whole = packet(family)
    assert [segments.read(whole[:size]) for size in range(len(whole))] == [None] * len(whole)
    at = 9 if family == 4 else 6
    assert segments.read(whole[:at] + bytes([17]) + whole[at + 1 :]) is None


def test_options_of_ipv4_come_before_the_segment():
    whole = packet(4)
    assert segments.read(bytes([0x46]) + whole[1:20] + bytes(4) + whole[20:]).ends == ENDS[4]


FIRST = 6432  # of the ports among which is that of the packet


@families
@pytest.mark.parametrize("first, accepted", [(FIRST, True), (6416, False), (6448, False), (FIRST ^ 0x100, False)])
def test_the_filter_accepts_as_many_ports_as_it_says_and_no_other(family, first, accepted):
    assert first % segments.PORTS == 0 and ENDS[family].destination_port in range(FIRST, FIRST + segments.PORTS)
    assert bool(run(segments.to_ports(family, first), packet(family))) is accepted


@families
def test_the_filter_accepts_tcp_alone(family):
    whole = packet(family)
    at = 9 if family == 4 else 6
    assert not run(segments.to_ports(family, 6432), whole[:at] + bytes([17]) + whole[at + 1 :])


def test_the_filter_finds_the_port_behind_options():
    whole = packet(4)
    assert run(segments.to_ports(4, 6432), bytes([0x46]) + whole[1:20] + bytes(4) + whole[20:])


@families
@pytest.mark.parametrize(
    "options, mss",
    [
        ("020405b4", 1460),
        ("0101020405b4", 1460),  # after two that say nothing
        ("030307020405b4", 1460),  # after another one
        ("0003", 0),  # the end of the list
        ("0204", 0),  # cut off
        ("02", 0),
        ("0300020405b4", 0),  # of no length
        ("", 0),
    ],
)
def test_the_longest_segment_is_among_the_options(family, options, mss):
    given = bytes.fromhex(options)
    whole = bytearray(packet(family) + given + bytes(-len(given) % 4))
    whole[HEADER[family] + 12] = (len(whole) - HEADER[family]) // 4 << 4
    assert segments.read(bytes(whole)).mss == mss
