# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The server lines of a backend in HAProxy's configuration. Pure; all other lines stay as they are."""

from __future__ import annotations

import re
from typing import Iterator, List, NamedTuple, Sequence

from . import changes
from .changes import Refused
from .settings import Server, Target

SECTIONS = (
    *("global", "defaults", "frontend", "backend", "listen", "userlist", "peers", "mailers", "resolvers", "cache"),
    *("program", "ring", "http-errors", "log-forward", "fcgi-app", "crt-store", "log-profile", "traces", "acme"),
)
SERVER = re.compile(r"(?P<indent>\s*)server\s+(?P<name>\S+)\s+(?P<at>\S+)(?P<options>.*)")
# What the runtime API of HAProxy up to 3.0 refuses, and a server gets with the next reload.
NOT_WHILE_RUNNING = re.compile(r"(^|\s)tcp-ut\s+\S+")
AT = re.compile(r"\[?(?P<address>[0-9A-Fa-f:.]+?)\]?(?::(?P<port>\d{1,5}))?")


class Line(NamedTuple):
    """A server line."""

    number: int
    indent: str
    server: Server
    port: int
    options: str


class Backend(NamedTuple):
    """A section, from its first line to the one behind its last."""

    begin: int
    end: int
    lines: List[Line]
    defaults: str  # the words of the default-server lines that count for it
    port: int  # of new servers
    options: str  # of new servers

    @property
    def servers(self) -> List[Server]:
        return [line.server for line in self.lines]

    def arguments(self) -> str:
        """Return the options of a server that the runtime API adds: it takes none from default-server."""
        return " ".join(NOT_WHILE_RUNNING.sub(" ", f"{self.defaults} {self.options}").split())


def each(text: str, targets: Sequence[Target]) -> Iterator[Target]:
    """Yield the backends whose servers are the nodes, with those fallbacks that the file has."""
    names = {found[1] for found in map(_words, text.splitlines()) if found[:1] == ["backend"] and found[1:]}
    for target in targets:
        yield target
        if target.fallback in names:
            yield target._replace(name=target.fallback, fallback="")


def read(text: str, target: Target) -> Backend:
    """Return a backend. Raises Refused."""
    lines = text.splitlines()
    words = [_words(line) for line in lines]
    heads = [at for at, found in enumerate(words) if found and found[0] in SECTIONS]
    mine = [at for at in heads if words[at][0] in ("backend", "listen") and words[at][1:2] == [target.name]]
    if len(mine) != 1:
        raise Refused(f"it has the backend {target.name} {len(mine)} times: name another one in haproxy.backends.")
    begin = mine[0]
    end = _end(begin, heads, len(lines))
    found = [_line(at, lines[at], target) for at in range(begin + 1, end) if words[at][:1] == ["server"]]
    general = [at for at in heads if at < begin and words[at] == ["defaults"]][-1:]
    sections = [words[at : _end(at, heads, len(lines))] for at in [*general, begin]]
    defaults = [found[1:] for section in sections for found in section if found[:1] == ["default-server"]]
    if not target.port and not found:
        raise Refused(f"its backend {target.name} has no server: set the port in haproxy.backends.")
    return Backend(
        begin,
        end,
        found,
        " ".join(word for found in defaults for word in found),
        target.port or found[0].port,
        target.options or (found[0].options if found else ""),
    )


def _end(begin: int, heads: Sequence[int], last: int) -> int:
    """Return the line behind a section."""
    return min((at for at in heads if at > begin), default=last)


def render(text: str, backend: Backend, wanted: Sequence[Server]) -> str:
    """Return the configuration with the wanted servers in a backend."""
    made = changes.between(backend.servers, wanted)
    if made == changes.Changes():
        return text
    lines = text.splitlines()
    moved = {server.name: server for server in made.moved}
    body = {line.number: line for line in backend.lines}
    kept = [
        _written(body[at], moved[body[at].server.name]) if at in body and body[at].server.name in moved else lines[at]
        for at in range(backend.begin, backend.end)
        if at not in body or body[at].server not in made.dropped
    ]
    indent = backend.lines[0].indent if backend.lines else "    "
    new = [_written(Line(0, indent, server, backend.port, backend.options), server) for server in made.added]
    place = 1 + max(
        (at for at, line in enumerate(kept) if line.strip() and not line.lstrip().startswith("#")), default=0
    )
    section = [*kept[:place], *new, *kept[place:]]
    return "\n".join([*lines[: backend.begin], *section, *lines[backend.end :]]) + "\n"


def place(address: str, port: int) -> str:
    """Return an address and a port as HAProxy writes them."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _written(line: Line, server: Server) -> str:
    at = place(server.address, line.port)
    return f"{line.indent}server {server.name} {at} {line.options}".rstrip()


def _line(number: int, line: str, target: Target) -> Line:
    found = SERVER.fullmatch(line)
    at = AT.fullmatch(found["at"]) if found else None
    if not found or not at or not (at["port"] or target.port):
        raise Refused(
            f"line {number + 1} is {line.strip()!r}: its address and port are required, because nodes replace it."
        )
    server = Server(found["name"], changes.canonical(at["address"]))
    return Line(number, found["indent"], server, int(at["port"] or target.port), found["options"].strip())


def _words(line: str) -> List[str]:
    return line.split("#", 1)[0].split()
