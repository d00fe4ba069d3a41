# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks for ``schema.Field`` of values that haproxy, or a shell in its unit, would refuse or misread."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional, Tuple

Checked = Tuple[Any, Optional[str]]

# haproxy's units of time, in seconds; without one a number is milliseconds.
UNITS = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = 2147483.647  # seconds, some 24 days: haproxy counts milliseconds in 31 bits
DOWN_FILE = re.compile(r"/[\w./-]+")


def seconds(value: Any) -> Checked:
    """A time as it is written in haproxy.cfg; returned in seconds."""
    found = re.fullmatch(r"(\d+)(us|ms|s|m|h|d|)", str(value))
    if not found:
        return None, "a time such as 500ms, 30s or 1h is wanted."
    number = int(found.group(1)) * UNITS[found.group(2)]
    return (int(number) if float(number).is_integer() else number), None


def time(value: Any) -> Checked:
    """A time for haproxy.cfg itself, returned as it is written."""
    found, wrong = seconds(value)
    if not wrong and found > LONGEST:
        wrong = "haproxy takes at most 24d."
    return (None, wrong) if wrong else (str(value), None)


def optional(check: Callable[[Any], Checked]) -> Callable[[Any], Checked]:
    """Nothing, for the program's own default, or what passes a check."""
    return lambda value: (value, None) if value == "" else check(value)


def down_file(value: Any) -> Checked:
    """A path that a shell in a unit reads as one word."""
    if isinstance(value, str) and DOWN_FILE.fullmatch(value):
        return value, None
    return None, "a whole path of letters, digits and . _ - / is wanted."
