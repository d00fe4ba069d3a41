# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock for drills, which measure: nothing else changes the hosts of this machine meanwhile.

A drill has it alone. Runs share it, each from its begin to its end: one that a drill would stop half-way gives no sign
of life, and its members take back what it has changed.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "lab"
ALONE, SHARED = fcntl.LOCK_EX, fcntl.LOCK_SH


def take(kind: int, folder: Path = FOLDER) -> IO[bytes]:
    """Wait for the lock; closing the file releases it, and so does the end of the process.

    Whoever waits for it keeps later ones waiting, so that a drill has its turn while runs follow each other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "drill.turn", "ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        lock = open(folder / "drill.lock", "ab")  # noqa: SIM115 - the caller closes it
        fcntl.flock(lock, kind)
    return lock


def wait_for_drills(folder: Path = FOLDER) -> None:
    """Return as soon as no drill runs, nor waits for its turn."""
    take(SHARED, folder).close()
