# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How long a process has waited for an answer, if it may itself be late. Pure.

What a process was not woken for, it cannot have seen; and what kept it waiting may have kept the other one waiting as
well. So it waits in steps, and is late at each by so much: that counts for nothing. An answer is missing when it was
waited for long enough without that. A step at which it was later than a whole step counts for nothing at all: a
process that is never on time does not know, and goes on waiting.
"""

from __future__ import annotations

from typing import NamedTuple

STEPS = 5  # of one wait


class Patience(NamedTuple):
    """A wait that has begun. Times are in microseconds, of a clock that may jump ahead."""

    limit: int
    wake: int  # when the process wants to be woken
    waited: int = 0
    late: int = 0  # in all

    @property
    def is_over(self) -> bool:
        """Whether the answer is missing."""
        return self.waited >= self.limit


def begin(limit: int, now: int) -> Patience:
    return Patience(limit, now + _step(limit))


def woken(patience: Patience, now: int) -> Patience:
    """Return the wait after one more step."""
    step, late = _step(patience.limit), max(0, now - patience.wake)
    waited = patience.waited + (step if late <= step else 0)
    return patience._replace(wake=now + step, waited=waited, late=patience.late + late)


def _step(limit: int) -> int:
    return max(1, -(-limit // STEPS))
