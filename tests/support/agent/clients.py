# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients, in their own thread, of servers in a loop."""

from __future__ import annotations

import os
import threading

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import MILLION

from support.waiting import LIMIT_S

LIMIT = LIMIT_S * MILLION


def while_running(loop, request):
    """Run the loop while a thread makes a request; return the result of the request."""
    reading, writing = os.pipe()
    results = []

    def run():
        try:
            results.append(request())
        finally:
            os.write(writing, b".")

    client = threading.Thread(target=run, daemon=True)
    limit = loop.after(LIMIT, loop.stop)
    loop.watch(reading, lambda _events: loop.stop())
    client.start()
    loop.run()
    limit.cancel()
    loop.forget(reading)
    client.join(LIMIT_S)
    os.close(reading)
    os.close(writing)
    return results[0]
