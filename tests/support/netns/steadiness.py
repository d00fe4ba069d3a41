# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When this machine stood still while something was timed.

On each processor a process, ahead of all that are tested, sleeps for 2 ms at a time and writes down when it was woken
up late. Then the machine itself stood still, as a virtual one does whose host is busy: every timer of the programs
under test was late, too, and what was measured in that moment says nothing about them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

NAP = 0.002
LATE = 0.005  # seconds: half of the shortest interval at which anything advertises here
PRIORITY = 50  # real-time, above keepalived's, the agents' and the recorder's


def watch(processor, parent):
    """Print each pause as long as the parent lives: its begin and end, by the clock that stamps the frames."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    before = time.time()
    while os.getppid() == parent:
        time.sleep(NAP)
        now = time.time()
        if now - before > NAP + LATE:
            print(before, now, flush=True)
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
        self.watchers = [Watcher(processor) for processor in os.sched_getaffinity(0)]

    def close(self):
        for watcher in self.watchers:
            watcher.close()

    def pauses(self, since, until):
        """(begin, end) of those that touch that time."""
        pauses = [pause for watcher in self.watchers for pause in watcher.pauses()]
        return [(begin, end) for begin, end in pauses if begin < until and end > since]


if __name__ == "__main__":
    watch(*map(int, sys.argv[1:]))
