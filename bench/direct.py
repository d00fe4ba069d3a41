"""Compares direct return with HAProxy and the agent's proxy, in turns, in network namespaces.

Needs root, haproxy, nft, wrk and curl.

    python3 bench/direct.py
    ONLY=lasting CHANGES=10000 python3 bench/direct.py  # planes, lasting, maps

Prints medians and ratios; on a noisy machine only the ratios are meaningful. Exits with 1 if a connection was lost.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

import balancers
from support import collection
from support.netns.links import skip_reason

PARTS = ("planes", "lasting", "maps")


def main() -> None:
    needed = ("haproxy", "nft", "wrk", "curl")
    if skip_reason(*needed):
        print(f"bench/direct.py: skipped: {skip_reason(*needed)}")
        return
    # So that contexts clean up.
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(1))
    collection.make_importable()
    balancers.build()
    parts = os.environ.get("ONLY", ",".join(PARTS)).split(",")
    lost = [part for part in parts if importlib.import_module(part).measure()]
    if lost:
        sys.exit(f"connections were lost: {', '.join(lost)}")


if __name__ == "__main__":
    main()
