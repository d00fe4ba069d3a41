# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel's table of neighbours as rtnetlink(7) has it. Pure functions over the bodies of messages."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple, Optional

from . import messages
from .arp import mac_text

# <linux/rtnetlink.h> and <linux/neighbour.h>
NEW_NEIGHBOUR, GET_NEIGHBOUR = 28, 30
GROUP = 3  # RTNLGRP_NEIGH
ADDRESS, MAC = 1, 2  # NDA_DST, NDA_LLADDR
INCOMPLETE = 0x01  # NUD_INCOMPLETE: the kernel has asked for the MAC, and goes on asking once a second
KNOWN = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80  # reachable, stale, delay, probe, noarp and permanent: it has a MAC
USE = 0x01  # NTF_USE: as if a packet were sent to it
SIZES = {socket.AF_INET: 4, socket.AF_INET6: 16}
MAC_SIZE = 6

# struct ndmsg: family, index of the interface, state, flags, type.
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
EVERY = bytes(_NEIGHBOUR.size)  # the body of a request for all neighbours


class Neighbour(NamedTuple):
    """A host on a link.

    :ivar mac: '' as long as the kernel does not know it
    """

    index: int  # type: ignore[assignment]  # of the interface; a tuple has a method of that name
    address: str
    mac: str = ""


def unanswered_in(message: bytes) -> Optional[Neighbour]:
    """Return the neighbour that a message is about if the kernel asks for its MAC, None if not."""
    return _read(message, INCOMPLETE)


def known_in(message: bytes) -> Optional[Neighbour]:
    """Return the neighbour that a message is about if the kernel knows its MAC, None if not."""
    found = _read(message, KNOWN)
    return found if found and found.mac else None


def question(index: int, address: str) -> bytes:
    """Return the message that makes the kernel ask for a neighbour's MAC, or whether it still has that."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return _NEIGHBOUR.pack(family, index, 0, USE, 0) + messages.attribute(ADDRESS, socket.inet_pton(family, address))


def _read(message: bytes, states: int) -> Optional[Neighbour]:
    """Return the neighbour that a message is about if it is in one of some states."""
    if len(message) < _NEIGHBOUR.size:
        return None
    family, index, state, _flags, _type = _NEIGHBOUR.unpack_from(message)
    if not state & states or family not in SIZES:
        return None
    found = messages.attributes(message[_NEIGHBOUR.size :])
    packed, mac = found.get(ADDRESS, b""), found.get(MAC, b"")
    if len(packed) != SIZES[family]:
        return None
    return Neighbour(index, socket.inet_ntop(family, packed), mac_text(mac) if len(mac) == MAC_SIZE else "")
