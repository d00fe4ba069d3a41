# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Timeouts of TCP sessions: the same plays at the same time through HAProxy and through the agent's proxy.

configuration.txt of HAProxy, "timeout tunnel": "This timeout supersedes both the client and server timeouts once the
connection becomes a tunnel. In TCP, this timeout is used as soon as no analyzer remains attached to either
connection". "timeout client-fin": "this timeout can override "timeout tunnel" when a connection shuts down in one
direction. [...] By default it is not set, so half-closed connections will use the other timeouts".
"""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from support.proxy.proxies import LIMIT, LOCAL
from support.proxy.side_by_side import Balancers, Play, everything, together

CLIENT, SERVER, FIN, PAUSE, TUNNEL = 1, 1, 1, 3, 5  # seconds: a pause exceeds all but the tunnel


def one_way_stream_with_a_pause(client, server):
    server.sendall(b"a")
    time.sleep(PAUSE)
    server.sendall(b"b")
    server.close()
    return everything(client)


def first_answer_after_a_pause(client, server):
    client.sendall(b"?")
    time.sleep(PAUSE)
    server.sendall(b"!")
    server.close()
    return everything(client)


def answer_after_the_client_has_finished(client, server):
    client.sendall(b"?")
    client.shutdown(socket.SHUT_WR)
    assert everything(server) == b"?"
    time.sleep(PAUSE)
    with contextlib.suppress(OSError):  # it was cut
        server.sendall(b"!")
        server.close()
    return everything(client)


def request_after_the_server_has_finished(client, server):
    server.sendall(b"!")
    server.shutdown(socket.SHUT_WR)
    assert everything(client) == b"!"
    time.sleep(PAUSE)
    with contextlib.suppress(OSError):
        client.sendall(b"?")
        client.close()
    return everything(server)


def silence_from_the_start(client, _server):
    return seconds_until_it_is_cut(client)


def silence_after_a_question(client, _server):
    client.sendall(b"?")
    return seconds_until_it_is_cut(client)


def silence_after_an_exchange(client, server):
    client.sendall(b"?")
    server.sendall(b"!")
    assert client.recv(1) == b"!"
    return seconds_until_it_is_cut(client)


def seconds_until_it_is_cut(client):
    """Return whole seconds; the agent may be a second late, since it looks at each session once a second."""
    began = time.monotonic()
    assert everything(client) == b""
    lasted = time.monotonic() - began
    return TUNNEL if TUNNEL - 0.1 < lasted < TUNNEL + 2 else lasted


# What each play finds without and with a timeout for half-closed sessions.
PLAYS = {
    one_way_stream_with_a_pause: (b"ab", b"ab"),
    first_answer_after_a_pause: (b"!", b"!"),
    answer_after_the_client_has_finished: (b"!", b""),
    request_after_the_server_has_finished: (b"?", b""),
    silence_from_the_start: (TUNNEL, TUNNEL),
    silence_after_a_question: (TUNNEL, TUNNEL),
    silence_after_an_exchange: (TUNNEL, TUNNEL),
}


def between(play):
    """Return a play between a client and the server that accepts it."""

    def perform(port, server):
        with socket.create_connection((LOCAL, port), 2 * LIMIT) as client, server.accept()[0] as accepted:
            accepted.settimeout(2 * LIMIT)
            return play(client, accepted)

    return Play(perform)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what the plays find, by the timeout for half-closed sessions."""
    results, plays = {}, {play.__name__: between(play) for play in PLAYS}

    def run(fin):
        timeouts = {"connect": 5, "client": CLIENT, "server": SERVER, "tunnel": TUNNEL, "fin": fin}
        results[fin] = Balancers(timeouts).perform(tmp_path_factory.mktemp(f"fin-{fin}"), plays)

    together([lambda fin=fin: run(fin) for fin in (0, FIN)])
    return results


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
@pytest.mark.parametrize("fin", [0, FIN], ids=["no fin timeout", "fin timeout"])
def test_a_session_lasts_as_long_as_through_haproxy(found, play, fin):
    expected = PLAYS[play][bool(fin)]
    assert {balancer: result.get(play.__name__) for balancer, result in found[fin].items()} == {
        "haproxy": expected,
        "agent": expected,
    }
