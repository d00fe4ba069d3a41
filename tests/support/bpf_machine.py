# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Interprets a BPF filter as the kernel does, for the instructions that the collection uses."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.net import bpf

PROTOCOL = 0xFFFFF000  # the protocol's offset, SKF_AD_OFF, which is outside the packet


def run(program, data, protocol=0):
    """Return how many bytes of a packet the filter accepts."""
    accumulator = index = at = 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == bpf.RETURN:
            return operand
        if code == bpf.LOAD_HALF:
            accumulator = protocol if operand == PROTOCOL else int.from_bytes(data[operand : operand + 2], "big")
        elif code in (bpf.LOAD_BYTE, bpf.LOAD_BYTE_AT_INDEX):
            place = operand + (index if code == bpf.LOAD_BYTE_AT_INDEX else 0)
            if place >= len(data):
                return 0
            accumulator = data[place]
        elif code == bpf.INDEX_IS:
            index = operand
        elif code == bpf.INDEX_IS_HEADER_LENGTH:
            if operand >= len(data):
                return 0
            index = 4 * (data[operand] & 0x0F)
        elif code == bpf.SHIFT_RIGHT:
            accumulator >>= operand
        else:
            assert code == bpf.EQUAL
            at += if_true if accumulator == operand else if_false
