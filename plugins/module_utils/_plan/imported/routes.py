# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The `use_backend` lines of a frontend as routes of a service: by hosts and by the beginnings of paths. Pure.

HAProxy takes the first line whose condition is met, and so do routes. If one line says something else, all stay.
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .sections import Line

HOSTS, PATHS = "hosts", "paths"
# How a line asks for the host, and whether that is without the port that a client may name.
SAMPLES = {
    **dict.fromkeys(("hdr(host)", "req.hdr(host)"), False),
    **dict.fromkeys(("hdr(host),field(1,:)", "req.hdr(host),field(1,:)"), True),
}
OF_PATHS = (("path_beg",), ("path", "-m", "beg"))
ENDS = {"hdr_end(host)": False}
WORD = re.compile(r"[\w.:-]+")

Asked = Dict[str, List[str]]  # hosts, paths, or both


class Route(NamedTuple):
    """Which requests go to a backend.

    :ivar acls: the names of those that the line has
    :ivar with_port: whether a host that a client names with a port is another one
    """

    line: Line
    backend: str
    asked: Asked
    acls: Tuple[str, ...]
    with_port: bool


def read(lines: Sequence[Line]) -> List[Route]:
    """Return the routes of a frontend, none if a line is no route."""
    named: Dict[str, List[Line]] = {}
    for line in lines:
        if line.keyword == "acl" and line.words[1:]:
            named.setdefault(line.words[1], []).append(line)
    found = [_route(line, named) for line in lines if line.keyword == "use_backend"]
    routes = [each for each in found if each]
    return routes if len(routes) == len(found) else []


def _route(line: Line, named: Mapping[str, Sequence[Line]]) -> Optional[Route]:
    words = line.words
    if len(words) < 4 or words[2] != "if" or not WORD.fullmatch(words[1]):
        return None
    asked: Asked = {}
    acls: List[str] = []
    with_port = False
    for each in _tests(words[3:]):
        tests = [each] if each[:1] == ["{"] else [["{", *acl.words[2:], "}"] for acl in named.get(each[0], ())]
        acls += [] if each[:1] == ["{"] else each
        read_tests = [_asks(test[1:-1]) for test in tests]
        kinds = {kind for kind, _values, _port in read_tests}
        if len(kinds) != 1 or not kinds <= {HOSTS, PATHS} or kinds & {*asked}:
            return None
        asked[kinds.pop()] = list(dict.fromkeys(value for _kind, values, _port in read_tests for value in values))
        with_port = with_port or any(port for _kind, _values, port in read_tests)
    return Route(line, words[1], asked, tuple(acls), with_port)


def _tests(words: Sequence[str]) -> List[List[str]]:
    """Return the parts of a condition: each the name of an ACL, or all words of one between braces."""
    found: List[List[str]] = []
    for word in words:
        is_open = bool(found) and found[-1][0] == "{" and found[-1][-1] != "}"
        if is_open:
            found[-1].append(word)
        else:
            found.append([word])
    return found


def _asks(words: Sequence[str]) -> Tuple[str, List[str], bool]:
    """Return what a test asks for, the values that it takes, and whether a port counts; '' for another test."""
    other: Tuple[str, List[str], bool] = ("", [], False)
    for begin in OF_PATHS:
        values = list(words[len(begin) :])
        if tuple(words[: len(begin)]) == begin and values and all(value.startswith("/") for value in values):
            return PATHS, values, False
    if len(words) < 3 or words[1] != "-i" or any(value.startswith("-") for value in words[2:]):
        return other
    values = list(words[2:])
    if words[0] in SAMPLES:
        return HOSTS, values, not SAMPLES[words[0]]
    if words[0] in ENDS and all(value.startswith(".") for value in values):
        return HOSTS, [f"*{value}" for value in values], not ENDS[words[0]]
    return other


def left(lines: Sequence[Line], routes: Sequence[Route]) -> List[Line]:
    """Return the lines of a frontend that its routes do not say: an ACL stays where another line has its name."""
    own = [route.line for route in routes]
    others = [line for line in lines if line not in own and line.keyword != "acl"]
    used = {word.lstrip("!") for line in others for word in line.words}
    gone = {name for route in routes for name in route.acls} - used
    return [line for line in lines if line not in own and not (line.keyword == "acl" and {*line.words[1:2]} & gone)]
