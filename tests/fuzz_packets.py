"""The decoder of VRRP's packets against a million mutated ones, and a second opinion on each.

    python3 tests/fuzz_packets.py --packets 1000000 --seed 5798

Prints the seed, progress and the verdicts' figures. Exits 1 at the first wrong verdict, with its bytes in hex.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from support import collection

collection.make_importable()
from support.vrrp import mutations  # noqa: E402

STEP = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="without it a new one each time")
    chosen = parser.parse_args()
    print(f"{chosen.packets} packets, seed {chosen.seed}", flush=True)
    begin = time.monotonic()

    def tell(done: int) -> None:
        if done % STEP == 0:
            print(f"{done} packets, {time.monotonic() - begin:.0f} s", flush=True)

    try:
        counts = mutations.run(chosen.packets, chosen.seed, tell)
    except AssertionError as error:
        sys.exit(str(error))
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"{name:<16}{count:>9}")
    print(f"all verdicts right, {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
