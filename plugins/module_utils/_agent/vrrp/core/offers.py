# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An Active router whose balancer does not answer offers its addresses to the others, and keeps them meanwhile. Pure.

Its priority is lower than that of every router whose balancer answers. Alone that would do little: they would wait
until they have heard nothing better for three intervals, and those that do not preempt would wait for ever. So it
advertises priority 0 as well. A router whose balancer answers has a high priority, and takes over after its Skew_Time.
The Skew_Time of one whose balancer does not is longer: before it is over, the Active router advertises again. So the
addresses leave only for a balancer that answers. What this costs the others, if none does, is a message.
"""

from __future__ import annotations

from typing import Iterator

SECOND = 1_000_000
EVERY = SECOND  # while it holds them
FIRST = 3  # offers in a row; each message may be lost
RARELY = 4  # seconds between those after that: one whose checks succeed again is not kept waiting
SETTLED = SECOND // 20  # from the lower priority to the first offer: who takes over must not meet the higher one


def patience(priority: int, unit: int) -> int:
    """Return after how many microseconds an Active router advertises again.

    That is between the Skew_Time of the lowest priority whose balancer answers and that of a lowered one, which is 1:
    see `_plan.model.answers`, which chooses the weight.

    :param priority: the configured one
    :param unit: of Skew_Time, in microseconds
    """
    return (511 - priority) * unit // 512


def is_due(failures: int) -> bool:
    """Whether an offer follows a question without an answer, of so many since the priority was lowered."""
    return 0 < failures <= FIRST or (failures > 0 and failures % RARELY == 0)


def delay(number: int, interval: int) -> int:
    """Return how long after a question that was not answered an offer follows, in microseconds.

    An Advertisement of the Active router that falls into the other one's Skew_Time has one that does not preempt wait
    anew. So the offers fall on different moments between two of them.

    :param number: of the question, the first is 1
    :param interval: between two Advertisements
    """
    return SETTLED + (number - 1) % FIRST * interval // FIRST


def moments(interval: int) -> Iterator[int]:
    """Yield how long after the lower priority the first offers follow."""
    return ((number - 1) * EVERY + delay(number, interval) for number in range(1, FIRST + 1))
