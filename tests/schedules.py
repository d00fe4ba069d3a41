# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays random schedules of the VRRP state machine: a million of them, or a single one again.

    python3 tests/schedules.py --schedules 1000000 --jobs 2
    python3 tests/schedules.py --seed 4711

The first command plays a million schedules, each with its own seed, and prints progress and figures. At the first
violation it prints the seed and exits with 1. The second command replays the schedule of one seed and prints its
history.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time

from support import collection

collection.make_importable()
from support.vrrp import schedule_judge  # noqa: E402
from support.vrrp.schedule_judge import NOTHING, Figures, Violation  # noqa: E402

CHUNK_SIZE = 500  # schedules that a process plays before it reports
PROGRESS_EVERY = 20  # chunks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=0, help="how many to play; by default one, with its history")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    try:
        if chosen.schedules:
            _print_figures(play_many(chosen.seed, chosen.schedules, chosen.jobs))
        else:
            play_one(chosen.seed)
    except Violation as error:
        sys.exit(str(error))


def play_many(first: int, count: int, jobs: int) -> Figures:
    begin, total, end = time.monotonic(), NOTHING, first + count
    print(f"{count} schedules, seeds {first} to {end - 1}", flush=True)
    chunks = [range(at, min(at + CHUNK_SIZE, end)) for at in range(first, end, CHUNK_SIZE)]
    with multiprocessing.Pool(jobs) as pool:
        for number, figures in enumerate(pool.imap(schedule_judge.play, chunks), 1):
            total = total.plus(figures)
            if number % PROGRESS_EVERY == 0 or number == len(chunks):
                print(f"{total.schedules} schedules, {time.monotonic() - begin:.0f} s", flush=True)
    return total


def _print_figures(figures: Figures) -> None:
    for name, count in sorted(figures.seen.items(), key=lambda item: (-item[1], item[0])):
        print(f"{name:<18}{count:>9}")
    part, seed = figures.latest
    print(f"all properties hold, {figures.changes} changes of state, the latest of them after {part:.2%} of")
    print(f"settling_time (seed {seed})")


def play_one(seed: int) -> None:
    play = schedule_judge.prepare(seed)
    print(f"seed {seed}")
    try:
        latest = schedule_judge.judge(play)
    finally:
        print("\n".join(schedule_judge.history(play)))
    print(f"all properties hold, the last change came after {latest:.2%} of settling_time")


if __name__ == "__main__":
    main()
