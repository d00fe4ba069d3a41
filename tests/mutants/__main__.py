# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python3 tests/mutants --count 200`: puts breaks into copies of the checkout, and runs the tests of the broken files.

A break that no test finds is a line: where it is, and what it does. `--seed 17` tries the same breaks again.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator, List

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]  # this folder is run as a script, not as a package

from mutants.copies import FAILS_ANYWAY, FOUND, Copy, Verdict, copies  # noqa: E402
from mutants.sample import Mutant, draw, stages  # noqa: E402

AT_ONCE = os.cpu_count() or 1


def judge_all(mutants: List[Mutant], at_once: int = AT_ONCE) -> Iterator[Verdict]:
    """Yield what came of each break, in their order."""
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()

    def judge(mutant: Mutant) -> Verdict:
        copy = free.get()
        try:
            return copy.judge(mutant, stages(mutant.path))
        finally:
            free.put(copy)

    with copies(at_once) as made, ThreadPoolExecutor(at_once) as pool:
        for copy in made:
            free.put(copy)
        try:
            yield from pool.map(judge, mutants)
        finally:
            pool.shutdown(cancel_futures=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="of breaks")
    parser.add_argument("--seed", type=int, help="of the sample; by default a new one")
    parser.add_argument("--strict", action="store_true", help="a break that no test finds is an error")
    given = parser.parse_args()
    seed = random.randrange(1 << 32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    outcomes: Counter[str] = Counter()
    for mutant, outcome in judge_all(draw(given.count, seed)):
        outcomes[outcome] += 1
        if outcome != FOUND:
            print(f"{outcome}: {mutant}", flush=True)
    print(f"seed {seed}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return int(FAILS_ANYWAY in outcomes or (given.strict and set(outcomes) != {FOUND}))


if __name__ == "__main__":
    sys.exit(main())
