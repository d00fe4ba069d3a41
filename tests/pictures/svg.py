# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few shapes that the pictures are made of, as SVG. Pure.

A shape is a text of SVG. Its colour is a tone, which a reader sees in the light or in the dark colours of the browser.
"""

from __future__ import annotations

from html import escape
from typing import Dict, Iterable, NamedTuple, Sequence, Tuple

WIDTH = 880
MARGIN = 28
CORNER = 8
SMALL, NORMAL, LARGE = 12, 13, 17


class Tone(NamedTuple):
    """A colour's ink, for lines and letters, and its area, each in light and in dark."""

    ink: str
    area: str
    dark_ink: str
    dark_area: str


TONES = {
    "plain": Tone("#1f2328", "#ffffff", "#e6edf3", "#0d1117"),
    "quiet": Tone("#59636e", "#f6f8fa", "#9198a1", "#161b22"),
    "border": Tone("#d1d9e0", "#eff2f5", "#3d444d", "#21262d"),
    "vip": Tone("#0969da", "#ddf4ff", "#58a6ff", "#13233a"),
    "balancer": Tone("#1a7f37", "#dafbe1", "#3fb950", "#12271b"),
    "router": Tone("#8250df", "#f5efff", "#b083f0", "#241d3a"),
    "wait": Tone("#9a6700", "#fff3c4", "#d29922", "#2f2712"),
    "fault": Tone("#cf222e", "#ffebe9", "#f85149", "#331a1c"),
}
FONTS = (
    "text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif}"
    ".code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    ".strong{font-weight:600}"
)

Point = Tuple[float, float]


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def centre(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2


def panel(box: Box, tone: str = "border", area: str = "", dashed: bool = False) -> str:
    """A box with rounded corners, its outline in a tone.

    :param area: the tone of its inside; that of the outline by default
    """
    return f'<rect class="line-{tone} area-{area or tone}" {_place(box)} rx="{CORNER}"{_dashes(dashed)}/>'


def strip(box: Box, tone: str, filled: bool = True) -> str:
    """A quantity on a scale."""
    return f'<rect class="line-{tone} {"ink" if filled else "area"}-{tone}" {_place(box)} rx="3"/>'


def label(at: Point, words: str, tone: str = "plain", size: float = NORMAL, style: str = "", anchor: str = "") -> str:
    """A line of text, whose middle is at the height of the point.

    :param style: `code`, `strong`, or both
    :param anchor: where the point is: at the start of the words by default, in the `middle` or at the `end`
    """
    x, y = at
    classes = " ".join(part for part in (f"ink-{tone}", style) if part)
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    place = f'x="{_number(x)}" y="{_number(y + size * 0.36)}"'
    return f'<text class="{classes}" {place} font-size="{_number(size)}"{anchored}>{escape(words, quote=False)}</text>'


def spans(at: Point, words: Iterable[Tuple[str, str]], size: float, style: str = "") -> str:
    """A line of text of several tones, each with its words. Every space counts."""
    x, y = at
    inside = "".join(f'<tspan class="ink-{tone}">{escape(each, quote=False)}</tspan>' for each, tone in words)
    styled = f' class="{style}"' if style else ""
    place = f'x="{_number(x)}" y="{_number(y + size * 0.36)}"'
    return f'<text{styled} xml:space="preserve" {place} font-size="{_number(size)}">{inside}</text>'


def note(at: Point, lines: Sequence[str], tone: str = "quiet", size: float = SMALL, anchor: str = "") -> str:
    """Some lines of text, one below the other."""
    x, y = at
    shown = [label((x, y + row * size * 1.4), words, tone, size, anchor=anchor) for row, words in enumerate(lines)]
    return "\n".join(shown)


def part(box: Box, tone: str, name: str, detail: str = "", dashed: bool = False) -> str:
    """A panel with a program's name on its left, and what it listens on at its right."""
    middle = box.y + box.height / 2
    shapes = [panel(box, tone, dashed=dashed)]
    if not detail:
        shapes.append(label((box.x + box.width / 2, middle), name, tone, style="strong", anchor="middle"))
    else:
        shapes.append(label((box.x + 12, middle), name, tone, style="strong"))
        shapes.append(label((box.right - 12, middle), detail, tone, SMALL, "code", "end"))
    return "\n".join(shapes)


def arrow(points: Sequence[Point], tone: str = "quiet", dashed: bool = False, head: bool = True) -> str:
    """A line through some points, its corners rounded, with a head at its end."""
    points = [point for at, point in enumerate(points) if not _between(points[max(0, at - 1) : at + 2])]
    drawn = [*points[:-1], _before(points[-2], points[-1], 7)] if head else list(points)
    shapes = [f'<path class="line-{tone}" d="{_path(drawn)}" fill="none" stroke-width="1.6"{_dashes(dashed)}/>']
    if head:
        shapes.append(_head(points[-2], points[-1], tone))
    return "\n".join(shapes)


def rule(start: Point, end: Point) -> str:
    """A thin line, such as that of a scale."""
    return f'<path class="line-border" d="M{_pair(start)} L{_pair(end)}"/>'


def dot(at: Point, tone: str, radius: float = 5) -> str:
    return f'<circle class="ink-{tone}" cx="{_number(at[0])}" cy="{_number(at[1])}" r="{_number(radius)}"/>'


def heading(title: str, about: str) -> str:
    """What a picture shows, at its top."""
    shapes = [
        label((MARGIN, 34), title, size=LARGE, style="strong"),
        label((MARGIN, 57), about, "quiet", NORMAL),
    ]
    return "\n".join(shapes)


def picture(height: float, title: str, about: str, shapes: Iterable[str]) -> str:
    """A whole SVG file.

    :param title: for readers who do not see it, as its name
    :param about: for them, what it shows
    """
    body = "\n".join(shapes)
    page = f'<rect class="area-plain line-border" {_place(Box(0.5, 0.5, WIDTH - 1, height - 1))} rx="12"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title about">\n'
        "<!-- `make pictures` draws this file. -->\n"
        f'<title id="title">{escape(title, quote=False)}</title>\n'
        f'<desc id="about">{escape(about, quote=False)}</desc>\n'
        f"<style>\n{_style(page + body)}</style>\n{page}\n{body}\n</svg>\n"
    )


