"""Notes when a processor runs nobody, however urgent: as a guest's does while its host has something better to do.

    python3 bench/standstill.py PROCESSOR SECONDS

Prints when each standstill began, in seconds since 1970, and how long it lasted.
"""

from __future__ import annotations

import os
import sys
import time

URGENCY = 10  # as the agent's and keepalived's
NAP, WORTH_TELLING = 0.001, 0.005


def main(processor: str, seconds: str) -> None:
    os.sched_setaffinity(0, {int(processor)})
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(URGENCY))
    before = time.time()
    end = before + float(seconds)
    while before < end:
        time.sleep(NAP)
        now = time.time()
        if now - before > NAP + WORTH_TELLING:
            print(before, now - before, flush=True)
        before = now


if __name__ == "__main__":
    main(*sys.argv[1:])
