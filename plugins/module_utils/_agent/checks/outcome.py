# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The outcome of one run of a check, and the interface of everything that can be run."""

from __future__ import annotations

import os
from typing import Callable, NamedTuple

from ..runtime.loop import MILLION


class Outcome(NamedTuple):
    """The end of one run."""

    success: bool
    detail: str = ""  # why it failed, or what was answered
    duration: int = 0  # microseconds
    value: int = 0  # the number in a file
    known: bool = True  # whether it says anything: a check that could not be made does not, and counts as its success


Done = Callable[[Outcome], None]


class Probe:
    """Produces one outcome per ``start``."""

    def start(self, done: Done) -> None:
        """Begin a run; ``done`` is called once at its end, which may be before this returns."""
        raise NotImplementedError

    def stop(self) -> None:
        """Abort the run under way: ``done`` is not called any more."""
        raise NotImplementedError


def in_words(fault: Exception) -> str:
    """Return the text of an error, such as 'connection refused'."""
    number = getattr(fault, "errno", None)
    return lower(os.strerror(number)) if number else str(fault)[:200]


def lower(sentence: str) -> str:
    """Return a sentence as a part of another one. An abbreviation at its start, such as IP, stays what it is."""
    first = sentence[:1] if sentence[1:2].isupper() else sentence[:1].lower()
    return first + sentence[1:].rstrip(".")


def seconds(duration: int) -> str:
    """Return microseconds as text."""
    return f"{duration / MILLION:g} s"