def _style(body: str) -> str:
    """Return the rules of the tones that a picture uses: the light ones, and the dark ones for who prefers them."""
    light: Dict[str, str] = {}
    dark: Dict[str, str] = {}
    for name, tone in TONES.items():
        for kind, rule, colour, dark_colour in (
            ("ink", "fill", tone.ink, tone.dark_ink),
            ("area", "fill", tone.area, tone.dark_area),
            ("line", "stroke", tone.ink, tone.dark_ink),
        ):
            if f"{kind}-{name}" in body:
                light[f"{kind}-{name}"] = f"{rule}:{colour}"
                dark[f"{kind}-{name}"] = f"{rule}:{dark_colour}"
    return f"{FONTS}\n{_rules(light)}\n@media (prefers-color-scheme:dark){{\n{_rules(dark)}\n}}\n"


def _rules(rules: Dict[str, str]) -> str:
    return "\n".join(f".{name}{{{rule}}}" for name, rule in rules.items())


def _path(points: Sequence[Point]) -> str:
    """Return the line through the points, each corner between two of them rounded."""
    steps = [f"M{_pair(points[0])}"]
    for before, corner, after in zip(points, points[1:], points[2:]):
        steps.append(f"L{_pair(_before(before, corner, CORNER))}")
        steps.append(f"Q{_pair(corner)} {_pair(_before(after, corner, CORNER))}")
    return " ".join([*steps, f"L{_pair(points[-1])}"])


def _between(points: Sequence[Point]) -> bool:
    """Return whether the second of three points is on the way from the first to the third."""
    return len(points) == 3 and any(len({point[axis] for point in points}) == 1 for axis in (0, 1))


def _before(start: Point, end: Point, distance: float) -> Point:
    """Return the point at a distance before the end of a line, or its start where it is shorter."""
    (x0, y0), (x1, y1) = start, end
    length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
    share = min(1.0, distance / length) if length else 0.0
    return x1 + (x0 - x1) * share, y1 + (y0 - y1) * share


def _head(start: Point, end: Point, tone: str) -> str:
    back = _before(start, end, 9)
    across = ((end[1] - back[1]) * 0.5, (back[0] - end[0]) * 0.5)
    corners = (end, (back[0] + across[0], back[1] + across[1]), (back[0] - across[0], back[1] - across[1]))
    return f'<polygon class="ink-{tone}" points="{" ".join(map(_pair, corners))}"/>'


def _place(box: Box) -> str:
    return " ".join(f'{name}="{_number(value)}"' for name, value in zip(("x", "y", "width", "height"), box))


def _dashes(dashed: bool) -> str:
    return ' stroke-dasharray="5 4"' if dashed else ""


def _pair(point: Point) -> str:
    return ",".join(map(_number, point))


def _number(value: float) -> str:
    """Return a number with one digit behind the point at most."""
    return f"{value:.1f}".removesuffix(".0")
