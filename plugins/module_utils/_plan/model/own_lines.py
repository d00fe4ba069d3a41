# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Raw lines that say once more what haproxy.cfg says already in its section `global`. Pure.

HAProxy says "already specified", keeps the first, and goes on: such a line is without effect. Of two sockets at one
path the second takes the place of the role's, which hands the listeners over at a reload. So these lines are refused.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, Sequence, Tuple

from ..._agent.config.schema import Faults
from . import raw_lines
from .values import Checked

GLOBAL, MAXCONN = "global", "maxconn"
ALWAYS = ("user", "uid", "group", "gid", "chroot")
SOCKETS = ("/run/haproxy/admin.sock", "/var/lib/haproxy/stats")  # the runtime socket, on Debian and on RedHat
SOCKET = re.compile(r"\s*stats\s+socket\s+(?:unix@)?(?:/var(?=/run/))?([^\s#]+)")
Lines = Sequence[Tuple[int, str]]  # each with its number


def global_lines(value: Any) -> Checked:
    """Raw lines of the section `global`, which do not say again what the role says."""
    found, wrong = raw_lines.section_lines(value)
    return (found, wrong) if wrong else _judged(found, [*enumerate(found, 1)])


def extra_lines(value: Any) -> Checked:
    """Raw lines of whole sections. A section `global` among them goes on with the role's."""
    found, wrong = raw_lines.haproxy_lines(value)
    return (found, wrong) if wrong else _judged(found, [*_of_global(found)])


def maxconn_twice(given: Mapping[str, Any]) -> Faults:
    """Refuse a second limit of all connections.

    :param given: the role's variables that are set, without the prefix of their names
    """
    found, extra = global_lines(given.get("global_lines", []))[0], extra_lines(given.get("extra_lines", []))[0]
    if str(given.get(MAXCONN) or 0) == "0":
        return []
    return [
        f"haproxy_{key}: line {at} has maxconn, and haproxy_maxconn is set: leave one of them out."
        for key, lines in (("global_lines", enumerate(found or [], 1)), ("extra_lines", _of_global(extra or [])))
        for at, line in lines
        if line.split()[:1] == [MAXCONN]
    ]


def _of_global(lines: Sequence[str]) -> Iterator[Tuple[int, str]]:
    section = ""
    for at, line in enumerate(lines, 1):
        begins = raw_lines.SECTION.match(line)
        section = begins[1] if begins else section
        if section == GLOBAL:
            yield at, line


def _judged(found: List[str], lines: Lines) -> Checked:
    for at, line in lines:
        word, socket = (line.split() or [""])[0], SOCKET.match(line)
        if word in ALWAYS:
            return None, f"line {at} has {word}, of which HAProxy keeps the first, the role's own: leave it out."
        if socket and socket[1] in SOCKETS:
            return None, f"line {at} has the path of haproxy's runtime socket: choose another path, or leave it out."
    return found, None
