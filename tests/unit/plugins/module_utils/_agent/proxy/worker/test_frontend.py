# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The acceptors of a worker: when they accept, and what is reported when they must pause."""

from __future__ import annotations

import contextlib
import errno
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import servers
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.event_loop import EventLoop
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.frontend import (
    ACCEPT_BATCH,
    Acceptor,
    Frontend,
    Limits,
    Timeouts,
    WorkerContext,
)
from support.proxy.proxies import LIMIT, LOCAL, listening


class Stage:
    """A worker's context with the acceptors of two services of one server, and a list of its messages."""

    def __init__(self, stack, maxconn=100, limits=(0, 0), allow=()) -> None:
        self.stack, self.said = stack, []
        self.server = stack.enter_context(listening(backlog=1024))
        self.loop = EventLoop()
        stack.callback(self._close)
        self.context = WorkerContext(self.loop, Limits(maxconn, 1), settings.Timeouts(), 3, self.said.append)
        self.frontends, self.acceptors, self.listeners = [], [], []
        for number, limit in enumerate(limits):
            self._add(f"service{number}", limit, tuple(allow))

    def _add(self, name, limit, allow) -> None:
        servers_given = (settings.Server("a", *self.server.getsockname()), settings.Server("b", LOCAL, 9))
        service = settings.Service(name, (LOCAL,), 1, servers_given, maxconn=limit, allow=allow)
        listener = listening(1024)
        listener.setblocking(False)
        self.frontends.append(Frontend(service, servers.Pool(service, int), self.context))
        self.acceptors.append(Acceptor(self.frontends[-1], listener))
        self.listeners.append(listener)
        self.context.add(self.acceptors[-1])

    def _close(self) -> None:
        self.context.stop_accepting()
        for handler in list(self.loop.handlers.values()):
            if handler.session:
                handler.session.reset()
        self.round()
        self.loop.close()

    def connect(self, number=0):
        client = self.stack.enter_context(socket.create_connection(self.listeners[number].getsockname(), LIMIT))
        client.setblocking(False)
        return client

    def round(self) -> None:
        """Let everything happen for which it is time now."""
        rounds = iter(range(2, -1, -1))

        def on_tick() -> float:
            if not next(rounds):
                self.loop.stop()
            return 0.0

        self.loop.run(on_tick)

    def current(self):
        return [frontend.current for frontend in self.frontends]

    def leave(self, number=0) -> None:
        """End a session of a service."""
        frontend = self.frontends[number]
        next(
            handler.session
            for handler in self.loop.handlers.values()
            if handler.session and handler.session.frontend is frontend
        ).reset()


