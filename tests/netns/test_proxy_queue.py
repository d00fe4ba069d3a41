# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A server's maxconn, the queue and the retries: the same plays at the same time through HAProxy and the agent's proxy.

configuration.txt of HAProxy, "maxconn" of a server: "If the number of incoming concurrent connections goes higher than
this value, they will be queued, waiting for a slot to be released." "timeout queue": "If unspecified, the same value as
the backend's connection timeout ("timeout connect") is used". "retries": "the number of times a connection attempt
should be retried on a server when a connection either is refused or times out".
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time

import pytest
from support.proxy.proxies import LIMIT, LOCAL
from support.proxy.side_by_side import Balancers, Play, everything

CONNECT, QUEUE, RETRIES = 0.5, 3, 2  # seconds, seconds, times
SOON = 1.5  # seconds: within half of QUEUE
LINGER_0 = struct.pack("ii", 1, 0)


def connect(port):
    client = socket.create_connection((LOCAL, port), 2 * LIMIT)
    client.sendall(b"?")
    return client


def accept(server, seconds=SOON):
    """Return a connection that arrives within some seconds, None if there is none."""
    server.settimeout(seconds)
    try:
        accepted = server.accept()[0]
    except socket.timeout:
        return None
    accepted.settimeout(2 * LIMIT)
    return accepted


def asked(server, clients, seconds=SOON):
    """Return which client's connection arrives at a server, by its number, and end that session."""
    with accept(server, seconds) as accepted:
        accepted.sendall(b"!")
        ready = select.select([client for client in clients if client.fileno() >= 0], [], [], LIMIT)[0]
        with ready[0]:
            return clients.index(ready[0])


def one_more_than_the_limit_waits(port, server):
    with connect(port), connect(port), connect(port), accept(server), accept(server):
        return accept(server) is None


def a_slot_goes_to_the_client_that_has_waited_longest(port, server):
    with connect(port), accept(server):
        clients = []
        for _each in range(3):
            clients.append(connect(port))
            time.sleep(0.1)
    return [asked(server, clients) for _each in clients]


def a_new_client_queues_up_behind_the_others(port, server):
    with connect(port) as first, accept(server) as accepted:
        early = connect(port)
        time.sleep(0.2)
        for end in (accepted, first):
            end.close()
        late = connect(port)
    with late:
        return asked(server, [early, late])


def a_client_waits_no_longer_than_the_timeout(port, server):
    with connect(port), accept(server):
        began = time.monotonic()
        with connect(port) as client:
            assert everything(client) == b""
        return QUEUE - 0.1 < time.monotonic() - began < QUEUE + 1.5


def what_a_waiting_client_sends_and_finishes_arrives(port, server):
    with connect(port) as first, accept(server) as accepted, connect(port) as client:
        client.sendall(b"more")
        client.shutdown(socket.SHUT_WR)
        time.sleep(0.3)
        accepted.close()
        first.close()
        with accept(server) as second:
            received = everything(second)
            second.sendall(b"!")
        return received, everything(client)


def a_client_that_was_reset_does_not_wait_any_more(port, server):
    with connect(port) as first, accept(server) as accepted:
        gone, stays = connect(port), connect(port)
        time.sleep(0.2)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        gone.close()
        time.sleep(0.2)
        accepted.close()
        first.close()
        with stays:
            return asked(server, [stays])


def both_servers_are_filled_before_one_waits(port, one, other):
    with connect(port), connect(port), connect(port) as last:
        taken = [accept(server) for server in (one, other)]
        assert all(taken)
        none = [accept(server, 0.3) for server in (one, other)]
        taken[1].close()
        found = accept(other)
        for each in (*taken, found):
            each.close()
        everything(last)
        return none, found is not None


def with_source_a_client_waits_for_its_own_server(port, one, other):
    with connect(port), connect(port):
        arrived = [accept(server, SOON / 2) for server in (one, other) for _each in range(2)]
        accepted = [each for each in arrived if each]
        for each in accepted:
            each.close()
        return len(accepted)


def refused_as_often_as_configured(port, server):
    """The server refuses at once, so each retry waits for CONNECT, which is less than a second."""
    server.close()
    return seconds_until_cut(port)


def timed_out_as_often_as_configured(port, server):
    """The same for a server that does not answer: each attempt takes CONNECT, and there is no pause."""
    server.listen(0)
    with contextlib.ExitStack() as stack:
        for _each in range(4):  # fill its backlog
            other = stack.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(server.getsockname())
        return seconds_until_cut(port)


def seconds_until_cut(port):
    """Return seconds, to a half."""
    began = time.monotonic()
    with connect(port) as client:
        assert everything(client) == b""
    return round(2 * (time.monotonic() - began)) / 2


def a_server_that_is_back_for_the_last_retry_serves(port, server):
    place = server.getsockname()
    server.close()
    with connect(port) as client:
        time.sleep((RETRIES - 0.5) * CONNECT)
        with socket.create_server(place) as late, accept(late) as accepted:
            accepted.sendall(b"!")
            accepted.close()
            return everything(client)


def a_session_keeps_its_slot_until_its_last_retry(port, server):
    """The first client tries twice, then the second one twice in the same slot, and each its last time when it can."""
    server.close()
    began = time.monotonic()
    with connect(port):
        time.sleep(CONNECT / 3)
        with connect(port) as second:
            assert everything(second) == b""
    return round(2 * (time.monotonic() - began)) / 2


def another_server_is_tried_at_once(port, one, other):
    one.close()
    found = []
    for _each in range(2):
        began = time.monotonic()
        with connect(port), accept(other):
            found.append(time.monotonic() - began < CONNECT / 2)
    return found


FULL = {"maxconn": 1}
PLAYS = (
    (Play(one_more_than_the_limit_waits, options={"maxconn": 2}), True),
    (Play(a_slot_goes_to_the_client_that_has_waited_longest, options=FULL), [0, 1, 2]),
    (Play(a_new_client_queues_up_behind_the_others, options=FULL), 0),
    (Play(a_client_waits_no_longer_than_the_timeout, options=FULL), True),
    (Play(what_a_waiting_client_sends_and_finishes_arrives, options=FULL), (b"?more", b"!")),
    (Play(a_client_that_was_reset_does_not_wait_any_more, options=FULL), 0),
    (Play(both_servers_are_filled_before_one_waits, 2, FULL), ([None, None], True)),
    (Play(with_source_a_client_waits_for_its_own_server, 2, FULL, {"balance": "source"}), 1),
    (Play(refused_as_often_as_configured), RETRIES * CONNECT),
    (Play(timed_out_as_often_as_configured), (RETRIES + 1) * CONNECT),
    (Play(a_session_keeps_its_slot_until_its_last_retry, options=FULL), 3 * CONNECT),
    (Play(a_server_that_is_back_for_the_last_retry_serves), b"!"),
    (Play(another_server_is_tried_at_once, 2), [True, True]),
)
EXPECTED = {play.perform.__name__: expected for play, expected in PLAYS}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what the plays find, by the balancer."""
    timeouts = {"connect": CONNECT, "client": 60, "server": 60, "queue": QUEUE}
    plays = {play.perform.__name__: play for play, _expected in PLAYS}
    return Balancers(timeouts, RETRIES).perform(tmp_path_factory.mktemp("queue"), plays)


@pytest.mark.parametrize("play", EXPECTED)
def test_clients_wait_as_at_haproxy(found, play):
    expected = EXPECTED[play]
    assert {balancer: results.get(play) for balancer, results in found.items()} == {
        "haproxy": expected,
        "agent": expected,
    }
