# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel's table of neighbours as rtnetlink(7) has it. Pure functions over the bodies of messages."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple, Optional

from . import messages

# <linux/rtnetlink.h> and <linux/neighbour.h>
NEW_NEIGHBOUR, GET_NEIGHBOUR = 28, 30
ADDRESS = 1  # NDA_DST
INCOMPLETE = 0x01  # NUD_INCOMPLETE: the kernel has asked for the MAC, and goes on asking once a second
SIZES = {socket.AF_INET: 4, socket.AF_INET6: 16}

# struct ndmsg: family, index of the interface, state, flags, type.
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
EVERY = bytes(_NEIGHBOUR.size)  # the body of a request for all neighbours


class Neighbour(NamedTuple):
    """A host on a link whose MAC the kernel does not know yet."""

    index: int  # type: ignore[assignment]  # of the interface; a tuple has a method of that name
    address: str


def unanswered_in(message: bytes) -> Optional[Neighbour]:
    """Return the neighbour that a message is about if the kernel asks for its MAC, None if not."""
    if len(message) < _NEIGHBOUR.size:
        return None
    family, index, state, _flags, _type = _NEIGHBOUR.unpack_from(message)
    if state != INCOMPLETE or family not in SIZES:
        return None
    packed = messages.attributes(message[_NEIGHBOUR.size :]).get(ADDRESS, b"")
    return Neighbour(index, socket.inet_ntop(family, packed)) if len(packed) == SIZES[family] else None
