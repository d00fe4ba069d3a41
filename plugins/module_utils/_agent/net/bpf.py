# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Classic BPF (bpf(4), Linux's networking/filter.rst): what a socket lets through, as (code, jump if true, jump if
false, operand)."""

from __future__ import annotations

import array
import socket
import struct
from typing import Iterable, Sequence, Tuple

from .linux import SO_ATTACH_FILTER

Step = Tuple[int, int, int, int]

LOAD_HALF, LOAD_BYTE, LOAD_BYTE_PAST_HEADER = 0x28, 0x30, 0x50
LOAD_IPV4_HEADER_SIZE = 0xB1  # what LOAD_BYTE_PAST_HEADER then counts from
EQUAL, RETURN = 0x15, 0x06
ALL_OF_IT = 0xFFFF

# struct sock_filter and sock_fprog
_STEP, _PROGRAM = struct.Struct("=HBBI"), struct.Struct("HP")


def attach(sock: socket.socket, steps: Sequence[Step]) -> None:
    """Replace a socket's filter. What is already waiting in it was not asked."""
    code = array.array("B", b"".join(_STEP.pack(*step) for step in steps))
    address, _size = code.buffer_info()
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, _PROGRAM.pack(len(steps), address))


def only_vrids(vrids: Iterable[int], family: int) -> Sequence[Step]:
    """Return the filter of a raw socket that lets only these VRIDs through, the second byte of a message.

    :param family: 4, where the kernel shows the IP header to the filter, or 6, where it does not
    """
    wanted = sorted(set(vrids))
    past_header = [(LOAD_IPV4_HEADER_SIZE, 0, 0, 0), (LOAD_BYTE_PAST_HEADER, 0, 0, 1)]
    load = past_header if family == 4 else [(LOAD_BYTE, 0, 0, 1)]
    # Each comparison jumps over those after it, and over the refusal.
    compare = [(EQUAL, len(wanted) - place, 0, vrid) for place, vrid in enumerate(wanted)]
    return [*load, *compare, (RETURN, 0, 0, 0), (RETURN, 0, 0, ALL_OF_IT)]
