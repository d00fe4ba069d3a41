# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions against real sockets: servers that cannot be reached, the master's orders, and the PROXY protocol."""

from __future__ import annotations

import select
import socket
import struct

import pytest
from support.proxy.connections import is_reset
from support.proxy.proxies import LIMIT, LOCAL, Clock, Proxy
from support.waiting import until


@pytest.fixture
def closed_port():
    """An address and a port without a listener. It stays bound, so that no other program can listen there."""
    with socket.socket() as bound:
        bound.bind((LOCAL, 0))
        yield bound.getsockname()


# -- servers that cannot be reached


def test_a_client_of_a_server_that_refuses_gets_another_one(server, closed_port):
    with Proxy(closed_port, server, clock=Clock()) as proxy:  # which stands still: there is no pause
        for _each in range(6):
            with proxy.pair(server) as (client, accepted):
                client.sendall(b"hello")
                assert accepted.recv(5) == b"hello"
        assert proxy.wait_for_message("failed") == "service/0"
    assert proxy.count("sessions", 1) == 6
    assert proxy.count("connect_errors", 0) == proxy.count("retries", 0) == 1, "it is not avoided"
    assert proxy.count("refused") == 0


def test_a_client_of_an_unresponsive_server_gets_another_one(server, deaf):
    with Proxy(deaf, server, connect=0.3) as proxy, proxy.connect() as client:
        with server.accept()[0] as accepted:
            accepted.sendall(b"welcome")
            assert client.recv(7) == b"welcome"
        assert proxy.wait_for_message("failed") == "service/0"


def test_what_a_client_sent_before_the_retry_is_not_lost(server, deaf):
    with Proxy(deaf, server, connect=0.3) as proxy, proxy.connect() as client:
        client.sendall(b"early")
        client.shutdown(socket.SHUT_WR)
        with server.accept()[0] as accepted:
            assert accepted.recv(100) == b"early"
            assert accepted.recv(100) == b""
            accepted.sendall(b"answer")
        assert client.recv(100) == b"answer"


def test_a_lone_server_is_tried_again_after_a_pause(server):
    place = server.getsockname()
    server.close()
    with Proxy(place, clock=Clock()) as proxy, proxy.connect() as client:
        assert proxy.wait_for_message("failed") == "service/0"
        with socket.create_server(place) as late:
            late.settimeout(LIMIT)
            proxy.let_pass(1)
            with late.accept()[0] as accepted:
                accepted.sendall(b"welcome")
                assert client.recv(7) == b"welcome"


def test_a_client_that_waits_for_a_retry_keeps_a_lone_server_that_goes_down_meanwhile(server):
    place = server.getsockname()
    server.close()
    with Proxy(place, clock=Clock(), settings_options={"retries": 9}) as proxy, proxy.connect() as client:
        proxy.wait_for_message("failed")
        proxy.set_server(0, "down")
        assert proxy.seconds_until(lambda: proxy.count("connect_errors") > 1), "it was not tried again"
        with pytest.raises(ConnectionResetError), proxy.connect() as late:
            late.recv(1)
        with socket.create_server(place) as again:
            again.settimeout(LIMIT)
            proxy.let_pass(1)
            with again.accept()[0] as accepted:
                accepted.sendall(b"welcome")
                assert client.recv(7) == b"welcome"
    assert (proxy.count("refused"), proxy.count("sessions")) == (1, 1)


def test_a_client_is_reset_after_the_last_retry(closed_port):
    with Proxy(closed_port, clock=Clock()) as proxy, proxy.connect() as client:
        proxy.wait_for_message("failed")
        assert proxy.seconds_until(lambda: proxy.count("refused")) > 2.9, "no time was given to the server"
        assert is_reset(client)
    assert (proxy.count("refused"), proxy.count("sessions")) == (1, 0)
    assert (proxy.count("connect_errors"), proxy.count("retries"), proxy.count("current")) == (4, 3, 0)


def test_a_server_that_does_not_answer_is_tried_again_without_a_pause(deaf):
    with Proxy(deaf, clock=Clock(), connect=30, settings_options={"retries": 2}) as proxy, proxy.connect() as client:
        for _attempt in range(2):
            proxy.let_pass(29)
            before = proxy.count("connect_errors")
            proxy.let_pass(1)
            assert (proxy.count("connect_errors"), proxy.count("refused")) == (before + 1, 0)
        proxy.let_pass(30)
        assert (proxy.count("connect_errors"), proxy.count("refused")) == (3, 1)
        assert is_reset(client)


