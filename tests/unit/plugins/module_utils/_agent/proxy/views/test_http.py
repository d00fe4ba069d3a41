# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of HTTP as a monitor endpoint needs."""

from __future__ import annotations

import http.client
import io

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import http as web
from hypothesis import given
from hypothesis import strategies as st

PAGES = {"/": web.Page("root"), "/ready": web.Page("wörld", 503, headers="X-More: 1\r\n")}
ROUTES = {path: web.Route(lambda page=page: page) for path, page in PAGES.items()}
answer = web.answers(ROUTES.get, lambda render: render())


class Wire(io.BytesIO):
    def makefile(self, _mode):
        return self


def read(reply, method="GET"):
    found = http.client.HTTPResponse(Wire(reply), method=method)
    found.begin()
    return found, found.read()


@pytest.mark.parametrize(
    "request_line, status, body",
    [
        ("GET / HTTP/1.1", 200, b"root"),
        ("GET / HTTP/1.0", 200, b"root"),
        ("GET /?x=/ready HTTP/1.1", 200, b"root"),
        ("GET /ready HTTP/1.1", 503, "wörld".encode()),
        ("GET http://any.name:80/ready HTTP/1.1", 503, "wörld".encode()),
        ("GET http://any.name HTTP/1.1", 200, b"root"),
        ("GET /other HTTP/1.1", 404, b"Not Found\n"),
        ("GET /\xff HTTP/1.1", 404, b"Not Found\n"),
        ("POST / HTTP/1.1", 405, b"Method Not Allowed\n"),
        ("GET / HTTP/2.0", 400, b"Bad Request\n"),
        ("GET /", 400, b"Bad Request\n"),
        ("get / HTTP/1.1", 400, b"Bad Request\n"),
        ("GET  / HTTP/1.1", 400, b"Bad Request\n"),
        ("", 400, b"Bad Request\n"),
    ],
)
def test_each_request_has_its_answer(request_line, status, body):
    reply = answer(request_line.encode("latin-1") + b"\r\nHost: x\r\n\r\n", False)
    found, content = read(reply)
    assert (found.status, content) == (status, body)
    assert found.headers["Connection"] == "close" and int(found.headers["Content-Length"]) == len(body)


def test_a_head_has_the_same_headers_and_nothing_else():
    whole, _content = read(answer(b"GET /ready HTTP/1.1\r\n\r\n", False))
    found, content = read(answer(b"HEAD /ready HTTP/1.1\r\n\r\n", False), "HEAD")
    assert (found.status, content, found.getheaders()) == (503, b"", whole.getheaders())
    assert found.headers["X-More"] == "1"


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\r\nHost: x\r\n\r\n", b"\nHost: x\n\n"])
def test_it_waits_for_the_empty_line(end):
    request = b"GET / HTTP/1.1" + end
    for length in range(1, len(request)):
        assert answer(request[:length], False) is None, request[:length]
    assert read(answer(request, False))[0].status == 200


def test_half_a_request_is_bad_and_none_is_nothing():
    assert read(answer(b"GET / HTTP/1.1\r\nHost", True))[0].status == 400
    assert answer(b"", True) == b""


def test_a_request_without_an_end_is_refused():
    assert answer(b"GET / HTTP/1.1\r\nX: " + b"x" * 5000, False) is None
    assert read(answer(b"GET / HTTP/1.1\r\nX: " + b"x" * 9000, False))[0].status == 431
    assert read(answer(b"G" * 9000, False))[0].status == 431


@given(st.binary(max_size=200), st.booleans())
def test_garbage_has_an_answer_or_is_waited_for(garbage, ended):
    reply = answer(garbage, ended)
    assert reply is None and not ended or reply == b"" or reply.startswith(b"HTTP/1.1 ")
