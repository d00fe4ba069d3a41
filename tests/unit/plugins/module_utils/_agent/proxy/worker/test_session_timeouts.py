# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions that time out, against real sockets: each timeout ends what it is meant for, and nothing else."""

from __future__ import annotations

import socket
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import splice
from support.proxy.connections import fill, is_reset
from support.proxy.proxies import Proxy

HTTP = {"mode": "http"}


def test_an_http_server_that_never_answers_times_out(server):
    with Proxy(server, options=HTTP, server=0.4) as proxy, proxy.pair(server) as (client, accepted):
        client.sendall(b"are you there?")
        began = time.monotonic()
        assert is_reset(client)
        assert 0.3 < time.monotonic() - began < 2
        assert is_reset(accepted)


def test_a_silent_http_client_times_out(server):
    with Proxy(server, options=HTTP, client=0.4) as proxy, proxy.pair(server) as (client, accepted):
        assert is_reset(accepted)
        assert is_reset(client)


def test_once_both_sides_have_sent_data_the_tunnel_timeout_applies(server):
    with Proxy(server, options=HTTP, client=0.3, server=0.3, tunnel=1.2) as proxy, proxy.pair(server) as (
        client,
        accepted,
    ):
        client.sendall(b"question")
        accepted.sendall(b"answer")
        assert client.recv(10) == b"answer"
        began = time.monotonic()
        assert is_reset(client)
        assert 1 < time.monotonic() - began < 3


def test_a_tcp_session_has_the_tunnel_timeout_from_the_connection_on(server):
    with Proxy(server, client=0.3, server=0.3, tunnel=1.2) as proxy, proxy.pair(server) as (client, _accepted):
        client.sendall(b"question")
        began = time.monotonic()
        assert is_reset(client)
        assert 1 < time.monotonic() - began < 3


def test_a_slow_sender_does_not_time_out(server):
    with Proxy(server, options=HTTP, client=0.4, server=0.4) as proxy, proxy.pair(server) as (client, accepted):
        for _each in range(8):
            client.sendall(b".")
            assert accepted.recv(1) == b"."
            time.sleep(0.15)  # slowly, but faster than the timeout


@pytest.mark.parametrize("ending", ["client", "server"])
def test_after_one_side_has_finished_the_fin_timeout_applies(server, ending):
    with Proxy(server, fin=0.4) as proxy, proxy.pair(server) as pair:
        one, other = pair if ending == "client" else reversed(pair)
        one.shutdown(socket.SHUT_WR)
        assert other.recv(1) == b""
        assert is_reset(one)


def test_without_a_fin_timeout_a_half_closed_session_has_the_others(server):
    with Proxy(server, client=0.3, server=0.3, tunnel=1.2) as proxy, proxy.pair(server) as (client, accepted):
        client.shutdown(socket.SHUT_WR)
        assert accepted.recv(1) == b""
        began = time.monotonic()
        assert is_reset(accepted)
        assert 1 < time.monotonic() - began < 3


def half_closed_and_full(client, accepted) -> None:
    """The client has finished sending, and gets more data than it and the kernel have room for."""
    client.shutdown(socket.SHUT_WR)
    assert accepted.recv(1) == b""
    fill(accepted)


def test_a_slow_reader_does_not_time_out_after_the_other_side_has_finished(server):
    with Proxy(server, fin=0.6) as proxy, proxy.connect(SO_RCVBUF=4096) as client, server.accept()[0] as accepted:
        half_closed_and_full(client, accepted)
        accepted.close()
        late = time.monotonic() + 2.5
        while time.monotonic() < late:
            assert client.recv(4096)
            time.sleep(0.05)  # it reads slowly
        while client.recv(1 << 20):
            pass


@pytest.mark.parametrize("spliced", [False, True], ids=["in memory", "in a pipe"])
def test_a_reader_that_has_stopped_times_out(server, spliced, monkeypatch):
    if not spliced:
        monkeypatch.setattr(splice, "_works", lambda: False)
    with Proxy(server, fin=0.6) as proxy, proxy.connect(SO_RCVBUF=4096) as client, server.accept()[0] as accepted:
        half_closed_and_full(client, accepted)
        assert is_reset(accepted)
