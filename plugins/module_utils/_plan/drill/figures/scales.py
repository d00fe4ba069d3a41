# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a value is on an axis, and which values have a tick."""

from __future__ import annotations

import math
from typing import List, NamedTuple

WIDTH = 900.0  # of every figure
LEFT, RIGHT = 104.0, 884.0  # the ends of every axis from left to right
STEPS = (1, 2, 5, 10)


class Tick(NamedTuple):
    """A value that is written at an axis."""

    at: float
    label: str


class Linear(NamedTuple):
    """An axis from the left to the right that begins at 0."""

    end: float

    def x(self, value: float) -> float:
        """Return the place of a value; beyond the end there is none."""
        return round(LEFT + (RIGHT - LEFT) * min(max(value, 0), self.end) / self.end, 2)

    def ticks(self) -> List[float]:
        """Return some five round values."""
        step = nice(self.end / 5)
        return [step * at for at in range(int(self.end / step + 1e-9) + 1)]


class Logarithmic(NamedTuple):
    """An axis from the bottom to the top, between two powers of ten."""

    low: float
    high: float
    bottom: float
    top: float

    def y(self, value: float) -> float:
        share = math.log10(min(max(value, self.low), self.high) / self.low) / math.log10(self.high / self.low)
        return round(self.bottom + (self.top - self.bottom) * share, 1)

    def ticks(self) -> List[float]:
        """Return the powers of ten."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def nice(value: float) -> float:
    """Return the next round value that is not smaller."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in STEPS if step * power >= value * (1 - 1e-9))


def exact(milliseconds: float) -> str:
    """Return a measured time. From 10 ms on its fractions say nothing."""
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{round(milliseconds, 1):g} ms"


def duration(milliseconds: float) -> str:
    """Return the value of a tick: in seconds from one second on."""
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds:g} ms"
