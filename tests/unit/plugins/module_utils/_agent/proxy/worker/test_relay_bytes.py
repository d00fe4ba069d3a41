# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes in comes out: every byte, in order, both ways at once, and the end of each way when it ends."""

from __future__ import annotations

import random
import socket
import threading
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import splice
from hypothesis import given, settings
from hypothesis import strategies as st
from support.proxy.proxies import LIMIT, Proxy, listening
from support.waiting import pause, until

NOISE = random.Random(6).getrandbits(8 << 20).to_bytes(1 << 20, "big")
MEGABYTE = 1 << 20
CORKED_S = 0.2  # for so long TCP holds back what is little and not said to be all


# How bytes pass: through a pipe once there are many, or all of them through the worker, where splice is not to be had;
# with the buffers that the kernel gives, or with such small ones that every way is soon full.
SPLICED, COPIED = "spliced", "copied"
ROOMY, NARROW = {}, {"SO_RCVBUF": 4096}


@pytest.fixture(scope="module", params=[ROOMY, NARROW], ids=["roomy", "narrow"])
def room(request):
    """Options of the sockets at both ends."""
    return request.param


@pytest.fixture(scope="module")
def server(room):
    with listening(backlog=2048) as server:
        for option, value in room.items():
            server.setsockopt(socket.SOL_SOCKET, getattr(socket, option), value)  # accepted connections inherit it
        yield server


@pytest.fixture(scope="module", params=[SPLICED, COPIED])
def proxy(server, request):
    with pytest.MonkeyPatch.context() as patched:
        if request.param == COPIED:
            patched.setattr(splice, "_works", lambda: False)
        with Proxy(server) as proxy:
            yield proxy


# A side's part: what it sends, in pieces with pauses between them, how it reads, and how long after the other's end
# it goes on.
PIECE = st.tuples(
    st.one_of(st.integers(1, 300), st.integers(1, 40_000), st.integers(1, 600_000)), st.sampled_from([0, 0, 0, 0.002])
)
PART = st.tuples(st.lists(PIECE, max_size=8), st.sampled_from([1, 100, 5000, MEGABYTE]), st.sampled_from([0, 0.02]))


class Side:
    """Plays its part on a socket, reading and writing at once."""

    def __init__(self, connection: socket.socket, part, start: int) -> None:
        self._connection = connection
        self._pieces, self._size, self._slowness = part
        self._start = start
        self.sent, self.received = bytearray(), bytearray()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(LIMIT * 3)
            assert not thread.is_alive(), "a way has no end"

    def _send(self) -> None:
        at = self._start
        for size, seconds in self._pieces:
            data = (NOISE + NOISE)[at % MEGABYTE :][:size]
            self.sent += data
            self._connection.sendall(data)
            at += size
            pause(seconds)
        self._connection.shutdown(socket.SHUT_WR)

    def _receive(self) -> None:
        # One byte at a time is for what does not take all day.
        size = self._size
        pause(self._slowness)
        while True:
            data = self._connection.recv(size if len(self.received) < 2000 else max(size, 5000))
            if not data:
                return
            self.received += data


@settings(max_examples=30)
@given(one=PART, other=PART)
def test_both_ways_carry_every_byte_and_their_own_end(proxy, server, room, one, other):
    with proxy.pair(server, **room) as (client, accepted):
        sides = [Side(client, one, 0), Side(accepted, other, 500_000)]
        for side in sides:
            side.join()
    assert sides[0].sent == sides[1].received
    assert sides[1].sent == sides[0].received


@pytest.mark.parametrize("receiver_first", [True, False])
def test_a_way_that_has_ended_leaves_the_other_one_open(proxy, server, receiver_first):
    with proxy.pair(server) as pair:
        first, second = pair if receiver_first else reversed(pair)
        first.sendall(b"question")
        first.shutdown(socket.SHUT_WR)
        assert _all_of(second) == b"question"
        for _part in range(3):
            second.sendall(b"answer")
            assert first.recv(6) == b"answer"
        second.sendall(NOISE)
        second.shutdown(socket.SHUT_WR)
        assert _all_of(first) == NOISE


