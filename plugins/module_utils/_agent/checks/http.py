# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Requests a page from a web server and checks the status line of the response."""

from __future__ import annotations

import re
from typing import Generator, Sequence, Tuple

from .network import BadResponse, Dialogue, Steps, Stream

MAX_STATUS_LINE = 4096  # bytes; a status line has about 20
STATUS = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: |\r|\n)")


def request(host: str, path: str, method: str = "GET") -> bytes:
    """Return a request that asks the server to close: then the wait after closing (TIME_WAIT) is the server's.

    :param host: as in a URL: with the port where it is not the scheme's own, an IPv6 address in brackets
    """
    lines = (f"{method} {path} HTTP/1.1", f"Host: {host}", "User-Agent: onprem.lb", "Accept: */*", "Connection: close")
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii")


def host_header(name: str, port: int, default_port: int) -> str:
    name = f"[{name}]" if ":" in name else name
    return name if port == default_port else f"{name}:{port}"


def bounds(statuses: str) -> Tuple[int, int]:
    """Return the lowest and the highest status of a range such as 200-399, or of a single code."""
    low, _dash, high = statuses.partition("-")
    return int(low), int(high or low)


def dialogue(host: str, path: str, expected: Sequence[str], method: str = "GET") -> Dialogue:
    """Return a dialogue that requests a page and succeeds with one of some statuses.

    :param expected: codes and ranges
    """
    ranges = [bounds(each) for each in expected]

    def request_page(stream: Stream) -> Steps:
        stream.expect("no answer")
        yield from stream.send(request(host, path, method))
        line = yield from _first_line(stream)
        match = STATUS.match(line)
        if not match:
            raise BadResponse(f"not an answer of HTTP: {line[:40]!r}" if line else "closed without an answer")
        status = int(match.group(1))
        if not any(low <= status <= high for low, high in ranges):
            raise BadResponse(f"status {status}")
        return f"status {status}"

    return request_page


def _first_line(stream: Stream) -> Generator[int, None, bytes]:
    """Return the first line, or as much as there is of it."""
    data = b""
    while b"\n" not in data and len(data) < MAX_STATUS_LINE:
        more = yield from stream.receive(MAX_STATUS_LINE - len(data))
        if not more:
            break
        data += more
    first, end, _rest = data.partition(b"\n")
    return first + end
