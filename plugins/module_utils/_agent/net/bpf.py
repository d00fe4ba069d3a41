# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Classic BPF (bpf(4), Linux's networking/filter.rst): a socket filter, in steps of (code, jump if true, jump if false,
operand)."""

from __future__ import annotations

import array
import socket
import struct
from typing import Sequence, Tuple

SO_ATTACH_FILTER = 26  # Linux, asm-generic/socket.h

Step = Tuple[int, int, int, int]

LOAD_HALF, LOAD_BYTE, LOAD_BYTE_AT_INDEX = 0x28, 0x30, 0x50
INDEX_IS, INDEX_IS_HEADER_LENGTH = 0x01, 0xB1  # the latter: 4 times the lower half of a byte, as IPv4 counts
SHIFT_RIGHT, EQUAL, RETURN = 0x74, 0x15, 0x06
ALL_OF_IT = 0xFFFF

# struct sock_filter and sock_fprog
_STEP, _PROGRAM = struct.Struct("=HBBI"), struct.Struct("HP")


def attach(sock: socket.socket, steps: Sequence[Step]) -> None:
    """Replace a socket's filter. It does not apply to packets that are already queued."""
    code = array.array("B", b"".join(_STEP.pack(*step) for step in steps))
    address, _size = code.buffer_info()
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, _PROGRAM.pack(len(steps), address))
