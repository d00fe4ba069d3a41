# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The server lines of a backend in HAProxy's configuration. Pure; all other lines stay as they are."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence

from . import changes, haproxy_words
from .changes import Refused
from .haproxy_words import Unclear, Word
from .settings import Server, Target

SECTIONS = (
    *("global", "defaults", "frontend", "backend", "listen", "userlist", "peers", "mailers", "resolvers", "cache"),
    *("program", "ring", "http-errors", "log-forward", "fcgi-app", "crt-store", "log-profile", "traces", "acme"),
    *("namespace_list", "healthcheck"),
)
PROXIES = ("backend", "listen")
CONDITIONS = (".if", ".elif", ".else", ".endif")
# What the runtime API of HAProxy up to 3.0 refuses, and a server gets with the next reload.
NOT_WHILE_RUNNING = "tcp-ut"
# What undoes an option of default-server. The runtime API refuses it, and has nothing to be undone.
UNDONE = {
    f"no-{flag}": flag
    for flag in ("agent-check", "backup", "check", "check-ssl", "send-proxy", "send-proxy-v2", "ssl", "tfo")
}
AT = re.compile(r"\[?(?P<address>[0-9A-Fa-f:.]+?)\]?(?::(?P<port>\d{1,5}))?")


class Line(NamedTuple):
    """A server line."""

    number: int
    text: str
    words: List[Word]  # server, its name, its address, its options
    server: Server
    port: int

    @property
    def options(self) -> str:
        """Its options as they are written, without a comment."""
        return self.text[self.words[3].begin : self.words[-1].end] if self.words[3:] else ""

    def at(self, address: str) -> str:
        """Return the line with another address; the rest stays."""
        old = self.words[2]
        return f"{self.text[: old.begin]}{place(address, self.port)}{self.text[old.end :]}"


class Backend(NamedTuple):
    """A section, from its first line to the one behind its last."""

    begin: int
    end: int
    lines: List[Line]
    defaults: List[Word]  # those of the default-server lines that count for it
    port: int  # of new servers
    options: str  # of new servers

    @property
    def servers(self) -> List[Server]:
        return [line.server for line in self.lines]

    def arguments(self) -> List[str]:
        """Return the options of a server that the runtime API adds, which takes no default-server. Raises Refused."""
        words = [*self.defaults, *haproxy_words.split(self.options)]
        varying = next((word.text for word in words if word.varies), None)
        if varying is not None:
            raise Refused(f"{varying!r} has a variable, which only HAProxy knows: write the value.")
        found: List[str] = []
        left = iter(words)
        for word in left:
            if word.text == NOT_WHILE_RUNNING:
                next(left, None)
            elif word.text in UNDONE:
                found = [each for each in found if each != UNDONE[word.text]]
            else:
                found.append(word.text)
        return found


class Section(NamedTuple):
    """A section, from its first line to the one behind its last."""

    begin: int
    end: int
    lines: List[List[Word]]

    @property
    def head(self) -> List[str]:
        """Its keyword, its name, and what it is from."""
        return [word.text for word in self.lines[0]]

    @property
    def parent(self) -> Optional[str]:
        """The name of the defaults that it is from."""
        return self.head[self.head.index("from") + 1] if "from" in self.head[1:-1] else None

    def default_servers(self) -> List[Word]:
        return [word for line in self.lines if _keyword(line) == "default-server" for word in line[1:]]


def each(text: str, targets: Sequence[Target]) -> Iterator[Target]:
    """Yield the backends whose servers are the nodes, with those fallbacks that the file has. Raises Refused."""
    names = {section.head[1] for section in _sections(text) if section.head[0] == "backend" and section.head[1:]}
    for target in targets:
        yield target
        if target.fallback in names:
            yield target._replace(name=target.fallback, fallback="")


def read(text: str, target: Target) -> Backend:
    """Return a backend. Raises Refused."""
    sections = _sections(text)
    mine = [section for section in sections if section.head[0] in PROXIES and section.head[1:2] == [target.name]]
    if len(mine) != 1:
        raise Refused(f"it has the backend {target.name} {len(mine)} times: name another one in haproxy.backends.")
    lines = text.split("\n")
    backend, inherited = mine[0], _inherited(sections, mine[0])
    for section in (*inherited, backend):
        _refuse_the_unclear(section)
    found = [
        _line(backend.begin + at, lines[backend.begin + at], words, target)
        for at, words in enumerate(backend.lines)
        if at and _keyword(words) == "server"
    ]
    if not target.port and not found:
        raise Refused(f"its backend {target.name} has no server: set the port in haproxy.backends.")
    return Backend(
        backend.begin,
        backend.end,
        found,
        [word for section in (*inherited, backend) for word in section.default_servers()],
        target.port or found[0].port,
        target.options or (found[0].options if found else ""),
    )


