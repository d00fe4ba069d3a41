# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake workers without a process, which behave as a test says."""

from __future__ import annotations

import json

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.forked import Forked


class FakeWorker:
    """Replaces ``forked.Forked`` and its process."""

    def __init__(self, pid, end, connection):
        self.pid, self.end, self.connection = pid, end, connection
        self.killed, self.over = False, None
        end.setblocking(False)

    when_ended = Forked.when_ended

    def ending(self):
        return self.over

    def kill(self):
        self.killed = True

    def die(self, how="exit code 1"):
        self.over = how
        self.end.close()

    def heard(self):
        found = []
        while True:
            try:
                found.append(json.loads(self.end.recv(1 << 17)))
            except BlockingIOError:
                return found
