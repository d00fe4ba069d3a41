"""Detects stalls of a processor, in which it runs no process at all, because the hypervisor has suspended it.

    python3 bench/stalls.py PROCESSOR SECONDS

Prints the begin of each stall, in seconds since 1970, and its length in seconds.
"""

from __future__ import annotations

import os
import sys
import time

PRIORITY = 10  # that of the agent and of keepalived
SAMPLE_INTERVAL, MIN_STALL = 0.001, 0.005


def main(processor: str, seconds: str) -> None:
    os.sched_setaffinity(0, {int(processor)})
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    before = time.time()
    end = before + float(seconds)
    while before < end:
        time.sleep(SAMPLE_INTERVAL)
        now = time.time()
        if now - before > SAMPLE_INTERVAL + MIN_STALL:
            print(before, now - before, flush=True)
        before = now


if __name__ == "__main__":
    main(*sys.argv[1:])
