# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for conditions in other processes.

A test judges which event came, and in which order. LIMIT_S is the only upper bound on a time in the quick scope. It
means that something never came, so it is generous: a busy machine that stalls for seconds does not reach it.
"""

from __future__ import annotations

import linecache
import sys
import time

LIMIT_S = 90
MOMENT_S = 0.05  # for which a test looks for what must not come


def pause(seconds):
    """Let a peer of the tested program take its time. What follows must not depend on how long that was."""
    time.sleep(seconds)


def rest(took):
    """Return how long to wait after a look that took so long: what looks all the time keeps others from their work."""
    return min(max(4 * took, 0.005), 0.1)


def until(condition, what="", limit=LIMIT_S):
    """Wait until a condition is true; return its value. Fail after the limit in seconds.

    :param what: the message of the failure, or a function that returns it; '' names the line that waits
    """
    what = what or f"it did not happen in time: {_line_of(sys._getframe(1))}"
    began = time.monotonic()
    deadline = began + limit
    while True:
        value = condition()
        if value:
            return value
        looked = time.monotonic()
        assert looked < deadline, what() if callable(what) else what
        time.sleep(rest(looked - began))
        began = time.monotonic()


def happens(condition, limit=LIMIT_S):
    """Return whether a condition becomes true within the limit in seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def stays(condition, seconds):
    """Fail as soon as a condition is false; return after so many seconds in which it was true.

    For what must not happen: a slow machine looks less often, and refuses nothing that is right.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), f"it did not stay so: {_line_of(sys._getframe(1))}"
        time.sleep(0.005)


def _line_of(frame):
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