def test_little_is_not_held_back_until_there_is_more(proxy, server):
    def seconds_of_an_exchange() -> float:
        with proxy.pair(server) as pair:
            began = time.monotonic()
            for one, other in (pair, pair[::-1], pair):
                one.sendall(b"little")
                assert other.recv(10) == b"little"
            return time.monotonic() - began

    until(lambda: seconds_of_an_exchange() < CORKED_S, "each of them is held back")


@pytest.mark.parametrize("before", [b"before", NOISE], ids=["little", "bulk"])
def test_urgent_data_is_no_place_to_stop_at(proxy, server, before):
    with proxy.pair(server) as (client, accepted):
        reading = Reading(accepted)
        client.sendall(before)
        client.send(b"!", socket.MSG_OOB)
        client.sendall(b"after")
        client.shutdown(socket.SHUT_WR)
        # The urgent byte itself is beside the stream, and not relayed; HAProxy does not, either.
        assert reading.all() == before + b"after"


def test_a_thousand_short_transfers_at_once(proxy, server):
    """Each client gets its own answer, however many there are."""
    stop = _echoing(server, 1000)
    clients = [proxy.connect() for _each in range(1000)]
    for number, client in enumerate(clients):
        client.sendall(b"%04d" % number + NOISE[number : number + number])
        client.shutdown(socket.SHUT_WR)
    for number, client in enumerate(clients):
        assert _all_of(client) == b"%04d" % number + NOISE[number : number + number]
        client.close()
    stop()


def test_a_slow_reader_makes_a_fast_writer_wait_and_costs_no_memory(proxy, server, room):
    with proxy.pair(server, **room) as (client, accepted):
        before = proxy.resident()
        accepted.setblocking(False)
        sent = _stuff(accepted)
        assert sent < 64 * MEGABYTE  # no more than the kernel's buffers may hold
        assert proxy.resident() - before < 4 * MEGABYTE
        proxy.wait_until_idle()
        accepted.shutdown(socket.SHUT_WR)
        received = 0
        while True:
            data = client.recv(MEGABYTE)
            if not data:
                break
            assert data == _noise_at(received, len(data))
            received += len(data)
        assert received == sent


def test_many_slow_readers_cost_no_more_than_a_read_each(server, proxy):
    pairs = []
    for _each in range(50):
        client = proxy.connect(SO_RCVBUF=4096)
        accepted = server.accept()[0]
        pairs += [client, accepted]
    before = proxy.resident()
    for accepted in pairs[1::2]:
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        accepted.setblocking(False)
        _stuff(accepted, patience=0.01)
    assert proxy.resident() - before < 50 * 100_000
    for each in pairs:
        each.close()


class Reading:
    """Reads all that comes, beside whatever else is done."""

    def __init__(self, connection: socket.socket) -> None:
        self._received = b""
        self._thread = threading.Thread(target=self._read, args=(connection,), daemon=True)
        self._thread.start()

    def _read(self, connection) -> None:
        self._received = _all_of(connection)

    def all(self) -> bytes:
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "the way has no end"
        return self._received


def _all_of(connection) -> bytes:
    received = bytearray()
    while True:
        data = connection.recv(MEGABYTE)
        if not data:
            return bytes(received)
        received += data


def _noise_at(position: int, size: int) -> bytes:
    return (NOISE * (size // MEGABYTE + 2))[position % MEGABYTE :][:size]


def _stuff(connection, patience: float = 0.5) -> int:
    """Send noise until none has been taken for some seconds; return how much."""
    sent = 0
    last = time.monotonic()
    while time.monotonic() - last < patience:
        try:
            sent += connection.send(_noise_at(sent, 65536))
            last = time.monotonic()
        except BlockingIOError:
            pause(0.002)
    return sent


def _echoing(server, times: int):
    """Answer so many connections with what they say; return what waits for the end of that."""

    def echo(connection) -> None:
        with connection:
            connection.sendall(_all_of(connection))

    def serve() -> None:
        for _each in range(times):
            echo(server.accept()[0])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return lambda: until(lambda: not thread.is_alive())