def test_a_server_is_used_again_after_its_back_off(server, other):
    place = other.getsockname()
    with Proxy(place, server) as proxy:
        other.close()
        with proxy.pair(server):
            proxy.wait_for_message("failed")
        with socket.create_server(place) as again:
            until(lambda: _reaches(proxy, again, server))


def _reaches(proxy, wanted, other) -> bool:
    """Whether a new client gets to a server."""
    with proxy.connect():
        reached = select.select([wanted, other], [], [], LIMIT)[0]
        reached[0].accept()[0].close()
        return reached == [wanted]


def test_while_no_server_is_up_a_client_is_reset_at_once(server):
    with Proxy(server, clock=Clock()) as proxy:  # which stands still
        proxy.set_server(0, "down")
        with pytest.raises(ConnectionResetError), proxy.connect() as client:
            client.recv(1)
    assert proxy.count("refused") == 1


# -- the master's orders


def test_shutdown_resets_the_sessions_of_that_server_only(server, other):
    with Proxy(server, other) as proxy, proxy.pair(server) as cut, proxy.pair(other) as (client, accepted):
        proxy.set_server(0, "down", shutdown=True)
        assert is_reset(cut[0])
        assert is_reset(cut[1])
        client.sendall(b"still here")
        assert accepted.recv(10) == b"still here"


def test_a_client_that_waits_for_a_retry_is_not_reset_with_them(server):
    place = server.getsockname()
    server.close()
    with Proxy(place, clock=Clock()) as proxy, proxy.connect() as client:
        proxy.wait_for_message("failed")
        proxy.set_server(0, "up", shutdown=True)
        with socket.create_server(place) as late:
            late.settimeout(LIMIT)
            proxy.let_pass(1)
            with late.accept()[0] as accepted:
                accepted.sendall(b"welcome")
                assert client.recv(7) == b"welcome"


@pytest.mark.parametrize("state", ["down", "drain", "maint"])
def test_a_server_that_is_not_up_keeps_its_sessions_and_gets_no_new_ones(server, other, state):
    with Proxy(server, other) as proxy, proxy.pair(server) as (client, accepted):
        proxy.set_server(0, state)
        for _each in range(3):
            with proxy.pair(other):
                pass
        client.sendall(b"still here")
        assert accepted.recv(10) == b"still here"


# -- the PROXY protocol


def test_with_send_proxy_a_server_gets_the_header_before_anything_else(server):
    with Proxy(server, options={"send_proxy": True}) as proxy, proxy.pair(server) as (client, accepted):
        client.sendall(b"GET /")
        said = _exactly(accepted, 28 + 5)
        assert said[:16] == b"\r\n\r\n\0\r\nQUIT\n" + b"\x21\x11" + b"\x00\x0c"
        assert said[16:24] == socket.inet_aton(LOCAL) * 2
        assert struct.unpack("!HH", said[24:28]) == (client.getsockname()[1], proxy.address[1])
        assert said[28:] == b"GET /"
        accepted.sendall(b"answer")
        assert client.recv(10) == b"answer"


def test_the_header_comes_before_the_clients_first_data(server):
    with Proxy(server, options={"send_proxy": True}) as proxy:
        with proxy.suspended():
            client = proxy.connect()
            client.sendall(b"GET /")
        with client, server.accept()[0] as accepted:
            said = _exactly(accepted, 28 + 5)
            assert (said[:12], said[28:]) == (b"\r\n\r\n\0\r\nQUIT\n", b"GET /")
    assert proxy.count("bytes_in") == 5


def test_the_header_is_sent_even_while_the_client_is_silent(server):
    with Proxy(server, options={"send_proxy": True}) as proxy, proxy.pair(server) as (client, accepted):
        assert len(_exactly(accepted, 28)) == 28
        accepted.sendall(b"220 welcome")
        assert client.recv(20) == b"220 welcome"


def _exactly(connection, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        assert more, "it has ended"
        data += more
    return data
