# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions that time out, with real sockets and a fake clock: each timeout ends what it is meant for, and no more."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import splice
from support.proxy.connections import fill, is_reset
from support.proxy.proxies import Clock, Proxy
from support.waiting import until

HTTP = {"mode": "http"}


def timed(*servers, **more):
    return Proxy(*servers, clock=Clock(), **more)


def lasts(proxy, seconds):
    """Return whether the session lasts so long from now on, to two seconds, and then not any longer."""
    proxy.let_pass(1)  # notices what has just passed
    proxy.let_pass(seconds - 2)
    still_there = proxy.count("current")
    proxy.let_pass(2)
    return (still_there, proxy.count("current")) == (1, 0)


def test_an_http_server_that_never_answers_times_out(server):
    with timed(server, options=HTTP, server=40) as proxy, proxy.pair(server) as (client, accepted):
        client.sendall(b"are you there?")
        assert accepted.recv(100)
        assert lasts(proxy, 40)
        assert is_reset(client) and is_reset(accepted)


def test_a_silent_http_client_times_out(server):
    with timed(server, options=HTTP, client=40) as proxy, proxy.pair(server) as (client, accepted):
        assert lasts(proxy, 40)
        assert is_reset(accepted) and is_reset(client)


def test_once_both_sides_have_sent_data_the_tunnel_timeout_applies(server):
    timeouts = {"client": 30, "server": 30, "tunnel": 120}
    with timed(server, options=HTTP, **timeouts) as proxy, proxy.pair(server) as (client, accepted):
        client.sendall(b"question")
        accepted.sendall(b"answer")
        assert accepted.recv(10) == b"question" and client.recv(10) == b"answer"
        assert lasts(proxy, 120)
        assert is_reset(client)


def test_a_tcp_session_has_the_tunnel_timeout_from_the_connection_on(server):
    with timed(server, client=30, server=30, tunnel=120) as proxy, proxy.pair(server) as (client, accepted):
        client.sendall(b"question")
        assert accepted.recv(10) == b"question"
        assert lasts(proxy, 120)
        assert is_reset(client)


def test_a_slow_sender_does_not_time_out(server):
    with timed(server, options=HTTP, client=40, server=40) as proxy, proxy.pair(server) as (client, accepted):
        for _each in range(8):
            client.sendall(b".")
            assert accepted.recv(1) == b"."
            proxy.let_pass(30)
            assert proxy.count("current") == 1


@pytest.mark.parametrize("ending", ["client", "server"])
def test_after_one_side_has_finished_the_fin_timeout_applies(server, ending):
    with timed(server, fin=40) as proxy, proxy.pair(server) as pair:
        one, other = pair if ending == "client" else reversed(pair)
        one.shutdown(socket.SHUT_WR)
        assert other.recv(1) == b""
        assert lasts(proxy, 40)
        assert is_reset(one)


def test_without_a_fin_timeout_a_half_closed_session_has_the_others(server):
    with timed(server, client=30, server=30, tunnel=120) as proxy, proxy.pair(server) as (client, accepted):
        client.shutdown(socket.SHUT_WR)
        assert accepted.recv(1) == b""
        assert lasts(proxy, 120)
        assert is_reset(accepted)


def half_closed_and_full(client, accepted) -> None:
    """The client has finished sending, and gets more data than it and the kernel have room for."""
    client.shutdown(socket.SHUT_WR)
    assert accepted.recv(1) == b""
    fill(accepted)


def test_a_slow_reader_does_not_time_out_after_the_other_side_has_finished(server):
    with timed(server, fin=40) as proxy, proxy.connect(SO_RCVBUF=4096) as client, server.accept()[0] as accepted:
        half_closed_and_full(client, accepted)
        accepted.close()
        for _each in range(6):
            for _part in range(20):
                assert client.recv(4096)
            proxy.let_pass(30)
            assert proxy.count("current") == 1
        while client.recv(1 << 20):
            pass


@pytest.mark.parametrize("spliced", [False, True], ids=["in memory", "in a pipe"])
def test_a_reader_that_has_stopped_times_out(server, spliced, monkeypatch):
    if not spliced:
        monkeypatch.setattr(splice, "_works", lambda: False)
    with timed(server, fin=40) as proxy, proxy.connect(SO_RCVBUF=4096) as client, server.accept()[0] as accepted:
        half_closed_and_full(client, accepted)
        proxy.let_pass(1)
        assert proxy.count("current") == 1
        until(lambda: proxy.let_pass(40) or not proxy.count("current"))
        assert is_reset(accepted)
