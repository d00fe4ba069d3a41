# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions that do not end well, against real sockets: who resets, who never answers, who is not there."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import splice
from support.proxy.proxies import LIMIT, LOCAL, Proxy, listening
from support.waiting import until

RESET = struct.pack("ii", 1, 0)
BLOCK = b"x" * 65536


@pytest.fixture
def server():
    with listening() as server:
        yield server


@pytest.fixture
def other():
    with listening() as server:
        yield server


@pytest.fixture
def closed_port():
    """An address and a port without a listener; it stays ours, so that no other program listens there."""
    with socket.socket() as bound:
        bound.bind((LOCAL, 0))
        yield bound.getsockname()


@pytest.fixture
def deaf():
    """A server that takes no more connections: what is sent to it is dropped, as by a firewall."""
    with listening(backlog=0) as server, contextlib.ExitStack() as clients:
        for _client in range(4):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield server.getsockname()


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def is_reset(connection: socket.socket) -> bool:
    """Read to the end; return whether that is a reset, or becomes one."""
    poll = select.poll()
    poll.register(connection, 0)  # but for POLLERR, which is always told
    try:
        while connection.recv(1 << 20):
            pass
    except ConnectionResetError:
        return True
    return any(events & select.POLLERR for _descriptor, events in poll.poll(LIMIT * 1000))


def fill(connection: socket.socket) -> None:
    """Send until nothing more is taken."""
    connection.setblocking(False)
    last = time.monotonic()
    while time.monotonic() - last < 0.2:
        try:
            connection.send(BLOCK)
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.002)
    connection.settimeout(LIMIT)


# -- resets, at every stage of a session; each leaves the worker as it was


def after_a_request(one, other):
    one.sendall(b"request")
    assert other.recv(7) == b"request"


def after_a_request_of_the_other_side(one, other):
    after_a_request(one=other, other=one)


def while_the_other_side_sends_much(one, other):
    other.sendall(BLOCK * 20)
    assert one.recv(100)


def while_it_reads_nothing(one, other):
    fill(other)


def while_the_other_side_reads_nothing(one, other):
    fill(one)


def while_both_read_nothing(one, other):
    fill(one)
    fill(other)


def after_its_own_end(one, other):
    one.sendall(b"all")
    one.shutdown(socket.SHUT_WR)
    assert other.recv(4) == b"all"
    assert other.recv(1) == b""


def after_the_other_end(one, other):
    after_its_own_end(one=other, other=one)


STAGES = [
    after_a_request,
    after_a_request_of_the_other_side,
    while_the_other_side_sends_much,
    while_it_reads_nothing,
    while_the_other_side_reads_nothing,
    while_both_read_nothing,
    after_its_own_end,
    after_the_other_end,
]


@pytest.mark.parametrize("resetting", ["client", "server"])
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
def test_a_reset_is_passed_on_and_leaves_nothing_behind(server, stage, resetting):
    with Proxy(server) as proxy:
        before = proxy.descriptors()
        with proxy.pair(server) as pair:
            one, another = pair if resetting == "client" else reversed(pair)
            stage(one, another)
            reset(one)
            assert is_reset(another)
        until(lambda: proxy.descriptors() <= before + 6)  # pipes are kept for the next one
        with proxy.pair(server) as (client, accepted):
            client.sendall(b"next")
            client.shutdown(socket.SHUT_WR)
            assert accepted.recv(4) == b"next"
            accepted.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert (proxy.count("sessions"), proxy.count("resets"), proxy.count("current")) == (2, 1, 0)


def test_a_client_that_goes_before_it_was_given_a_server_leaves_nothing_behind(deaf):
    with Proxy(deaf, connect=0.3) as proxy:
        before = proxy.descriptors()
        client = proxy.connect()
        until(lambda: proxy.descriptors() > before)
        reset(client)
        until(lambda: proxy.descriptors() == before)


