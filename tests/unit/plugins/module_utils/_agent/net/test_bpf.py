# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters, and how they are handed over."""

from __future__ import annotations

import ctypes
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import bpf

from .bpf_machine import run
from .packets import V6, ipv4, ipv6

ANY_VRID = range(1, 256)


def through(family, data, *vrids):
    return bool(run(bpf.only_vrids(vrids, family), data))


@pytest.mark.parametrize("options", [b"", b"\x94\x04\0\0" * 2])
def test_only_these_vrids_get_through_whatever_stands_in_the_ip_header(options):
    data = ipv4(options=options)
    assert through(4, data, 51)
    assert through(4, data, 52, 51, 50)
    assert not through(4, data, 52, 50)
    assert not through(4, data)


def test_ipv6_is_filtered_without_its_header_which_the_kernel_keeps():
    message = ipv6(V6)[40:]
    assert through(6, message, 50, 51)
    assert not through(6, message, 50)


def test_all_vrids_at_once_are_possible():
    for vrid in (1, 2, 254, 255):
        assert through(6, bytes([0x31, vrid]), *ANY_VRID)
        assert not through(6, bytes([0x31, vrid]), *(set(ANY_VRID) - {vrid}))
    assert all(step[1] < 256 for step in bpf.only_vrids(ANY_VRID, 4)), "a jump is one byte"


@pytest.mark.parametrize("family, data", [(4, b""), (4, ipv4()[:21]), (6, b""), (6, b"\x31")])
def test_what_is_too_short_to_have_a_vrid_does_not_get_through(family, data):
    assert not through(family, data, *ANY_VRID)


class FakeSocket:
    def setsockopt(self, level, option, value):
        """Reads what is behind the pointer at once, as the kernel does."""
        assert (level, option) == (1, 26)
        self.count, address = struct.unpack("HP", value)
        self.program = ctypes.string_at(address, self.count * 8)


def test_the_kernel_is_given_the_steps_as_it_reads_them():
    steps = [(bpf.LOAD_BYTE, 0, 0, 9), (bpf.EQUAL, 1, 2, 112), (bpf.RETURN, 0, 0, 0xFFFF)]
    sock = FakeSocket()
    bpf.attach(sock, steps)
    assert sock.count == 3
    assert list(struct.iter_unpack("=HBBI", sock.program)) == steps
