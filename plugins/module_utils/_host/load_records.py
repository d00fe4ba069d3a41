# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a unit or a container records of the file that its program has loaded: see `in_force`. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple


class Record(NamedTuple):
    """Such a record: ``sha256sum FILE; cat /proc/uptime``."""

    checksum: str = ""
    config: str = ""
    uptime: float = 0.0  # seconds since boot


def read_record(text: str) -> Record:
    """Return a record; an empty one if the text is none."""
    found = re.fullmatch(r"([0-9a-f]{64})  (/.*)\n(\d+\.\d+) .*\n", text)
    return Record(found[1], found[2], float(found[3])) if found else Record()
