# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the death of haproxy to the first answer of the other balancer: the steps, and how long they take. Pure."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence, Tuple

from .svg import MARGIN, SMALL, WIDTH, Box, Point, arrow, dot, heading, label, note, panel, picture, rule, strip

TITLE = "From haproxy's death to the next answer"
ABOUT = "The holder resigns instead of falling silent, so the Backup waits for Skew_Time alone."
LANES = (84, 96, 14)  # the first one's top, their height, and the gap between them
CARDS = (84, 138, 14)  # the first one's left edge, their width, and the gap between them
SCALE = (196, 632)  # where a scale begins, and its width
UNITS = {"ms": 1, "s": 1000}
ROW = 26
MINUS = "\N{MINUS SIGN}"


class Failure(NamedTuple):
    """What the forecast allows for a failure."""

    name: str
    plan_ms: float


class Timeline(NamedTuple):
    """What is drawn, in milliseconds.

    :ivar members: the holder and its Backup
    :ivar priority: the Backup's
    :ivar measured_ms: the median of the measured outages
    """

    members: Tuple[str, str]
    priority: int
    down_file: str
    skew_ms: float
    switch_ms: float
    plan_ms: float
    measured_ms: float
    worst_ms: float
    failures: Sequence[Failure]


class Card(NamedTuple):
    """A step, on the lane of the member that takes it."""

    lane: int
    tone: str
    name: str
    details: Sequence[str]


class Scale(NamedTuple):
    """A line on which milliseconds are measured."""

    end_ms: float

    def x(self, milliseconds: float) -> float:
        return SCALE[0] + SCALE[1] * milliseconds / self.end_ms

    def span(self, start_ms: float, end_ms: float, y: float) -> Box:
        return Box(self.x(start_ms), y - 8, self.x(end_ms) - self.x(start_ms), 16)

    def ruler(self, step: float, unit: str, y: float, top: float) -> Iterator[str]:
        """The ticks of the scale, each with a thin line up to the first bar."""
        one = UNITS[unit]
        for tick in range(int(self.end_ms / one / step) + 1):
            x = self.x(tick * step * one)
            yield rule((x, top), (x, y))
            yield label((x, y + 12), f"{tick * step:g} {unit}" if tick else "0", "quiet", 11, anchor="middle")


def draw(timeline: Timeline) -> str:
    measured = LANES[0] + 2 * LANES[1] + LANES[2] + 60
    others = measured + 2 * ROW + 76
    shapes = [
        heading(TITLE, ABOUT),
        *_steps(timeline),
        *_outage(timeline, measured),
        *_failures(timeline, others),
    ]
    about = f"{ABOUT} Measured {shown(timeline.measured_ms)}; the forecast allows {shown(timeline.plan_ms)}."
    return picture(round(others + ROW * len(timeline.failures) + 36), TITLE, about, shapes)


def shown(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms"


def _cards(timeline: Timeline) -> Sequence[Card]:
    formula = f"(256 {MINUS} {timeline.priority}) / 256 s"
    return (
        Card(0, "fault", "haproxy dies", ("or is killed,", "or stopped")),
        Card(0, "balancer", "systemd reacts", ("writes 1 to", timeline.down_file)),
        Card(0, "router", "VIP given up", ("keepalived sends", "priority 0")),
        Card(1, "wait", "Backup waits", ("Skew_Time is", formula)),
        Card(1, "vip", "VIP taken over", ("keepalived sends", "a gratuitous ARP")),
    )


def _steps(timeline: Timeline) -> Iterator[str]:
    for lane, name in enumerate(timeline.members):
        box = Box(MARGIN, LANES[0] + lane * (LANES[1] + LANES[2]), WIDTH - 2 * MARGIN, LANES[1])
        yield panel(box, "border", "quiet")
        yield label((box.x + 18, box.centre[1]), name, style="strong")
    cards = _cards(timeline)
    for card, box in zip(cards, _boxes(cards)):
        yield panel(box, card.tone)
        yield label((box.x + 10, box.y + 17), card.name, card.tone, style="strong")
        yield note((box.x + 10, box.y + 37), card.details, card.tone, 11)
    for before, after in zip(_boxes(cards), _boxes(cards)[1:]):
        yield arrow(_way(before, after))


def _boxes(cards: Sequence[Card]) -> Sequence[Box]:
    return [
        Box(CARDS[0] + at * (CARDS[1] + CARDS[2]), LANES[0] + card.lane * (LANES[1] + LANES[2]) + 14, CARDS[1], 68)
        for at, card in enumerate(cards)
    ]


def _way(before: Box, after: Box) -> Sequence[Point]:
    """Return the points from one step to the next one, which may be on the lane below."""
    if before.y == after.y:
        return [(before.right, before.centre[1]), (after.x - 2, after.centre[1])]
    return [(before.right, before.centre[1]), (after.centre[0], before.centre[1]), (after.centre[0], after.y - 2)]


def _outage(timeline: Timeline, y: float) -> Iterator[str]:
    """The outage as measured, and as the forecast allows it."""
    scale = Scale(80)
    yield label((MARGIN, y - 30), "For how long the VIP is gone", style="strong")
    yield from scale.ruler(20, "ms", y + 2 * ROW - 6, y - 14)
    for row, words in enumerate(("measured", "forecast, at most")):
        yield label((MARGIN, y + row * ROW), words, "quiet", SMALL)
    yield strip(scale.span(0, timeline.measured_ms, y), "vip")
    yield arrow([(scale.x(timeline.measured_ms), y), (scale.x(timeline.worst_ms), y)], "vip", head=False)
    yield dot((scale.x(timeline.worst_ms), y), "vip", 3.5)
    measured = f"{shown(timeline.measured_ms)}, worst {shown(timeline.worst_ms)}"
    yield label((scale.x(timeline.worst_ms) + 12, y), measured, "vip", SMALL, "strong")
    y += ROW
    yield strip(scale.span(0, timeline.plan_ms, y), "wait", filled=False)
    yield strip(scale.span(0, timeline.skew_ms, y), "wait")
    parts = f"{shown(timeline.skew_ms)} Skew_Time + {shown(timeline.switch_ms)} for systemd, the address and the ARP"
    yield label((scale.x(timeline.skew_ms) + 12, y), parts, "wait", 11)
    yield label((scale.x(timeline.plan_ms) + 12, y), shown(timeline.plan_ms), "wait", SMALL, "strong")


def _failures(timeline: Timeline, y: float) -> Iterator[str]:
    """What the forecast allows for some failures."""
    scale = Scale(3500)
    yield label((MARGIN, y - 30), "In comparison: what the forecast allows at most", style="strong")
    yield from scale.ruler(1, "s", y + ROW * len(timeline.failures) - 6, y - 14)
    for row, failure in enumerate(timeline.failures):
        middle = y + ROW * row
        yield label((MARGIN, middle), failure.name, "quiet", SMALL)
        yield strip(scale.span(0, failure.plan_ms, middle), "wait", filled=False)
        yield label((scale.x(failure.plan_ms) + 12, middle), shown(failure.plan_ms), "wait", SMALL, "strong")
