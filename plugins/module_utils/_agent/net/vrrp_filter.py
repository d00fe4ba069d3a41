# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filter of a VRRP socket: the kernel drops messages for other Virtual Routers, so that a flood of them costs this
program nothing. Pure."""

from __future__ import annotations

from typing import Collection, List

from .bpf import (
    ALL_OF_IT,
    EQUAL,
    INDEX_IS,
    INDEX_IS_HEADER_LENGTH,
    LOAD_BYTE_AT_INDEX,
    RETURN,
    SHIFT_RIGHT,
    Step,
)

VERSIONS = (2, 3)
DROP, ACCEPT = (RETURN, 0, 0, 0), (RETURN, 0, 0, ALL_OF_IT)


def program(family: int, vrids: Collection[int]) -> List[Step]:
    """Return the filter that accepts versions 2 and 3 of these VRIDs. The kernel drops messages that are too short.

    :param family: 4 or 6; a raw socket shows the filter IPv4 packets with their header, and IPv6 packets without
    """
    message = (INDEX_IS_HEADER_LENGTH, 0, 0, 0) if family == 4 else (INDEX_IS, 0, 0, 0)
    version = [(LOAD_BYTE_AT_INDEX, 0, 0, 0), (SHIFT_RIGHT, 0, 0, 4), *_one_of(VERSIONS)]
    vrid = [(LOAD_BYTE_AT_INDEX, 0, 0, 1), *_one_of(vrids)]
    return [message, *version, DROP, *vrid, DROP, ACCEPT]


def _one_of(values: Collection[int]) -> List[Step]:
    """Return the steps that skip the one after them if the value that was loaded is one of these."""
    return [(EQUAL, len(values) - at, 0, value) for at, value in enumerate(sorted(values))]
