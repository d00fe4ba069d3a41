# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detects stalls of this machine's processors, as a virtual machine has them when its host is busy.

On each processor a process with a higher priority than the programs under test sleeps for 2 ms at a time, and records
when it woke up late. In such a stall every timer of the programs under test is late, too, so a measurement in that
moment says nothing about them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

SLEEP = 0.002
MIN_STALL = 0.005  # seconds: half of the shortest advertisement interval in these tests
PRIORITY = 50  # real-time, above keepalived's, the agents' and the recorder's


def sleeps(clock, sleep):
    """Sleep again and again; yield the begin and the end of each sleep that was a stall, and None for another one."""
    before = clock()
    while True:
        sleep(SLEEP)
        now = clock()
        yield (before, now) if now - before > SLEEP + MIN_STALL else None
        before = now


def watch(processor, parent):
    """Print the begin and the end of each stall until the parent ends, by the clock that stamps frames."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    for stall in sleeps(time.time, time.sleep):
        if os.getppid() != parent:
            return
        if stall:
            print(*stall, flush=True)


class Watcher:
    """The process on one processor, and its output."""

    def __init__(self, processor):
        # Each process writes into its own file, so that lines do not mix.
        self._output = os.memfd_create("stalls")
        command = [sys.executable, __file__, str(processor), str(os.getpid())]
        self.process = subprocess.Popen(command, stdout=self._output)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._output)

    def stalls(self):
        """Return the begin and the end of each stall so far."""
        output = os.pread(self._output, os.fstat(self._output).st_size, 0).decode()
        return [tuple(map(float, line.split())) for line in output.split("\n")[:-1]]


class StallDetector:
    """Watches all processors until it is closed."""

    def __init__(self):
        self.watchers = [Watcher(processor) for processor in os.sched_getaffinity(0)]

    def close(self):
        for watcher in self.watchers:
            watcher.close()

    def stalls(self, since, until):
        """Return the begin and the end of each stall that overlaps a period."""
        stalls = [stall for watcher in self.watchers for stall in watcher.stalls()]
        return [(begin, end) for begin, end in stalls if begin < until and end > since]

    def stalled(self, since, until):
        """Return for how many seconds of a period at least one processor was stalled."""
        stalled, counted = 0.0, since
        for begin, end in sorted(self.stalls(since, until)):
            begin, end = max(begin, counted), min(end, until)
            stalled, counted = stalled + max(end - begin, 0.0), max(counted, end)
        return stalled


if __name__ == "__main__":
    watch(*map(int, sys.argv[1:]))
