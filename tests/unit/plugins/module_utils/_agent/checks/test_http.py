# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of web servers, good ones and bad ones."""

from __future__ import annotations

import socket
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import http
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.network import NetworkProbe
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.runner import probe_of
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import Check, Step
from support.agent.loops import LIMIT, SECOND, Runs, run_until
from support.agent.servers import Server, answering, hear, silent

OK = b"HTTP/1.1 200 OK\r\n\r\nall is well"


def ask(loop, server, host="site.example", path="/", wanted=("200-399",), timeout=LIMIT):
    dialogue = http.dialogue(host, path, wanted)
    return Runs(loop, NetworkProbe(loop, "127.0.0.1", server.port, timeout, dialogue)).one()


def test_the_request_names_the_host_and_asks_for_an_end(loop):
    with Server(answering(OK)) as server:
        ask(loop, server, "site.example:8080", "/healthz?full=1")
    lines = server.heard[0].split(b"\r\n")
    assert lines[0] == b"GET /healthz?full=1 HTTP/1.1"
    assert b"Host: site.example:8080" in lines
    assert b"Connection: close" in lines
    assert lines[-2:] == [b"", b""]


@pytest.mark.parametrize(
    "name, port, header",
    [
        ("site.example", 80, "site.example"),
        ("site.example", 8080, "site.example:8080"),
        ("192.0.2.1", 80, "192.0.2.1"),
        ("2001:db8::1", 80, "[2001:db8::1]"),
        ("2001:db8::1", 8080, "[2001:db8::1]:8080"),
    ],
)
def test_the_host_is_written_as_in_a_url(name, port, header):
    assert http.host_header(name, port, 80) == header


@pytest.mark.parametrize(
    "answer, status",
    [
        (OK, 200),
        (b"HTTP/1.0 204 No Content\r\n\r\n", 204),
        (b"HTTP/1.1 301\r\n\r\n", 301),
        (b"HTTP/1.1 399 \r\n", 399),
        (b"HTTP/1.1 200 OK\n\n", 200),
        (b"HTTP/1.1 200 " + b"O" * 3000 + b"K\r\n", 200),
    ],
)
def test_a_status_that_is_wanted_is_a_success(loop, no_leak, answer, status):
    with Server(answering(answer)) as server:
        outcome = ask(loop, server)
    assert (outcome.success, outcome.detail) == (True, f"status {status}")


@pytest.mark.parametrize("status", [100, 199, 400, 404, 503])
def test_another_status_is_a_failure_with_that_detail(loop, status):
    with Server(answering(b"HTTP/1.1 %d Odd\r\n\r\n" % status)) as server:
        assert ask(loop, server)[:2] == (False, f"status {status}")


def test_the_bounds_of_what_is_wanted_are_wanted_too(loop):
    with Server(answering(b"HTTP/1.1 401 Unauthorized\r\n\r\n")) as server:
        wanted = (["401"], ["200", "401"], ["200-401"], ["401-599"], ["200-400"], ["402-599"], ["200", "403"])
        assert [ask(loop, server, wanted=each).success for each in wanted] == [True] * 4 + [False] * 3


def in_sequence(loop, *servers):
    """Check several servers of this host in sequence."""
    steps = tuple(Step("http", server.port, status=("200", "401")) for server in servers)
    check = Check("both", "http", address="127.0.0.1", steps=steps)
    return Runs(loop, probe_of(loop, check, None, None)).one()


def test_a_sequence_succeeds_only_if_each_step_does(loop, no_leak):
    good, bad = answering(OK), answering(b"HTTP/1.1 500 No\r\n\r\n")
    with Server(good) as one, Server(good) as other, Server(bad) as broken:
        assert in_sequence(loop, one, other)[:2] == (True, f"port {other.port}: status 200")
        assert in_sequence(loop, one, broken)[:2] == (False, f"port {broken.port}: status 500")
        assert in_sequence(loop, broken, one)[:2] == (False, f"port {broken.port}: status 500")
        assert (len(one.heard), len(other.heard)) == (2, 1)


def test_a_sequence_that_is_stopped_reports_nothing(loop, no_leak):
    with Server(answering(OK)) as one, Server(silent) as other:
        check = Check("both", "http", address="127.0.0.1", steps=(Step("http", one.port), Step("http", other.port)))
        runs = Runs(loop, probe_of(loop, check, None, None))
        runs.start()
        run_until(loop, lambda: one.heard)
        runs.probe.stop()
    assert runs.outcomes == []


def test_an_answer_may_come_byte_by_byte(loop):
    with Server(answering(*(OK[at : at + 1] for at in range(len(OK))))) as server:
        assert ask(loop, server).success


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"HTTP/1.1 200",
        b"\xff" * 20_000,
    ],
)
def test_what_is_no_http_is_a_failure_that_shows_it(loop, no_leak, garbage):
    with Server(answering(garbage)) as server:
        outcome = ask(loop, server)
    assert not outcome.success
    assert outcome.detail.startswith("not an answer of HTTP: b'")
    assert len(outcome.detail) < 200


def test_only_a_little_is_read_of_a_line_that_never_ends(loop):
    def endless(connection, heard):
        hear(connection, heard)
        while True:
            connection.sendall(b"x" * 1000)

    with Server(endless) as server:
        outcome = ask(loop, server)
    assert outcome.detail.startswith("not an answer of HTTP")


def test_a_server_that_closes_without_an_answer_is_down(loop):
    with Server(answering()) as server:
        assert ask(loop, server)[:2] == (False, "closed without an answer")


def test_a_server_that_resets_the_connection_is_down(loop):
    def reset(connection, heard):
        hear(connection, heard)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with Server(reset) as server:
        assert ask(loop, server)[:2] == (False, "connection reset by peer")


@pytest.mark.parametrize(
    "behave", [silent, lambda connection, heard: (connection.sendall(b"H"), silent(connection, 0))]
)
def test_a_server_that_takes_its_time_is_down(loop, no_leak, behave):
    with Server(behave) as server:
        assert ask(loop, server, timeout=SECOND // 10)[:2] == (False, "no answer within 0.1 s")


def test_a_path_that_cannot_be_asked_for_is_a_failure(loop, no_leak):
    with Server(silent) as server:
        outcome = ask(loop, server, path="/\u00fc")
    assert not outcome.success
    assert "ascii" in outcome.detail
