# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks processes, with the test in the place of the VRRP process; and checks for them."""

from __future__ import annotations

import socket

from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.client import Checks
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import FILE, SCRIPT, Check

from support.agent.loops import LIMIT, SECOND, run_until
from support.agent.programs import ME, shell

AGAIN = SECOND // 20  # the interval of checks whose second run is wanted


class Vrrp:
    """Replaces the VRRP process."""

    def __init__(self, loop):
        self.loop, self.results, self.messages, self.runs = loop, [], [], []
        self.checks = Checks.start(loop, self.results.append, self.messages.append, self.runs.append)

    def apply(self, *checks):
        self.checks.apply(checks, ME)

    def hears(self, name, **fields):
        """Wait for a result of a check; return the newest one."""

        def found():
            return [
                result for result in self.results if result.name == name and fields.items() <= result._asdict().items()
            ]

        run_until(self.loop, found)
        return found()[-1]

    def hears_nothing(self, duration=SECOND // 5):
        before, late = len(self.results), self.loop.now() + duration
        run_until(self.loop, lambda: self.loop.now() > late)
        assert self.results[before:] == []


def track(tmp_path, number=0):
    path = tmp_path / "track"
    path.write_text(str(number), encoding="ascii")
    return path, Check("track", FILE, file=str(path))


def script(line, name="script", **fields):
    """Return a check by a script, which a busy machine may stop for seconds."""
    return Check(name, SCRIPT, **{"interval": AGAIN, "timeout": LIMIT, "command": shell(line), **fields})


def readable(connection):
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
