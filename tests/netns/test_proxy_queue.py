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
import time

import pytest
from support.proxy.connections import reset
from support.proxy.proxies import LIMIT, LOCAL
from support.proxy.side_by_side import Balancers, Capture, Play, everything, own_network, together
from support.waiting import MOMENT_S, until

CONNECT, QUEUE, RETRIES = 0.5, 3, 2  # seconds, seconds, times


def connect(service):
    client = socket.create_connection((LOCAL, service.port), LIMIT)
    client.sendall(b"?")
    return client


def accept(server):
    accepted = server.accept()[0]
    accepted.settimeout(LIMIT)
    return accepted


def has_none(*servers):
    """Return whether no connection has arrived."""
    return not select.select(servers, [], [], MOMENT_S)[0]


def wait_for_waiting(service, number):
    until(lambda: service.waiting() == number, lambda: f"{service.waiting()} wait, and not {number}")


def asked(server, clients):
    """Return which client's connection arrives at a server, by its number, and end that session."""
    with accept(server) as accepted:
        accepted.sendall(b"!")
        ready = select.select([client for client in clients if client.fileno() >= 0], [], [], LIMIT)[0]
        with ready[0]:
            return clients.index(ready[0])


def one_more_than_the_limit_waits(service, server):
    with connect(service), connect(service), connect(service), accept(server), accept(server):
        wait_for_waiting(service, 1)
        return has_none(server)


def a_slot_goes_to_the_client_that_has_waited_longest(service, server):
    with connect(service), accept(server):
        clients = []
        for number in range(3):
            clients.append(connect(service))
            wait_for_waiting(service, number + 1)
    return [asked(server, clients) for _each in clients]


def a_new_client_queues_up_behind_the_others(service, server):
    with connect(service) as first, accept(server) as accepted:
        early = connect(service)
        wait_for_waiting(service, 1)
        for end in (accepted, first):
            end.close()
        late = connect(service)
    with late:
        return asked(server, [early, late])


def what_a_waiting_client_sends_and_finishes_arrives(service, server):
    with connect(service) as first, accept(server) as accepted, connect(service) as client:
        client.sendall(b"more")
        client.shutdown(socket.SHUT_WR)
        wait_for_waiting(service, 1)
        accepted.close()
        first.close()
        with accept(server) as second:
            received = everything(second)
            second.sendall(b"!")
        return received, everything(client)


def a_client_that_was_reset_does_not_wait_any_more(service, server):
    with connect(service) as first, accept(server) as accepted:
        gone = connect(service)
        wait_for_waiting(service, 1)
        with connect(service) as stays:
            wait_for_waiting(service, 2)
            reset(gone)
            wait_for_waiting(service, 1)
            accepted.close()
            first.close()
            return asked(server, [stays])


def both_servers_are_filled_before_one_waits(service, one, other):
    with connect(service), connect(service), connect(service) as last:
        with accept(one), accept(other) as second:
            wait_for_waiting(service, 1)
            none = has_none(one, other)
            second.close()
            accept(other).close()
        everything(last)
        return none


def with_source_a_client_waits_for_its_own_server(service, one, other):
    with connect(service), connect(service):
        wait_for_waiting(service, 1)
        (own,) = select.select([one, other], [], [], LIMIT)[0]
        with accept(own):
            return has_none(one, other)


def a_server_that_is_back_serves_the_client_that_is_trying_again(service, server):
    place = server.getsockname()
    server.close()
    with connect(service) as client:
        until(lambda: len(service.capture.attempts(place[1])) >= 2)
        with listening_again(place) as late, accept(late) as accepted:
            accepted.sendall(b"!")
            accepted.close()
            return everything(client)


def a_session_keeps_its_slot_while_it_tries_again(service, server):
    place = server.getsockname()
    with connect(service) as holder, accept(server) as accepted:
        clients = []
        for number in range(2):
            clients.append(connect(service))
            wait_for_waiting(service, number + 1)
        server.close()
        for end in (accepted, holder):
            end.close()
    until(lambda: len(service.capture.attempts(place[1])) >= 3)  # the holder's, and two
    with listening_again(place) as late:
        return [asked(late, clients) for _each in clients]


def listening_again(place):
    server = socket.create_server(place)
    server.settimeout(LIMIT)
    return server


def another_server_is_tried_next(service, one, other):
    """For each client the one that refuses is tried once, at most."""
    dead = one.getsockname()[1]
    one.close()
    found = []
    for _each in range(2):
        before = len(service.capture.attempts(dead))
        with connect(service), accept(other):
            found.append(len(service.capture.attempts(dead)) - before)
    return sum(found) > 0 and max(found) == 1


