# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this machine kept going while something was timed.

On each processor a process, ahead of all that are tested, sleeps for 2 ms at a time and writes down when it was woken
up late. Then the machine itself stood still, as a virtual one does whose host is busy: every timer of the programs
under test was late, too, and what was measured meanwhile says nothing about them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

NAP = 0.002
LATE = 0.01  # seconds: the shortest interval at which anything advertises here
PRIORITY = 50  # real-time, above keepalived's, the agents' and the recorder's


def watch(processor, parent):
    """Print each pause as long as the parent lives: its end, by the monotonic clock, and its length in seconds."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    before = time.monotonic()
    while os.getppid() == parent:
        time.sleep(NAP)
        now = time.monotonic()
        if now - before > NAP + LATE:
            print(now, now - before, flush=True)
        before = now


class Watcher:
    """The process on one processor, and what it has written."""

    def __init__(self, processor):
        # A file for each: what two write into one at the same time is neither's.
        self._written = os.memfd_create("pauses")
        command = [sys.executable, __file__, str(processor), str(os.getpid())]
        self.process = subprocess.Popen(command, stdout=self._written)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._written)

    def pauses(self):
        """As they were printed."""
        written = os.pread(self._written, os.fstat(self._written).st_size, 0).decode()
        return [tuple(map(float, line.split())) for line in written.split("\n")[:-1]]


class Witness:
    """Watches all processors until it is closed."""

    def __init__(self):
        self._since = time.monotonic()
        self.watchers = [Watcher(processor) for processor in os.sched_getaffinity(0)]

    def close(self):
        for watcher in self.watchers:
            watcher.close()

    def begin(self):
        """Of what is over by now nobody will ask."""
        self._since = time.monotonic()

    def disturbed(self):
        return bool(self.pauses(self._since))

    def pauses(self, since=0.0):
        """The lengths, in seconds, of those that ended after that moment."""
        return [length for watcher in self.watchers for end, length in watcher.pauses() if end > since]


if __name__ == "__main__":
    watch(*map(int, sys.argv[1:]))
