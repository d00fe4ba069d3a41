# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Timeouts of TCP sessions: the same plays at the same time through HAProxy and through the agent's proxy.

configuration.txt of HAProxy, "timeout tunnel": "This timeout supersedes both the client and server timeouts once the
connection becomes a tunnel. In TCP, this timeout is used as soon as no analyzer remains attached to either
connection". "timeout client-fin": "this timeout can override "timeout tunnel" when a connection shuts down in one
direction. [...] By default it is not set, so half-closed connections will use the other timeouts".

The unit tests of sessions judge the agent's moments, with a fake clock.
"""

from __future__ import annotations

import functools
import select
import socket
import time

import pytest
from support.proxy.proxies import LIMIT, LOCAL
from support.proxy.side_by_side import Balancers, Play, everything, own_network, together

CLIENT, SERVER, FIN, PAUSE = 1, 1, 1, 3  # seconds: a pause exceeds all of them, and no tunnel
SHORT_TUNNEL, LONG_TUNNEL = 5, 10 * LIMIT


def pause(*ends):
    """Nothing comes for PAUSE: the session lasts."""
    assert not select.select(ends, [], [], PAUSE)[0], "it was cut"


def one_way_stream_with_a_pause(client, server, _fin):
    server.sendall(b"a")
    assert client.recv(1) == b"a"
    pause(client, server)
    server.sendall(b"b")
    server.close()
    return everything(client)


def first_answer_after_a_pause(client, server, _fin):
    client.sendall(b"?")
    assert server.recv(1) == b"?"
    pause(client, server)
    server.sendall(b"!")
    server.close()
    return everything(client)


def answer_after_the_client_has_finished(client, server, fin):
    client.sendall(b"?")
    client.shutdown(socket.SHUT_WR)
    assert everything(server) == b"?"
    if not fin:
        pause(client)
        server.sendall(b"!")
        server.close()
    return everything(client)


def request_after_the_server_has_finished(client, server, fin):
    server.sendall(b"!")
    server.shutdown(socket.SHUT_WR)
    assert everything(client) == b"!"
    if not fin:
        pause(server)
        client.sendall(b"?")
        client.close()
    return everything(server)


# What each play finds without and with a timeout for half-closed sessions, which cuts them.
PLAYS = {
    one_way_stream_with_a_pause: (b"b", b"b"),
    first_answer_after_a_pause: (b"!", b"!"),
    answer_after_the_client_has_finished: (b"!", b""),
    request_after_the_server_has_finished: (b"?", b""),
}


def silence_from_the_start(_client, _server):
    pass


def silence_after_a_question(client, server):
    client.sendall(b"?")
    assert server.recv(1) == b"?"


def silence_after_an_exchange(client, server):
    client.sendall(b"?")
    server.sendall(b"!")
    assert client.recv(1) == b"!"


SILENCES = (silence_from_the_start, silence_after_a_question, silence_after_an_exchange)


def connected(service, server):
    return socket.create_connection((LOCAL, service.port), LIMIT), server.accept()[0]


def between(play, fin):
    """Return a play between a client and the server that accepts it."""

    def perform(service, server):
        client, accepted = connected(service, server)
        with client, accepted:
            accepted.settimeout(LIMIT)
            return play(client, accepted, fin)

    return Play(perform)


def cut_after(play):
    """Return a play whose session is cut: whether not before the tunnel's timeout."""

    def perform(service, server):
        began = time.monotonic()
        client, accepted = connected(service, server)
        with client, accepted:
            play(client, accepted)
            assert everything(client) == b""
            return time.monotonic() - began > SHORT_TUNNEL - 0.1

    return Play(perform)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what the plays find, by the timeout for half-closed sessions."""
    results = {}

    def run(folder, fin, tunnel, plays):
        timeouts = {"connect": LIMIT, "client": CLIENT, "server": SERVER, "tunnel": tunnel, "fin": fin}
        results[fin, tunnel] = Balancers(timeouts).perform(folder, plays)

    calls = []
    for fin in (0, FIN):
        lasting = {play.__name__: between(play, fin) for play in PLAYS}
        silent = {play.__name__: cut_after(play) for play in SILENCES}
        for tunnel, plays in ((LONG_TUNNEL, lasting), (SHORT_TUNNEL, silent)):
            folder = tmp_path_factory.mktemp("balancers")
            calls.append(functools.partial(run, folder, fin, tunnel, plays))
    with own_network():
        together(calls)
    return results


with_and_without_fin = pytest.mark.parametrize("fin", [0, FIN], ids=["no fin timeout", "fin timeout"])


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
@with_and_without_fin
def test_a_session_lasts_or_is_cut_as_through_haproxy(found, play, fin):
    expected = PLAYS[play][bool(fin)]
    assert {balancer: result.get(play.__name__) for balancer, result in found[fin, LONG_TUNNEL].items()} == {
        "haproxy": expected,
        "agent": expected,
    }


@pytest.mark.parametrize("play", SILENCES, ids=lambda play: play.__name__)
@with_and_without_fin
def test_a_silent_session_is_cut_by_the_tunnels_timeout_as_through_haproxy(found, play, fin):
    assert {balancer: result.get(play.__name__) for balancer, result in found[fin, SHORT_TUNNEL].items()} == {
        "haproxy": True,
        "agent": True,
    }
