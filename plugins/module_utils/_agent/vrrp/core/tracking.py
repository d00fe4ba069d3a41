# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a tracked object changes a Virtual Router's priority, as keepalived defines it. Pure.

A reading is a change of the priority, or ``FAULT``: the Virtual Router must not be Active at all.
"""

from __future__ import annotations

from typing import Mapping, Optional

LOWEST, HIGHEST, OWNER = 1, 254, 255  # RFC 9568 section 5.2.4: 0 resigns, 255 owns the addresses
FAULT = None

PriorityDelta = Optional[int]


def check(weight: int, up: bool) -> PriorityDelta:
    """Read a script, a process, an interface: a positive weight is added while it is up, a negative one while down.

    Without a weight its failure is a FAULT.
    """
    if not weight:
        return 0 if up else FAULT
    return weight if (weight > 0) == up else 0


def file(weight: int, value: int) -> PriorityDelta:
    """Read a track file: the number in it times the weight; a sum that takes every priority away is a FAULT.

    Without a weight any number but 0 is a FAULT.
    """
    if not weight:
        return FAULT if value else 0
    change = value * weight
    return FAULT if change <= -HIGHEST else min(change, HIGHEST)


def in_fault(readings: Mapping[str, PriorityDelta]) -> bool:
    return any(change is FAULT for change in readings.values())


def effective(base: int, readings: Mapping[str, PriorityDelta]) -> int:
    """Return the priority to advertise. The address owner's never changes, and no other reaches 0 or 255."""
    if base == OWNER or not readings:
        return base
    change = sum(filter(None, readings.values()))
    return max(LOWEST, min(HIGHEST, base + change)) if change else base
