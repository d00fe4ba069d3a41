# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal with a command and what it printed. Pure."""

from __future__ import annotations

import re
from typing import Iterator, Sequence, Tuple

from .svg import MARGIN, WIDTH, dot, label, picture, rule, spans

BAR = 40  # the height of the title bar
ADVANCE = 0.603  # the width of a character, as a part of its size
LARGEST = 13
LEADING = 1.65
# What a forecast says of a failure: the event and the members, for how long at most, and what follows.
FORECAST = re.compile(r"(  \S.*?)(at most +\d+ ms)(.*)")


def draw(command: str, printed: Sequence[str]) -> str:
    """Return the terminal.

    :param printed: what the command printed, in lines
    """
    size = min(LARGEST, (WIDTH - 2 * MARGIN) / (ADVANCE * max(map(len, [f"$ {command}", *printed]))))
    step = size * LEADING
    top = BAR + 26
    shapes = [
        *_title_bar(command.split()[0]),
        spans((MARGIN, top), [("$ ", "balancer"), (command, "plain")], size, "code strong"),
    ]
    for row, line in enumerate(printed):
        shapes.append(spans((MARGIN, top + (row + 1.5) * step), list(_tones(line)), size, "code"))
    about = f"The command {command} printed: {' '.join(' '.join(printed).split())}"
    return picture(round(top + (len(printed) + 1) * step + 10), f"Terminal: {command}", about, shapes)


def _title_bar(program: str) -> Iterator[str]:
    for at in range(3):
        yield dot((MARGIN + 2 + at * 18, BAR / 2), "border")
    yield label((WIDTH / 2, BAR / 2), program, "quiet", anchor="middle")
    yield rule((1, BAR), (WIDTH - 1, BAR))


def _tones(line: str) -> Iterator[Tuple[str, str]]:
    """Yield the parts of a line, each with its tone."""
    found = FORECAST.fullmatch(line)
    if not found:
        yield line, "vip" if "held by" in line else "quiet"
        return
    yield from zip(found.groups(), ("plain", "wait", "quiet"))
