# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lanes: which member held the VIP when, and when the event was on which member."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional

from .rounds import Round
from .scales import WIDTH, Linear, Tick, duration

HEIGHT, PITCH, TOP = 16.0, 24.0, 4.0
LABEL = 14  # characters that fit before a lane


class Span(NamedTuple):
    """A time on a lane."""

    x: float
    width: float
    title: str


class Lane(NamedTuple):
    """A member."""

    y: float
    name: str
    title: str
    tone: str
    held: List[Span]
    event: Optional[Span]


class Lanes(NamedTuple):
    width: float
    height: float
    lane_height: float
    ticks: List[Tick]
    lanes: List[Lane]


def lanes(drawn: Round, tone_of: Dict[str, str]) -> Lanes:
    """Draw a lane for each holder of the report, and for the member of the event."""
    axis = time_axis(drawn)
    names = list(dict.fromkeys([*tone_of, drawn.member]))
    found = [_lane(drawn, axis, name, tone_of.get(name, ""), TOP + row * PITCH) for row, name in enumerate(names)]
    return Lanes(WIDTH, TOP + len(names) * PITCH + 16, HEIGHT, ticks(axis), found)


def time_axis(drawn: Round) -> Linear:
    return Linear(max(drawn.length_ms, 1.0))


def ticks(axis: Linear) -> List[Tick]:
    return [Tick(axis.x(at), duration(at) if at else "0") for at in axis.ticks()]


def event_span(drawn: Round, axis: Linear) -> Optional[Span]:
    """Return the time from the event until it was reverted."""
    if drawn.begin_ms is None or drawn.end_ms is None:
        return None
    title = f"{drawn.event} on {drawn.member}, from {drawn.begin_ms / 1000:.3f} to {drawn.end_ms / 1000:.3f} s"
    return _span(axis, drawn.begin_ms, drawn.end_ms, title)


def _lane(drawn: Round, axis: Linear, name: str, tone: str, y: float) -> Lane:
    held = [
        _span(axis, each.begin_ms, each.end_ms, f"{name} held the VIP, {_times(each.begin_ms, each.end_ms)}")
        for each in drawn.holdings
        if name in each.holders
    ]
    shown = name if len(name) <= LABEL else f"{name[: LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    return Lane(y, shown, name, tone, held, event_span(drawn, axis) if name == drawn.member else None)


def _times(begin_ms: float, end_ms: float) -> str:
    return f"from {begin_ms / 1000:.3f} to {end_ms / 1000:.3f} s"


def _span(axis: Linear, begin_ms: float, end_ms: float, title: str) -> Span:
    begin, end = axis.x(begin_ms), axis.x(end_ms)
    return Span(begin, max(1.0, round(end - begin, 2)), title)
