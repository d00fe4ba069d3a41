# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""To wait for what happens in other processes, and not for ever."""

from __future__ import annotations

import time

LIMIT_S = 20


def until(condition, what="it did not happen in time", limit=LIMIT_S):
    """Return what a condition returns as soon as that is true; fail when the limit in seconds has passed.

    :param what: to say then, or a function that says it
    """
    late = time.monotonic() + limit
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < late, what() if callable(what) else what
        time.sleep(0.005)


def happens(condition, limit=LIMIT_S):
    """Return whether a condition on another host comes true within the limit in seconds."""
    late = time.monotonic() + limit
    while not condition():
        if time.monotonic() > late:
            return False
        time.sleep(0.2)
    return True
