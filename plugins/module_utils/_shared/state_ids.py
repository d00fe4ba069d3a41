# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The ID of a saved state or of a backup: the time at which it was saved, such as ``20260131T120000Z``.

And what the state is called that a rollback leaves.
"""

from __future__ import annotations

import re

ID = re.compile(r"\d{8}T\d{6}Z")
PURPOSE = "a rollback to {}"  # of the state that a rollback saves before it begins
RETURNED = re.compile(PURPOSE.format(r"(\S+)"))
_PARTS = ((0, 4, "-"), (4, 6, "-"), (6, 8, " "), (9, 11, ":"), (11, 13, ":"), (13, 15, " UTC"))


def when(given: str) -> str:
    """Return an ID as a time that people read."""
    return "".join(given[begin:end] + after for begin, end, after in _PARTS)
