# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Durations that a promise bounds, judged over several rounds.

One round says little: the machine may have been busy in it. The caller subtracts the stalls that `StallDetector`, which
does not belong to what is measured, saw in a round.
"""

from __future__ import annotations

import math
from typing import Sequence

ROUNDS = 10
SHARE = 0.8  # of the rounds must keep a bound


def percentile(durations: Sequence[float]) -> float:
    """Return the duration that SHARE of at least ROUNDS rounds do not exceed."""
    assert len(durations) >= ROUNDS, f"{len(durations)} rounds say too little: play {ROUNDS}"
    return sorted(durations)[math.ceil(SHARE * len(durations)) - 1]