def refused_as_often_as_configured(service, server):
    """The server refuses at once, so each retry waits for CONNECT, which is less than a second."""
    port = server.getsockname()[1]
    server.close()
    return seconds_until_cut(service) > RETRIES * CONNECT - 0.1, len(service.capture.attempts(port))


def timed_out_as_often_as_configured(service, server):
    """The same for a server that does not answer: each attempt takes CONNECT."""
    port = server.getsockname()[1]
    server.listen(0)
    with contextlib.ExitStack() as stack:
        for _each in range(4):  # fill its backlog
            other = stack.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(server.getsockname())
        before = len(service.capture.attempts(port))
        lasted = seconds_until_cut(service) > (RETRIES + 1) * CONNECT - 0.1
        return lasted, len(service.capture.attempts(port)) - before


def seconds_until_cut(service):
    began = time.monotonic()
    with connect(service) as client:
        assert everything(client) == b""
    return time.monotonic() - began


def another_session_gets_the_slot_before_the_last_retry(service, server):
    """The first client tries twice, then the second one in its slot, and only then the first one its last time."""
    port = server.getsockname()[1]
    with connect(service) as holder, accept(server) as accepted:
        before = len(service.capture.attempts(port))
        clients = []
        for number in range(2):
            clients.append(connect(service))
            wait_for_waiting(service, number + 1)
        server.close()
        for end in (accepted, holder):
            end.close()
    with clients[0] as first, clients[1] as second:
        ports = service.port, first.getsockname()[1]
        assert everything(first) == everything(second) == b""
    until_its_end = service.capture.attempts(port, before_end_of=ports)
    return len(until_its_end) - before > 2 * RETRIES, len(service.capture.attempts(port)) - before


def a_client_waits_no_longer_than_the_timeout(service, server):
    """It is cut while there is still no slot for it."""
    with connect(service), accept(server):
        return seconds_until_cut(service) > QUEUE - 0.1


FULL = {"maxconn": 1}
PATIENT = (LIMIT, LIMIT, 100)  # the timeouts of a connection and of the queue, and the retries, where none is played
FAILING = (CONNECT, LIMIT, RETRIES)
WAITING = (LIMIT, QUEUE, RETRIES)
PLAYS = {
    PATIENT: (
        (Play(one_more_than_the_limit_waits, options={"maxconn": 2}), True),
        (Play(a_slot_goes_to_the_client_that_has_waited_longest, options=FULL), [0, 1, 2]),
        (Play(a_new_client_queues_up_behind_the_others, options=FULL), 0),
        (Play(what_a_waiting_client_sends_and_finishes_arrives, options=FULL), (b"?more", b"!")),
        (Play(a_client_that_was_reset_does_not_wait_any_more, options=FULL), 0),
        (Play(both_servers_are_filled_before_one_waits, 2, FULL), True),
        (Play(with_source_a_client_waits_for_its_own_server, 2, FULL, {"balance": "source"}), True),
        (Play(a_server_that_is_back_serves_the_client_that_is_trying_again), b"!"),
        (Play(a_session_keeps_its_slot_while_it_tries_again, options=FULL), [0, 1]),
        (Play(another_server_is_tried_next, 2), True),
    ),
    FAILING: (
        (Play(refused_as_often_as_configured), (True, RETRIES + 1)),
        (Play(timed_out_as_often_as_configured), (True, RETRIES + 1)),
        (Play(another_session_gets_the_slot_before_the_last_retry, options=FULL), (True, 2 * (RETRIES + 1))),
    ),
    WAITING: ((Play(a_client_waits_no_longer_than_the_timeout, options=FULL), True),),
}
EXPECTED = {play.perform.__name__: expected for plays in PLAYS.values() for play, expected in plays}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what the plays find, by the balancer."""
    results, folders = {}, {settings: tmp_path_factory.mktemp("queue") for settings in PLAYS}

    def run(settings, capture):
        connect_timeout, queue, retries = settings
        timeouts = {"connect": connect_timeout, "client": LIMIT, "server": LIMIT, "queue": queue}
        plays = {play.perform.__name__: play for play, _expected in PLAYS[settings]}
        balancers = Balancers(timeouts, retries, capture)
        for balancer, of_plays in balancers.perform(folders[settings], plays).items():
            results.setdefault(balancer, {}).update(of_plays)

    with own_network(), Capture() as capture:
        together([lambda settings=settings: run(settings, capture) for settings in PLAYS])
    return results


@pytest.mark.parametrize("play", EXPECTED)
def test_clients_wait_as_at_haproxy(found, play):
    expected = EXPECTED[play]
    assert {balancer: results.get(play) for balancer, results in found.items()} == {
        "haproxy": expected,
        "agent": expected,
    }
