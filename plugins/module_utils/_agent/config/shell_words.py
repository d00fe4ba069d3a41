# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The words of a text as a shell splits it, without a shell. Pure."""

from __future__ import annotations

from typing import List

# What is wrong, by a word of what shlex says.
UNFINISHED = {
    "quotation": "a quote has no end: close it.",
    "escaped": "it ends in a backslash, which escapes nothing there: leave it out.",
}


class Unfinished(ValueError):
    """A text ends within a word. The message follows "PLACE is VALUE: "."""


def split(text: str) -> List[str]:
    """Return the words of a text."""
    import shlex  # which costs a daemon memory

    try:
        return shlex.split(text)
    except ValueError as error:
        raise Unfinished(next(why for word, why in UNFINISHED.items() if word in str(error))) from None