@pytest.fixture
def stage():
    """Make a stage; all of it is gone afterwards."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: Stage(stack, **options)


# -- networks


@pytest.mark.parametrize(
    "allow, client, served",
    [
        ((), "198.51.100.1", True),
        (("192.0.2.0/24", "2001:db8::/32"), "192.0.2.255", True),
        (("192.0.2.0/24",), "192.0.3.1", False),
        (("192.0.2.0/24",), "2001:db8::1", False),
        (("192.0.2.0/24", "2001:db8::/32"), "2001:db8::1", True),
        (("192.0.2.7",), "192.0.2.7", True),
        (("192.0.2.7",), "192.0.2.8", False),
        (("fe80::/64",), "fe80::1%eth0", True),
    ],
)
def test_a_client_is_served_if_one_of_the_networks_has_its_address(stage, allow, client, served):
    assert stage(allow=allow).frontends[0].admits(client) == served


def test_a_client_from_elsewhere_is_disconnected_and_takes_no_room(stage):
    stage = stage(limits=(2,), allow=["192.0.2.0/24"])
    clients = [stage.connect() for _each in range(4)]
    stage.round()
    assert stage.current() == [0]
    assert [client.recv(1) for client in clients] == [b""] * 4


# -- room


@pytest.mark.parametrize(
    ("maxconn", "of_service", "shares"),
    [
        (100, 0, [100]),
        (100, 7, [7]),
        (100, 0, [25, 25, 25, 25]),
        (100, 10, [3, 3, 2, 2]),
        (3, 0, [1, 1, 1, 0]),
        (100, 1, [1, 0]),
    ],
)
def test_the_shares_of_the_workers_add_up_to_a_limit(maxconn, of_service, shares):
    workers = len(shares)
    assert [Limits(maxconn, workers, number).share(of_service) for number in range(workers)] == shares


def test_a_full_service_leaves_the_others_open(stage):
    stage = stage(limits=(2, 0))
    for _each in range(4):
        stage.connect(0)
        stage.connect(1)
    stage.round()
    assert stage.current() == [2, 4]
    stage.leave(0)
    stage.round()
    assert stage.current() == [2, 4], "a session that ends makes room for one"


def test_a_worker_at_its_limit_accepts_for_no_service(stage):
    stage = stage(maxconn=3)
    for _each in range(3):
        stage.connect(0)
    stage.round()
    stage.connect(1)
    stage.round()
    assert stage.current() == [3, 0]
    stage.leave(0)
    stage.round()
    assert stage.current() == [2, 1]


def test_many_who_come_at_once_take_turns_with_those_who_are_in(stage):
    stage = stage()
    for _each in range(ACCEPT_BATCH + 1):
        stage.connect()
    stage.acceptors[0].ready(0)
    assert stage.current() == [ACCEPT_BATCH, 0]
    stage.acceptors[0].ready(0)
    assert stage.current() == [ACCEPT_BATCH + 1, 0]


def test_the_last_client_may_fill_a_service_while_another_one_is_paused(stage):
    stage = stage(limits=(0, 1))
    for _each in range(2):
        stage.connect(0)
        stage.connect(1)
    stage.context.stop_accepting()
    assert stage.current() == [2, 1]


def test_after_stop_accepting_no_acceptor_is_opened_again(stage):
    stage = stage()
    place = stage.listeners[0].getsockname()
    stage.connect()
    stage.context.stop_accepting()
    assert stage.current() == [1, 0]  # the client that waited was accepted last
    stage.context.out_of_resources(errno.EMFILE)
    stage.context.try_again()
    stage.round()
    assert stage.current() == [1, 0]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place, LIMIT)


def test_at_stop_accepting_all_who_wait_are_accepted(stage):
    stage = stage()
    for _each in range(2 * ACCEPT_BATCH + 1):
        stage.connect()
    stage.context.stop_accepting()
    assert stage.current() == [2 * ACCEPT_BATCH + 1, 0]


def test_a_client_waiting_for_room_is_reset_at_stop_accepting(stage):
    stage = stage(limits=(1, 0))
    clients = [stage.connect() for _each in range(2)]
    stage.round()
    assert stage.current() == [1, 0]
    stage.context.stop_accepting()
    assert stage.current() == [1, 0]
    with pytest.raises(ConnectionResetError):
        clients[1].recv(1)


# -- what the system gives


def test_while_a_resource_is_missing_no_client_is_accepted(stage):
    stage = stage()
    stage.context.out_of_resources(errno.ENFILE)
    stage.connect(0)
    stage.connect(1)
    stage.round()
    assert stage.current() == [0, 0]
    stage.context.try_again()
    stage.round()
    assert stage.current() == [1, 1]


def test_that_something_is_lacking_is_said_once_until_it_is_there_again_for_a_while(stage):
    stage = stage()
    for _each in range(3):
        stage.context.out_of_resources(errno.ENFILE)
        stage.context.try_again()
    assert stage.said == [
        {"fault": ["descriptors", "No more connections can be taken: Too many open files in system."]}
    ]
    stage.context.try_again()
    stage.context.try_again()
    assert stage.said[1:] == [{"cured": ["descriptors", "Connections are taken again."]}]
    stage.context.out_of_resources(errno.ENFILE)
    assert len(stage.said) == 3


def test_unused_pipes_are_closed_when_descriptors_are_missing(stage):
    stage = stage()
    pipe = stage.loop.pipes.take()
    stage.loop.pipes.give(pipe)
    stage.context.out_of_resources(errno.EMFILE)
    another = stage.loop.pipes.take()
    stage.loop.pipes.give(another)
    assert another is not pipe


def test_a_client_that_went_before_it_was_let_in_is_no_reason_to_close(stage):
    stage = stage()

    def gone():
        raise ConnectionAbortedError

    stage.acceptors[0]._accept = gone
    stage.acceptors[0].ready(0)
    stage.acceptors[1].ready(0)  # no client is waiting
    stage.connect(1)
    stage.round()
    assert (stage.current(), stage.said) == ([0, 1], [])


# -- servers


def test_small_messages_to_a_server_are_not_held_back(stage):
    """Those to a client, neither: it inherits that from the listening socket, see ``listeners``."""
    stage = stage()
    stage.connect()
    stage.round()
    session = next(handler.session for handler in stage.loop.handlers.values() if handler.session)
    assert session.server.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_failed_server_is_reported_once_while_it_is_backed_off(stage):
    frontend = stage().frontends[0]
    server = frontend.pool.servers[0]
    frontend.failed(server, errno.ECONNREFUSED)
    frontend.failed(server, errno.ECONNREFUSED)
    assert frontend.context.send.__self__ == [{"failed": "service0/a"}]
    assert (server.connect_errors, server.backoff_until > 0) == (2, True)


def test_that_no_port_is_left_is_nothing_to_blame_a_server_for(stage):
    stage = stage()
    server = stage.frontends[0].pool.servers[0]
    stage.frontends[0].failed(server, errno.EADDRNOTAVAIL)
    assert stage.said == []
    assert server.backoff_until > 0, "another one may have ports left"


def test_a_tcp_session_is_a_tunnel_at_once_and_an_http_session_later():
    given = settings.Timeouts(client=2_000_000, server=3_000_000, tunnel=4_000_000, fin=250_000)
    assert (Timeouts.of(given, "tcp").exchange, Timeouts.of(given, "http").exchange) == (4, 2)
    assert Timeouts.of(given, "tcp")[4:] == Timeouts.of(given, "http")[4:] == (4, 0.25)


def test_without_a_timeout_of_its_own_a_queued_session_waits_as_long_as_a_connection():
    assert Timeouts.of(settings.Timeouts(connect=1_500_000), "tcp").queue == 1.5
    assert Timeouts.of(settings.Timeouts(connect=1_500_000, queue=9_000_000), "tcp").queue == 9


def test_a_retry_waits_a_second_but_no_longer_than_a_connection():
    assert Timeouts.of(settings.Timeouts(connect=1_500_000), "tcp").retry == 1
    assert Timeouts.of(settings.Timeouts(connect=300_000), "tcp").retry == 0.3


class Attempt:
    """A session that is connecting since a moment."""

    def __init__(self, context, since) -> None:
        self.context, self.since = context, since
        context.connecting[self] = None

    def timed_out(self) -> None:
        del self.context.connecting[self]


def test_each_attempt_to_connect_ends_at_its_own_limit(stage):
    context = stage().context
    assert context.end_attempts(1000.0) == 1000.1  # nobody is connecting: look again soon
    first, second = Attempt(context, 1000.0), Attempt(context, 1000.5)
    assert context.end_attempts(1004.9) == 1005.0 and list(context.connecting) == [first, second]
    assert context.end_attempts(1005.0) == 1005.5 and list(context.connecting) == [second]
    context.end_attempts(1007.0)
    assert not context.connecting


def test_a_session_is_connecting_until_it_is_connected_or_over(stage):
    stage = stage()
    stage.connect()
    stage.round()
    (session,) = {handler.session for handler in stage.loop.handlers.values() if handler.session}
    assert not stage.context.connecting
    session.reset()
    other = stage.connect()
    stage.acceptors[0].ready(0)
    assert len(stage.context.connecting) == 1
    (connecting,) = stage.context.connecting
    connecting.reset()
    assert not stage.context.connecting
    other.close()
