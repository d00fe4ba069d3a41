"""Compares the embedded agent as a VRRP router with keepalived, in turns, in network namespaces. Needs root.

    python3 bench/vrrp.py
    ONLY=takeover ROUNDS=30 python3 bench/vrrp.py      # takeover, footprint, load
    ONLY=load SECONDS=600 python3 bench/vrrp.py        # ten minutes beside busy processes

Prints medians and ratios; on a noisy machine only the ratios are meaningful. All times are the kernel's timestamps of
frames. Both have realtime scheduling, and both track a file. Exits with 1 if a ratio is greater than its bound.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys

import stage
import tables
from support.netns.links import skip_reason

PARTS = ("takeover", "footprint", "load")


def main() -> None:
    if skip_reason("keepalived"):
        print(f"bench/vrrp.py: skipped: {skip_reason('keepalived')}")
        return
    # So that contexts clean up.
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(1))
    utils = stage.ROOT / "plugins" / "module_utils"
    command = [sys.executable, str(utils / "_host" / "deploy" / "archive.py"), str(utils / "_agent"), str(stage.PYZ)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for part in os.environ.get("ONLY", ",".join(PARTS)).split(","):
        importlib.import_module(part).measure()
    if tables.missed:
        sys.exit("\n".join(["\nout of bounds:", *tables.missed]))


if __name__ == "__main__":
    main()
