# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Says in which line of a configuration each fault is. Sentences begin with the place of a value; pure."""

from __future__ import annotations

import json
import re
from typing import Dict, List, Sequence, Tuple

from .schema import Faults

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
PLACE = re.compile(r"(?:configuration\.)?(?P<place>\w+(?:\[\d+\](?: \([^()]*\))?|\.\w+)*)")
NAME = re.compile(r" \([^()]*\)")  # beside the number of an item
LAST = re.compile(r"(?:\[\d+\]|(?:^|\.)\w+)$")
OBJECT = -1


def numbered(text: str, faults: Sequence[str]) -> Faults:
    """Return the sentences with their lines, as far as the text has several, and a sentence begins with a place in it.

    :param text: valid JSON
    """
    lines = _lines(text) if "\n" in text.strip() else {}
    return [f"line {line}: {fault}" if line else fault for fault in faults for line in [_line(fault, lines)]]


def _line(fault: str, lines: Dict[str, int]) -> int:
    """Return the line of the innermost part of a sentence's place that there is: a key may be missing; 0 if none."""
    found = PLACE.match(fault)
    place = NAME.sub("", found["place"]) if found else ""
    while place and place not in lines:
        place = LAST.sub("", place)
    return lines[place] if place else 0


def _lines(text: str) -> Dict[str, int]:
    """Return the line of each value by its place, such as ``services[0].port``; that of its key in an object."""
    found: Dict[str, int] = {}
    around: List[Tuple[str, int]] = []  # the objects and lists, from the outermost: place, and the number of the item
    place, line, seen, before = "", 1, 0, ""
    for token in TOKEN.finditer(text):
        what = token[0]
        line += text.count("\n", seen, token.start())
        seen = token.start()
        outer, number = around[-1] if around else ("", OBJECT)
        if what in ("}", "]"):
            around.pop()
        elif what == ",":
            if number != OBJECT:
                around[-1] = (outer, number + 1)
                place = f"{outer}[{number + 1}]"
        elif number == OBJECT and before in ("{", ","):
            key = json.loads(what)
            place = f"{outer}.{key}" if outer else key
            found[place] = line
        elif what != ":":
            found.setdefault(place, line)
            if what in ("{", "["):
                around.append((place, OBJECT if what == "{" else 0))
                place = f"{place}[0]"
        before = what
    return found
