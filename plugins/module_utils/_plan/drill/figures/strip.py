# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A strip of answers: a cell for each, in lines of 200, coloured by who gave it."""

from __future__ import annotations

import itertools
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from .rounds import SKIPPED, Round, told
from .scales import LEFT, RIGHT, WIDTH, Tick, duration

CELLS = 200  # in a line: one second, at an interval of 5 ms
HEIGHT, PITCH, TOP = 14.0, 19.0, 22.0


class Mark(NamedTuple):
    """Some answers in a row with the same tone."""

    tone: str
    x: float
    width: float
    answers: int
    title: str


class Line(NamedTuple):
    """``CELLS`` answers. One line stands for all that follow it and look the same."""

    y: float
    label: str
    marks: List[Mark]


class Strip(NamedTuple):
    width: float
    height: float
    line_height: float
    ticks: List[Tick]
    lines: List[Line]


Cell = Tuple[str, str]  # a tone, and words


def strip(drawn: Round, tone_of: Dict[str, str]) -> Strip:
    cells = [(tone, words) for _answer, tone, words in told(drawn, tone_of)]
    span = CELLS * drawn.interval_ms
    lines = [
        Line(TOP + row * PITCH, _label(first, count, span), list(_marks(part, first * CELLS, drawn.interval_ms)))
        for row, (first, count, part) in enumerate(_folded(cells))
    ]
    ticks = [Tick(_x(CELLS * part / 4), f"+{duration(span * part / 4)}" if part else "0") for part in range(5)]
    return Strip(WIDTH, TOP + len(lines) * PITCH, HEIGHT, ticks, lines)


def _x(cell: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * cell / CELLS, 2)


def _label(first: int, count: int, span: float) -> str:
    begin = f"{first * span / 1000:g}"
    return f"{begin} s" if count == 1 else f"{begin} to {(first + count) * span / 1000:g} s"


def _folded(cells: Sequence[Cell]) -> Iterator[Tuple[int, int, Sequence[Cell]]]:
    """Yield the lines, each with its number and how many look like it."""
    parts = [cells[at : at + CELLS] for at in range(0, len(cells), CELLS)]
    for _alike, group in itertools.groupby(enumerate(parts), key=_alike_by):
        numbers, alike = zip(*group)
        yield numbers[0], len(numbers), alike[0]


def _alike_by(numbered: Tuple[int, Sequence[Cell]]) -> object:
    """Return what lines have in common that look alike: the one cell of a whole line. Other lines are like no other."""
    number, part = numbered
    return part[0] if len(part) == CELLS and len(set(part)) == 1 else number


def _marks(part: Sequence[Cell], first: int, interval_ms: float) -> Iterator[Mark]:
    at = 0
    for (tone, words), group in itertools.groupby(part):
        count = len(list(group))
        if tone != SKIPPED:
            begin, end = (f"{(first + place) * interval_ms / 1000:.3f}" for place in (at, at + count))
            title = f"{words}: {count} of {interval_ms:g} ms each, from {begin} to {end} s"
            yield Mark(tone, _x(at), round((RIGHT - LEFT) * count / CELLS, 2), count, title)
        at += count
