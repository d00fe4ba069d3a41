# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may be given something, and what is counted."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.servers import Pool, Table

A, B = settings.Server("a", "192.0.2.1", 80), settings.Server("b", "192.0.2.2", 80)
SPARE, SECOND_SPARE = (settings.Server(name, "192.0.2.3", 80, backup=True) for name in ("spare", "second"))


def service(*servers, **options):
    return settings.Service("web", ("*",), 80, servers, **options)


def pool(*servers, **options):
    return Pool(service(*servers, **options), int)


def table_of(*servers):
    return Table((service(*servers),), int)


def chosen(a_pool, times: int = 10):
    found = (a_pool.choose("192.0.2.9") for _each in range(times))
    return {server.name if server else None for server in found}


@pytest.mark.parametrize("seconds, idle, interval", [(1, 1, 1), (2.5, 1, 1), (10, 5, 1), (60, 30, 6)])
def test_the_kernel_takes_what_ends_connections_to_a_server_that_acknowledges_nothing(seconds, idle, interval):
    health = settings.Health(tcp_user_timeout=round(seconds * settings.MILLION))
    (server,) = pool(A, health=health).servers
    with socket.socket() as connection:
        for option in server.options:
            connection.setsockopt(*option)
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_USER_TIMEOUT")
        found = [connection.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert found == [idle, interval, 1000 * seconds]


def test_without_a_time_a_connection_is_as_the_kernel_makes_it():
    assert pool(A).servers[0].options == ()


def test_all_that_are_up_are_chosen():
    assert chosen(pool(A, B)) == {"a", "b"}


def test_only_a_server_that_is_up_and_has_weight_gets_anything():
    for state, weight in (("down", 1), ("drain", 1), ("maint", 1), ("up", 0)):
        table = table_of(A, B)
        table.change("web/a", state, weight)
        assert chosen(table.pools["web"]) == {"b"}, (state, weight)


def test_late_servers_are_chosen_while_none_is_up_and_a_late_backup_while_no_other_is_late():
    table = table_of(A, B, SPARE)
    found = table.pools["web"]
    for key in ("web/a", "web/spare"):
        table.change(key, "late", 1)
    assert chosen(found) == {"b"}
    table.change("web/b", "late", 1)
    assert chosen(found) == {"a", "b"}
    table.change("web/spare", "up", 1)
    assert chosen(found) == {"spare"}
    table.change("web/spare", "late", 1)
    for key in ("web/a", "web/b"):
        table.change(key, "down", 1)
    assert chosen(found) == {"spare"}
    table.change("web/spare", "late", 0)
    assert chosen(found) == {None}


def test_when_no_server_is_up_none_is_chosen():
    table = table_of(A)
    table.change("web/a", "down", 1)
    assert chosen(table.pools["web"]) == {None}
    table.change("web/a", "up", 1)
    assert chosen(table.pools["web"]) == {"a"}


def test_the_first_backup_that_is_up_serves_while_no_other_does():
    table = table_of(A, SPARE, SECOND_SPARE)
    web = table.pools["web"]
    assert chosen(web) == {"a"}
    table.change("web/a", "down", 1)
    assert chosen(web) == {"spare"}
    table.change("web/spare", "down", 1)
    assert chosen(web) == {"second"}
    table.change("web/a", "up", 1)
    assert chosen(web) == {"a"}


def test_a_server_that_is_backed_off_is_not_chosen_for_a_while():
    web = pool(A, B)
    assert web.back_off(web.servers[0], 10.0)
    assert chosen(web) == {"b"}
    web.restore(9.9)
    assert chosen(web) == {"b"}
    web.restore(10.0)
    assert chosen(web) == {"a", "b"}


def test_a_back_off_is_new_once():
    web = pool(A, B)
    assert [web.back_off(web.servers[0], until) for until in (10.0, 11.0)] == [True, False]
    web.restore(10.5)
    assert chosen(web) == {"b"}


def test_servers_that_are_backed_off_are_chosen_if_all_are():
    web = pool(A, B)
    assert web.has_another()
    for server in web.servers:
        web.back_off(server, 10.0)
    assert chosen(web) == {"a", "b"}
    assert not web.has_another()


def test_a_backup_is_not_used_because_others_are_backed_off():
    web = pool(A, SPARE)
    web.back_off(web.servers[0], 10.0)
    assert chosen(web) == {"a"}


def test_an_unknown_server_is_none():
    table = table_of(A)
    assert table.change("web/x", "down", 1) is None
    assert chosen(table.pools["web"]) == {"a"}


def test_what_a_service_counts_is_the_sum_of_its_servers():
    web = pool(A, B)
    for server, sessions in zip(web.servers, (3, 4)):
        server.sessions, server.bytes_in = sessions, sessions * 10
    web.refused = 2
    counts = web.counts()
    assert (counts["sessions"], counts["bytes_in"], counts["refused"], counts["resets"]) == (7, 70, 2, 0)
    keys = [key for key, _counts in table_of(A, B).counts()]
    assert keys == ["web", "web/a", "web/b"]


class Failing:
    """A session whose connection fails at once."""

    def __init__(self, a_pool):
        self.address, self._pool = "192.0.2.9", a_pool

    def connect_to(self, server):
        self._pool.occupy(server)
        self._pool.vacate(server)


@pytest.mark.parametrize("balance", ["roundrobin", "source"])
def test_many_that_fail_at_once_take_no_more_stack_than_one(balance):
    """Each frees its slot for the next one."""
    web = pool(A._replace(maxconn=1), balance=balance)
    (server,) = web.servers
    web.occupy(server)
    queue = web.queue_for(web.choose("192.0.2.9"))
    for _each in range(10_000):
        queue.add(Failing(web))
    web.vacate(server)
    assert (len(queue), queue.longest, server.current) == (0, 10_000, 0)


class Waiting:
    """A session in a queue, and the server that it gets."""

    address, server, chose = "192.0.2.9", None, 0

    def connect_to(self, server):
        self.server = server

    def choose_again(self):
        self.chose += 1


def test_who_waits_for_a_late_server_waits_on_while_none_is_up_and_else_goes_to_another_one():
    table = table_of(A._replace(maxconn=1), B)
    web, session = table.pools["web"], Waiting()
    web.occupy(web.servers[0])
    web.servers[0].queue.add(session)
    table.change("web/b", "late", 1)
    table.change("web/a", "late", 1)
    assert session.chose == 0
    table.change("web/b", "up", 1)
    assert session.chose == 1


def own_server(web):
    """The server to which a pool with `source` binds the client, full and with a session that waits for it."""
    own, session = web.choose(Waiting.address), Waiting()
    web.occupy(own)
    web.queue_for(own).add(session)
    return own, session


def test_who_waits_for_a_server_that_is_backed_off_gets_it_when_that_is_over():
    web = pool(A._replace(maxconn=1), B._replace(maxconn=1), balance="source")
    own, session = own_server(web)
    web.back_off(own, 10.0)
    web.vacate(own)
    assert session.server is None
    web.restore(10.0)
    assert session.server is own


def test_a_new_client_does_not_overtake_those_that_wait_for_its_server():
    """As while one of them fails, and its slot is free for a moment."""
    web = pool(A._replace(maxconn=1), balance="source")
    own, _session = own_server(web)
    own.current = 0
    assert web.queue_for(web.choose(Waiting.address)) is own.queue
