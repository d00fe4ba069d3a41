# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Raw lines that take away what haproxy.cfg has of the role in its section `global`. Pure.

Of two sockets at one path the second takes the place of the role's, which hands the listeners over at a reload. So it
is refused. Of what else is said twice HAProxy says itself that it keeps the first, and the run shows that.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, List, Sequence, Tuple

from . import raw_lines
from .values import Checked

GLOBAL = "global"
SOCKETS = ("/run/haproxy/admin.sock", "/var/lib/haproxy/stats")  # the runtime socket, on Debian and on RedHat
SOCKET = re.compile(r"\s*stats\s+socket\s+(?:unix@)?(?:/var(?=/run/))?([^\s#]+)")


def global_lines(value: Any) -> Checked:
    """Raw lines of the section `global`."""
    found, wrong = raw_lines.section_lines(value)
    return (found, wrong) if wrong else _judged(found, enumerate(found, 1))


def extra_lines(value: Any) -> Checked:
    """Raw lines of whole sections. A section `global` among them goes on with the role's."""
    found, wrong = raw_lines.haproxy_lines(value)
    return (found, wrong) if wrong else _judged(found, _of_global(found))


def _of_global(lines: Sequence[str]) -> Iterator[Tuple[int, str]]:
    section = ""
    for at, line in enumerate(lines, 1):
        begins = raw_lines.SECTION.match(line)
        section = begins[1] if begins else section
        if section == GLOBAL:
            yield at, line


def _judged(found: List[str], numbered: Iterable[Tuple[int, str]]) -> Checked:
    for at, line in numbered:
        socket = SOCKET.match(line)
        if socket and socket[1] in SOCKETS:
            return None, f"line {at} has the path of haproxy's runtime socket: choose another path, or leave it out."
    return found, None
