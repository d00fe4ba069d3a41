# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The part of HTTP that monitors and the page need: one GET or HEAD, one response, then closed. Pure."""

from __future__ import annotations

import re
from typing import Callable, NamedTuple, Optional

from ...runtime.request_server import Answer, Answered

MAX_REQUEST = 8192  # bytes of a request
PLAIN = "text/plain; charset=utf-8"
REQUEST_LINE = re.compile(rb"([A-Z]+) (?:https?://[^/? ]*)?([^ ]*) HTTP/1\.[01]\r?")
REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Page(NamedTuple):
    """A response."""

    body: str = ""
    status: int = 200
    type: str = PLAIN
    headers: str = ""  # more headers, each with its end of line


class Route(NamedTuple):
    """What there is at a path."""

    page: Callable[[], Page]
    slow: bool = False  # whether it reports on every server


Find = Callable[[str], Optional[Route]]  # by path, without its query; None: not found
RenderSlow = Callable[[Callable[[], bytes]], Answered]


def answers(find: Find, render_slow: RenderSlow) -> Answer:
    """Return what answers HTTP requests at a socket.

    :param render_slow: is given what renders a slow page, and returns the answer
    """

    def answer(received: bytes, ended: bool) -> Optional[Answered]:
        if not received:
            return b"" if ended else None
        first, line_end, rest = received.partition(b"\n")
        match = REQUEST_LINE.fullmatch(first)
        if line_end and not match:
            return _written(_fault(400))
        if match and (rest.startswith((b"\r\n", b"\n")) or b"\n\r\n" in rest or b"\n\n" in rest):
            return _answer(match.group(1), match.group(2), find, render_slow)
        if len(received) > MAX_REQUEST:
            return _written(_fault(431))
        return _written(_fault(400)) if ended else None

    return answer


def _answer(method: bytes, target: bytes, find: Find, render_slow: RenderSlow) -> Answered:
    if method not in (b"GET", b"HEAD"):
        return _written(_fault(405, "Allow: GET, HEAD\r\n"))
    path = target.partition(b"?")[0].decode("ascii", "replace") or "/"
    route, whole = find(path) or Route(lambda: _fault(404)), method == b"GET"
    return render_slow(lambda: _written(route.page(), whole)) if route.slow else _written(route.page(), whole)


def _fault(status: int, headers: str = "") -> Page:
    return Page(f"{REASONS[status]}\n", status, headers=headers)


def _written(page: Page, whole: bool = True) -> bytes:
    body = page.body.encode(errors="backslashreplace")
    head = (
        f"HTTP/1.1 {page.status} {REASONS[page.status]}\r\n"
        f"Content-Type: {page.type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        f"{page.headers}"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (body if whole else b"")
