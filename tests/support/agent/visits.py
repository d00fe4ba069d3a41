# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that visit what a loop serves, from a thread of their own."""

from __future__ import annotations

import os
import threading

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import MILLION

LIMIT = 20 * MILLION


def while_running(loop, visit):
    """Return what a client gets that visits from another thread while the loop runs here."""
    reading, writing = os.pipe()
    got = []

    def go():
        try:
            got.append(visit())
        finally:
            os.write(writing, b".")

    client = threading.Thread(target=go, daemon=True)
    limit = loop.after(LIMIT, loop.stop)
    loop.watch(reading, lambda _events: loop.stop())
    client.start()
    loop.run()
    limit.cancel()
    loop.forget(reading)
    client.join(5)
    os.close(reading)
    os.close(writing)
    return got[0]
