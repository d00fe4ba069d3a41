# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How filters are handed over. What they let through: test_vrrp_filter.py and test_sniffer.py."""

from __future__ import annotations

import ctypes
import struct

from ansible_collections.onprem.lb.plugins.module_utils._agent.net import bpf


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
