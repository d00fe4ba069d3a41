# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How long each answer took, on a logarithmic axis, and which connections had none."""

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Optional

from .lanes import Span, event_span, ticks, time_axis
from .rounds import SILENT, SKIPPED, Round, told
from .scales import WIDTH, Logarithmic, Tick, duration

SILENT_Y, TOP, BOTTOM, HEIGHT = 8.0, 30.0, 130.0, 150.0
LOW_MS, HIGH_MS = 0.1, 100.0  # the axis has these at least


class Dots(NamedTuple):
    """The answers of one tone, as an SVG path of dots. Those that fall on one place are drawn once."""

    tone: str
    answers: int
    path: str


class Latency(NamedTuple):
    width: float
    height: float
    top: float
    bottom: float
    silent_y: float
    ticks: List[Tick]
    levels: List[Tick]
    event: Optional[Span]
    dots: List[Dots]


def latency(drawn: Round, tone_of: Dict[str, str]) -> Latency:
    slowest = max((answer.latency_ms or 0.0 for answer in drawn.answers), default=0.0)
    high = 10.0 ** math.ceil(math.log10(max(slowest, HIGH_MS)) - 1e-9)
    across, up = time_axis(drawn), Logarithmic(LOW_MS, high, BOTTOM, TOP)
    places: Dict[str, Dict[str, int]] = {}
    for answer, tone, _words in told(drawn, tone_of):
        if tone != SKIPPED:
            y = SILENT_Y if tone == SILENT else up.y(answer.latency_ms or LOW_MS)
            place = f"M{round(across.x(answer.at_ms)):g} {round(y):g}h0"
            seen = places.setdefault(tone, {})
            seen[place] = seen.get(place, 0) + 1
    return Latency(
        width=WIDTH,
        height=HEIGHT,
        top=TOP,
        bottom=BOTTOM,
        silent_y=SILENT_Y,
        ticks=ticks(across),
        levels=[Tick(up.y(value), duration(value)) for value in up.ticks()],
        event=event_span(drawn, across),
        dots=[Dots(tone, sum(seen.values()), "".join(seen)) for tone, seen in places.items()],
    )
