"""Detects stalls of a processor, in which it runs no process of any priority: a hypervisor may suspend it.

    python3 bench/stalls.py PROCESSOR SECONDS

Prints when each stall began, in seconds since 1970, and how long it lasted.
"""

from __future__ import annotations

import os
import sys
import time

PRIORITY = 10  # as the agent's and keepalived's
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
