# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lines of what a program has printed say why it failed. Pure."""

from __future__ import annotations

import itertools
from typing import List

TRACEBACK = "Traceback (most recent call last):"
LEFT_OUT = "..."
FIRST, LAST = 1, 3  # lines that stay of a longer text


def cause_in(output: str) -> List[str]:
    """Return the lines that say it: of a traceback the exception, else all, or the first and the last ones of many.

    A shell says in its first line what it lacks, and advises after that; others end with what stopped them.
    """
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    begins = [number for number, line in enumerate(lines, 1) if line.endswith(TRACEBACK)]
    after = itertools.dropwhile(lambda line: line.startswith("  "), lines[begins[-1] :] if begins else ())
    said = [line.strip() for line in after] or [line.strip() for line in lines]
    return said if len(said) <= FIRST + 1 + LAST else [*said[:FIRST], LEFT_OUT, *said[-LAST:]]
