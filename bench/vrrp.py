"""The embedded agent as a VRRP router beside keepalived, in turn, in one run, in network namespaces. Needs root.

    python3 bench/vrrp.py
    ONLY=takeover ROUNDS=30 python3 bench/vrrp.py      # takeover, weight, load
    ONLY=load SECONDS=600 python3 bench/vrrp.py        # ten minutes beside busy processes

Prints medians and, what alone means anything on a noisy machine, the ratios. All times are of the kernel's stamps on
frames. Both are scheduled in real time, and both have a file to track.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys

import stage
from support.netns.links import why_not

PARTS = ("takeover", "weight", "load")


def main() -> None:
    if why_not("keepalived"):
        print(f"bench/vrrp.py: skipped: {why_not('keepalived')}")
        return
    # Ended like that it still removes what it has made.
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(1))
    utils = stage.ROOT / "plugins" / "module_utils"
    command = [sys.executable, str(utils / "_host" / "deploy" / "archive.py"), str(utils / "_agent"), str(stage.PYZ)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for part in os.environ.get("ONLY", ",".join(PARTS)).split(","):
        importlib.import_module(part).measure()


if __name__ == "__main__":
    main()
