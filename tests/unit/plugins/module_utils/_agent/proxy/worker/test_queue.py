# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that wait for a slot of a server at its maxconn. tests/netns/test_proxy_queue.py compares with HAProxy."""

from __future__ import annotations

import contextlib
import select
import socket

import pytest
from support.proxy.connections import is_reset, reset
from support.proxy.proxies import LIMIT, Clock, Proxy
from support.waiting import MOMENT_S, until


def limited(*servers, slots=1, options=None, **more):
    """Return a proxy whose servers have so many slots each."""
    per_server = {"server_options": [{"maxconn": slots}] * len(servers)}
    return Proxy(*servers, options={**per_server, **(options or {})}, **{"queue": 6 * LIMIT, **more})


def accept(server, seconds=LIMIT):
    """Return a connection that arrives within some seconds, None if there is none."""
    server.settimeout(seconds)
    try:
        return server.accept()[0]
    except socket.timeout:
        return None


def has_none(*servers):
    """Return whether no connection has arrived."""
    return not select.select(servers, [], [], MOMENT_S)[0]


def test_a_full_server_gets_the_next_client_when_a_session_ends(server):
    with limited(server) as proxy, proxy.connect() as first, accept(server) as accepted, proxy.connect() as second:
        second.sendall(b"second")
        proxy.wait_for("qcur", 1)
        assert has_none(server)
        first.close()
        accepted.close()
        with accept(server) as late:
            assert late.recv(10) == b"second"
            proxy.wait_for("qcur", 0)
    assert (proxy.count("qmax"), proxy.count("sessions"), proxy.count("refused")) == (1, 2, 0)
    assert proxy.count("qcur", 0) == proxy.count("qmax", 0) == 0, "it waits for any server"


def test_clients_wait_in_their_order(server):
    with limited(server) as proxy, proxy.connect() as first, accept(server) as accepted:
        clients = []
        for number in range(5):
            clients.append(proxy.connect())
            clients[-1].sendall(b"%d" % number)
            proxy.wait_for("qcur", number + 1)
        first.close()
        accepted.close()
        found = []
        for client in clients:
            with client, accept(server) as late:
                found.append(late.recv(10))
        assert found == [b"0", b"1", b"2", b"3", b"4"]


def test_other_servers_are_filled_before_anyone_waits(server, other):
    with limited(server, other) as proxy, contextlib.ExitStack() as stack:
        for _each in range(3):
            stack.enter_context(proxy.connect())
        for each in (server, other):
            stack.enter_context(accept(each))
        proxy.wait_for("qcur", 1)
        assert has_none(server, other)


def test_a_backup_is_no_help_for_full_servers(server, other):
    options = {"server_options": [{"maxconn": 1}, {"backup": True}]}
    with Proxy(server, other, options=options, queue=LIMIT) as proxy, proxy.connect(), accept(server), proxy.connect():
        proxy.wait_for("qcur", 1)
        assert has_none(other)


def test_with_source_a_client_waits_for_its_own_server(server, other):
    with limited(server, other, options={"balance": "source"}) as proxy, proxy.connect(), proxy.connect():
        proxy.wait_for("current", 1)
        until(lambda: proxy.receive() and proxy.count("qcur", 0) + proxy.count("qcur", 1) == 1)
        assert proxy.count("qcur") == 0
        (own,) = select.select([server, other], [], [], LIMIT)[0]
        with accept(own):
            proxy.set_server(0 if own is server else 1, "down")  # the client that waits chooses again
            accept(other if own is server else server).close()


def test_a_client_waits_no_longer_than_the_timeout(server):
    with limited(server, clock=Clock(), queue=50) as proxy, proxy.connect(), accept(server), proxy.connect() as client:
        proxy.let_pass(1)
        proxy.let_pass(48)
        assert (proxy.count("qcur"), proxy.count("refused")) == (1, 0)
        proxy.let_pass(2)
        assert is_reset(client)
    assert (proxy.count("refused"), proxy.count("qcur"), proxy.count("qmax")) == (1, 0, 1)


def test_a_client_that_was_reset_leaves_the_queue(server):
    with limited(server) as proxy, proxy.connect(), accept(server):
        client = proxy.connect()
        proxy.wait_for("qcur", 1)
        reset(client)
        proxy.wait_for("qcur", 0)


def test_who_waits_while_the_server_goes_down_gets_it_when_it_is_back(server):
    with limited(server) as proxy, proxy.connect() as first, accept(server) as accepted, proxy.connect() as second:
        second.sendall(b"?")
        proxy.wait_for("qcur", 1)
        proxy.set_server(0, "down")
        accepted.close()
        first.close()
        proxy.wait_for("current", 1)
        assert has_none(server)
        with pytest.raises(ConnectionResetError), proxy.connect() as late:
            late.recv(1)  # a new client does not wait for a server that is down
        proxy.set_server(0, "up")
        with accept(server) as late:
            assert late.recv(1) == b"?"


def test_a_server_in_its_slow_start_has_a_part_of_its_slots(server):
    options = {"server_options": [{"maxconn": 4, "weight": 100}]}
    with Proxy(server, options=options, queue=LIMIT) as proxy, contextlib.ExitStack() as stack:
        proxy.set_server(0, "up", weight=50)
        for _each in range(5):
            stack.enter_context(proxy.connect())
        for _each in range(2):
            stack.enter_context(accept(server))
        proxy.wait_for("qcur", 3)
        proxy.set_server(0, "up", weight=100)
        for _each in range(2):
            stack.enter_context(accept(server))
        proxy.wait_for("qcur", 1)


def test_a_session_that_waits_for_a_retry_keeps_its_slot(server):
    place = server.getsockname()
    server.close()
    with limited(place) as proxy, proxy.connect() as first:
        first.sendall(b"first")
        proxy.wait_for_message("failed")
        with proxy.connect() as second:
            second.sendall(b"second")
            proxy.wait_for("qcur", 1)
            with socket.create_server(place) as late, accept(late) as accepted:
                assert accepted.recv(10) == b"first"


@pytest.mark.parametrize("retries", [0, 1])
def test_a_failed_connection_is_tried_again_as_often_as_configured(server, retries):
    place = server.getsockname()
    server.close()
    with Proxy(place, settings_options={"retries": retries}, connect=0.2) as proxy:
        with proxy.suspended():  # else the client may be reset while it connects
            client = proxy.connect()
        with client:
            assert is_reset(client)
    assert (proxy.count("connect_errors"), proxy.count("retries")) == (retries + 1, retries)
