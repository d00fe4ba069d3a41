# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's backend: what it answers on one connection, and when that ends."""

from __future__ import annotations

import runpy
import socket

import pytest
from support.paths import ROOT

BACKEND = runpy.run_path(str(ROOT / "lab" / "files" / "backend.py"))
NAME = BACKEND["NAME"]
GET = b"GET /any HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def client():
    """A connection, and the backend's side of it."""
    own, other = socket.socketpair()
    with own, other:
        own.setblocking(False)
        other.setblocking(False)
        yield own, BACKEND["Client"](other)


def asked(client, *parts):
    """Send what a client sends, and return the answer, and whether the connection goes on."""
    own, backend = client
    goes_on = []
    for part in parts:
        own.sendall(part)
        goes_on.append(backend.read())
    return own.recv(65536), goes_on[-1]


def test_each_request_of_a_connection_is_answered_with_the_hosts_name(client):
    answer, goes_on = asked(client, GET + GET, GET)
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 3 and answer.count(b"\r\n\r\n" + NAME) == 3
    assert goes_on


def test_a_request_that_comes_in_parts_is_answered_when_it_is_whole(client):
    answer, goes_on = asked(client, GET[:9], GET[9:-1], GET[-1:])
    assert answer.endswith(b"\r\n\r\n" + NAME) and goes_on


def test_a_head_has_the_length_and_no_body(client):
    answer, goes_on = asked(client, GET.replace(b"GET", b"HEAD"))
    assert answer.endswith(b"Content-Length: %d\r\n\r\n" % len(NAME)) and goes_on


@pytest.mark.parametrize(
    "request_, status",
    [
        (GET.replace(b"1.1", b"1.0"), b"200 OK"),
        (GET.replace(b"Host: x", b"Connection: close"), b"200 OK"),
        (GET.replace(b"GET", b"POST"), b"501 Not Implemented"),
        (b"\x16\x03\x01\r\n\r\n", b"501 Not Implemented"),
    ],
    ids=["1.0", "close", "POST", "no HTTP"],
)
def test_the_connection_ends_after_what_asks_for_it_or_is_not_understood(client, request_, status):
    answer, goes_on = asked(client, request_)
    assert answer.startswith(b"HTTP/1.1 " + status) and not goes_on


def test_a_client_that_has_gone_ends_its_connection_alone(client):
    own, backend = client
    own.close()
    assert not backend.read()