def _sections(text: str) -> List[Section]:
    """Return all sections. Raises Refused for a file that is not the same wherever it is read."""
    found, open_conditions = [], 0
    lines = [_words(number, line) for number, line in enumerate(text.split("\n"), 1)]
    heads = [at for at, words in enumerate(lines) if _keyword(words) in SECTIONS]
    for at, words in enumerate(lines):
        open_conditions += {".if": 1, ".endif": -1}.get(_keyword(words), 0)
        if at in heads and open_conditions:
            raise Refused(f"line {at + 1} is a section inside a .if, which only HAProxy can judge: move it out.")
    for begin, end in zip(heads, [*heads[1:], len(lines)]):
        found.append(Section(begin, end, lines[begin:end]))
    return found


def _inherited(sections: Sequence[Section], mine: Section) -> List[Section]:
    """Return the defaults that count for a section, the most general first: those it is from, else the last ones."""
    before = [section for section in sections if section.head[0] == "defaults" and section.begin < mine.begin]
    named: Dict[str, Section] = {section.head[1]: section for section in before if section.head[1:]}
    if mine.parent is None:
        return [] if mine.head[0] == "defaults" else [each for last in before[-1:] for each in _lineage(sections, last)]
    if mine.parent not in named:
        raise Refused(f"line {mine.begin + 1}: the file has no defaults {mine.parent} before it.")
    return _lineage(sections, named[mine.parent])


def _lineage(sections: Sequence[Section], defaults: Section) -> List[Section]:
    return [*_inherited(sections, defaults), defaults]


def _refuse_the_unclear(section: Section) -> None:
    """Raise Refused for what makes servers, or their options, in a way that follow cannot keep in step."""
    for number, words in enumerate(section.lines, section.begin + 1):
        if _keyword(words) == "server-template":
            raise Refused(f"line {number} is a server-template, whose servers come from DNS: write server lines.")
        if _keyword(words) in CONDITIONS:
            raise Refused(f"line {number} is a condition, which only HAProxy can judge: move it out.")


def render(text: str, backend: Backend, wanted: Sequence[Server]) -> str:
    """Return the configuration with the wanted servers in a backend."""
    made = changes.between(backend.servers, wanted)
    if made == changes.Changes():
        return text
    lines = text.split("\n")
    moved = {server.name: server.address for server in made.moved}
    body = {line.number: line for line in backend.lines}
    kept = [
        body[at].at(moved[body[at].server.name]) if at in body and body[at].server.name in moved else lines[at]
        for at in range(backend.begin, backend.end)
        if at not in body or body[at].server not in made.dropped
    ]
    indent = backend.lines[0].text[: backend.lines[0].words[0].begin] if backend.lines else "    "
    new = [
        f"{indent}server {server.name} {place(server.address, backend.port)} {backend.options}".rstrip()
        for server in made.added
    ]
    behind = 1 + max(
        (at for at, line in enumerate(kept) if line.strip() and not line.lstrip().startswith("#")), default=0
    )
    section = [*kept[:behind], *new, *kept[behind:]]
    whole = "\n".join([*lines[: backend.begin], *section, *lines[backend.end :]])
    return whole if whole.endswith("\n") else f"{whole}\n"


def place(address: str, port: int) -> str:
    """Return an address and a port as HAProxy writes them."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _line(number: int, text: str, words: List[Word], target: Target) -> Line:
    found = AT.fullmatch(words[2].text) if words[2:] and not words[1].varies and not words[2].varies else None
    if not found or not (found["port"] or target.port):
        raise Refused(
            f"line {number + 1} is {text.strip()!r}: its address and port are required, because nodes replace it."
        )
    server = Server(words[1].text, changes.canonical(found["address"]))
    return Line(number, text, words, server, int(found["port"] or target.port))


def _words(number: int, line: str) -> List[Word]:
    try:
        return haproxy_words.split(line)
    except Unclear as unclear:
        raise Refused(f"line {number}: {unclear}.") from unclear


def _keyword(words: Sequence[Word]) -> str:
    return words[0].text if words else ""
