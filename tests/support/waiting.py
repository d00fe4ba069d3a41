# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""To wait for what happens in other processes, and not for ever."""

from __future__ import annotations

import time

LIMIT_S = 20


def until(condition, what="it did not happen in time", limit=LIMIT_S):
    """Ask again and again.

    :param what: to say when the limit has passed, or a function that says it then
    """
    late = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < late, what() if callable(what) else what
        time.sleep(0.005)
