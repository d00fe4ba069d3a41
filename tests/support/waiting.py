# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for conditions in other processes, with a limit."""

from __future__ import annotations

import linecache
import sys
import time

LIMIT_S = 20


def until(condition, what="", limit=LIMIT_S):
    """Wait until a condition is true; return its value. Fail after the limit in seconds.

    :param what: the message of the failure, or a function that returns it; '' names the line that waits
    """
    what = what or f"it did not happen in time: {_line_of(sys._getframe(1))}"
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.005)


def happens(condition, limit=LIMIT_S):
    """Return whether a condition becomes true within the limit in seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _line_of(frame):
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
