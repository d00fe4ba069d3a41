# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""For how long the VIP was gone: as measured, under it as the forecast allows, and under that as it was before."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from .scales import LEFT, WIDTH, Linear, Tick, duration, exact, nice

HEIGHT, PITCH, TOP = 14.0, 22.0, 4.0
ROOM = 1.3  # of the axis beyond the longest bar, for its figure
LEAST_MS = 10.0
THIN = ("measured", "before")  # those with a thin line, to the worst round


class Bar(NamedTuple):
    """A quantity.

    :ivar to: where a thin line ends that goes on from the bar: the worst round
    """

    tone: str
    y: float
    name: str
    width: float
    to: float
    figure: str
    figure_x: float


class Bars(NamedTuple):
    width: float
    height: float
    left: float
    bar_height: float
    ticks: List[Tick]
    bars: List[Bar]


def bars(row: Dict[str, Any], comparison: Optional[Dict[str, Any]]) -> Bars:
    """Draw a row of the report.

    :param comparison: of this row with the drills before, as `history.history` returns it
    """
    given = [("forecast", "forecast", row["limit_ms"], 0)]
    if row["outage_ms"] is not None:
        given.insert(0, ("measured", "measured", row["outage_ms"], row["worst_ms"]))
    if row["budget_ms"]:
        given.append(("budget", "budget", row["budget_ms"], 0))
    if comparison:
        before, count = comparison["before"], comparison["drills"]
        name = f"last {count} drills" if count > 1 else "last drill"
        given.append(("before", name, before["median_ms"], before["worst_ms"]))
    axis = Linear(nice(max(LEAST_MS, *(max(value, to) for _tone, _name, value, to in given)) * ROOM))
    drawn = [_bar(axis, TOP + at * PITCH, *each) for at, each in enumerate(given)]
    ticks = [Tick(axis.x(at), duration(at) if at else "0") for at in axis.ticks()]
    return Bars(WIDTH, TOP + len(drawn) * PITCH + 16, LEFT, HEIGHT, ticks, drawn)


def _bar(axis: Linear, y: float, tone: str, name: str, value: float, to: float) -> Bar:
    end = max(value, to)
    words = exact(value) if end == value else f"{exact(value)}, worst {exact(end)}"
    width, right = round(axis.x(value) - LEFT, 2), axis.x(end)
    return Bar(tone, y, name, width, right, words if tone in THIN else f"at most {words}", right + 8)