@contextlib.contextmanager
def standing_still(proxy):
    """What clients do meanwhile they have done before they are let in."""
    os.kill(proxy.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(proxy.pid, signal.SIGCONT)


def test_a_client_that_has_gone_already_is_not_connected(server):
    with Proxy(server) as proxy:
        with standing_still(proxy):
            reset(proxy.connect())
        with proxy.pair(server) as (client, accepted):
            client.sendall(b"next")
            assert accepted.recv(4) == b"next"
    assert (proxy.count("sessions"), proxy.count("current")) == (1, 0)


# -- servers that are not there


def test_a_client_of_a_server_that_refuses_gets_another_one(server, closed_port):
    with Proxy(closed_port, server) as proxy:
        for _each in range(6):
            with proxy.pair(server) as (client, accepted):
                client.sendall(b"hello")
                assert accepted.recv(5) == b"hello"
        assert proxy.hear_of("failed") == "service/0"
        assert proxy.heard[-1]["why"] == "Connection refused"
    assert proxy.count("sessions", 1) == 6
    assert proxy.count("connect_errors", 0) == proxy.count("retries", 0) == 1, "it is not avoided"
    assert proxy.count("refused") == 0


def test_a_client_of_a_server_that_does_not_answer_gets_another_one(server, deaf):
    with Proxy(deaf, server, connect=0.3) as proxy, proxy.connect() as client:
        with server.accept()[0] as accepted:
            accepted.sendall(b"welcome")
            assert client.recv(7) == b"welcome"
        assert proxy.hear_of("failed") == "service/0"
        assert proxy.heard[-1]["why"] == "Connection timed out"


def test_what_a_client_said_meanwhile_is_not_lost(server, deaf):
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
    with Proxy(place) as proxy, proxy.connect() as client:
        assert proxy.hear_of("failed") == "service/0"
        with socket.create_server(place) as late:
            late.settimeout(LIMIT)
            with late.accept()[0] as accepted:
                accepted.sendall(b"welcome")
                assert client.recv(7) == b"welcome"


def test_a_client_for_whom_all_is_tried_in_vain_is_reset(closed_port):
    with Proxy(closed_port) as proxy, proxy.connect() as client:
        began = time.monotonic()
        assert is_reset(client)
        assert time.monotonic() - began > 2, "no time was given to the server"
    assert (proxy.count("refused"), proxy.count("sessions")) == (1, 0)
    assert (proxy.count("connect_errors"), proxy.count("retries"), proxy.count("current")) == (4, 3, 0)


def test_a_server_is_used_again_after_its_back_off(server, other):
    place = other.getsockname()
    with Proxy(place, server) as proxy:
        other.close()
        with proxy.pair(server):
            proxy.hear_of("failed")
        with socket.create_server(place) as again:
            again.settimeout(0.05)
            until(lambda: _reaches(proxy, again, server))


def _reaches(proxy, wanted, other) -> bool:
    """Whether a new client gets to a server."""
    with proxy.connect():
        other.settimeout(0.05)
        for server in (wanted, other):
            with contextlib.suppress(socket.timeout):
                server.accept()[0].close()
                return server is wanted
    return False


def test_without_a_server_that_is_up_a_client_is_refused_at_once(server):
    with Proxy(server) as proxy:
        proxy.set_server(0, "down")
        proxy.wait_for_report()
        began = time.monotonic()
        with pytest.raises(ConnectionResetError), proxy.connect() as client:
            client.recv(1)
        assert time.monotonic() - began < 0.5
    assert proxy.count("refused") == 1


# -- time


def test_a_server_that_takes_the_connection_and_never_answers_is_given_up(server):
    with Proxy(server, server=0.4) as proxy, proxy.pair(server) as (client, accepted):
        client.sendall(b"are you there?")
        began = time.monotonic()
        assert is_reset(client)
        assert 0.3 < time.monotonic() - began < 2
        assert is_reset(accepted)


def test_a_client_that_says_nothing_is_given_up(server):
    with Proxy(server, client=0.4) as proxy, proxy.pair(server) as (client, accepted):
        assert is_reset(accepted)
        assert is_reset(client)


def test_two_that_have_spoken_may_be_silent_for_longer(server):
    with Proxy(server, client=0.3, server=0.3, tunnel=1.2) as proxy, proxy.pair(server) as (client, accepted):
        client.sendall(b"question")
        accepted.sendall(b"answer")
        assert client.recv(10) == b"answer"
        began = time.monotonic()
        assert is_reset(client)
        assert 1 < time.monotonic() - began < 3


def test_who_sends_is_not_given_up_however_slowly_it_does(server):
    with Proxy(server, client=0.4, server=0.4) as proxy, proxy.pair(server) as (client, accepted):
        for _each in range(8):
            client.sendall(b".")
            assert accepted.recv(1) == b"."
            time.sleep(0.15)  # slowly, but sooner than the time-out


@pytest.mark.parametrize("ending", ["client", "server"])
def test_after_one_side_has_ended_the_other_one_has_not_for_ever(server, ending):
    with Proxy(server, fin=0.4) as proxy, proxy.pair(server) as pair:
        one, other = pair if ending == "client" else reversed(pair)
        one.shutdown(socket.SHUT_WR)
        assert other.recv(1) == b""
        assert is_reset(one)


def half_closed_and_full(client, accepted) -> None:
    """The client has finished, and is sent more than it and the kernel have room for."""
    client.shutdown(socket.SHUT_WR)
    assert accepted.recv(1) == b""
    fill(accepted)


def test_who_reads_slowly_what_the_other_side_has_left_is_not_given_up(server):
    with Proxy(server, fin=0.6) as proxy, proxy.connect(SO_RCVBUF=4096) as client, server.accept()[0] as accepted:
        half_closed_and_full(client, accepted)
        accepted.close()
        late = time.monotonic() + 2.5
        while time.monotonic() < late:
            assert client.recv(4096)
            time.sleep(0.05)  # it reads slowly
        while client.recv(1 << 20):
            pass


@pytest.mark.parametrize("bulky", [False, True], ids=["kept", "in a pipe"])
def test_who_reads_nothing_of_it_is_given_up(server, bulky, monkeypatch):
    if not bulky:
        monkeypatch.setattr(splice, "_works", lambda: False)
    with Proxy(server, fin=0.6) as proxy, proxy.connect(SO_RCVBUF=4096) as client, server.accept()[0] as accepted:
        half_closed_and_full(client, accepted)
        assert is_reset(accepted)


# -- what the master says


def test_sessions_of_a_server_that_is_shut_down_are_cut_off_and_no_others(server, other):
    with Proxy(server, other) as proxy, proxy.pair(server) as cut, proxy.pair(other) as (client, accepted):
        proxy.set_server(0, "down", shutdown=True)
        assert is_reset(cut[0])
        assert is_reset(cut[1])
        client.sendall(b"still here")
        assert accepted.recv(10) == b"still here"


def test_a_client_that_waits_for_another_try_is_not_cut_off_with_them(server):
    place = server.getsockname()
    server.close()
    with Proxy(place) as proxy, proxy.connect() as client:
        proxy.hear_of("failed")
        proxy.set_server(0, "up", shutdown=True)
        proxy.wait_for_report()
        with socket.create_server(place) as late:
            late.settimeout(LIMIT)
            with late.accept()[0] as accepted:
                accepted.sendall(b"welcome")
                assert client.recv(7) == b"welcome"


@pytest.mark.parametrize("state", ["down", "drain", "maint"])
def test_a_server_that_is_not_up_keeps_its_sessions_and_gets_no_new_ones(server, other, state):
    with Proxy(server, other) as proxy, proxy.pair(server) as (client, accepted):
        proxy.set_server(0, state)
        proxy.wait_for_report()
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
        with standing_still(proxy):
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
