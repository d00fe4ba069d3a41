"""Fuzzes the VRRP decoder with a million mutated packets, and compares each verdict with an independent one.

    python3 tests/fuzz_packets.py --packets 1000000 --seed 5798

Prints the seed, the progress and how often each verdict occurred. At the first wrong verdict it prints the packet in
hex and exits with 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from support import collection

collection.make_importable()
from support.vrrp import mutations  # noqa: E402

PROGRESS_EVERY = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="a new one each time by default")
    chosen = parser.parse_args()
    print(f"{chosen.packets} packets, seed {chosen.seed}", flush=True)
    begin = time.monotonic()

    def progress(done: int) -> None:
        if done % PROGRESS_EVERY == 0:
            print(f"{done} packets, {time.monotonic() - begin:.0f} s", flush=True)

    try:
        counts = mutations.run(chosen.packets, chosen.seed, progress)
    except AssertionError as error:
        sys.exit(str(error))
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"{name:<16}{count:>9}")
    print(f"all verdicts right, {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
