# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tables in Markdown with aligned columns: readable in a terminal, and fit to be pasted anywhere. Pure."""

from __future__ import annotations

from typing import List, Sequence


def table(lines: Sequence[Sequence[str]]) -> List[str]:
    """Return the lines of a table; the first of the given ones is its head."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    aligned = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    return [aligned[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *aligned[1:]]
