# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker as a process: how many it takes, what it needs, how it ends, and what it tells its master."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import worker
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.worker import Worker
from support.ports import free_ports
from support.proxy.masters import Echo, Running, ask
from support.proxy.proxies import LIMIT, LOCAL, Clock, Proxy, listening
from support.waiting import MOMENT_S, until


@pytest.fixture
def server():
    with listening(backlog=2048) as server:
        yield server


def accepted_within(server, seconds: float):
    """The next connection that a server gets, None if there is none."""
    server.settimeout(seconds)
    try:
        return server.accept()[0]
    except socket.timeout:
        return None
    finally:
        server.settimeout(LIMIT)


# -- how many


@pytest.mark.parametrize("limit", [{"options": {"maxconn": 2}}, {"settings_options": {"maxconn": 2}}])
def test_no_more_than_maxconn_are_let_in_and_the_others_wait(server, limit):
    with Proxy(server, **limit) as proxy, contextlib.ExitStack() as opened:
        clients = [opened.enter_context(proxy.connect()) for _each in range(3)]
        inside = [opened.enter_context(server.accept()[0]) for _each in range(2)]
        assert accepted_within(server, 0.3) is None
        proxy.wait_until_idle()
        inside[0].close()
        clients[0].close()
        with server.accept()[0] as third:
            clients[2].sendall(b"at last")
            assert third.recv(7) == b"at last"


def test_the_workers_share_maxconn(server):
    with Proxy(server, settings_options={"maxconn": 4, "workers": 2}) as proxy, contextlib.ExitStack() as opened:
        for _each in range(3):
            opened.enter_context(proxy.connect())
        for _each in range(2):
            opened.enter_context(server.accept()[0])
        assert accepted_within(server, 0.3) is None


# Either for a client there is none left, or for the server of one.
@pytest.mark.parametrize("descriptors", [30, 31])
def test_out_of_descriptors_it_serves_who_is_in_and_lets_others_in_later(server, descriptors):
    with Proxy(server, descriptors=descriptors) as proxy, contextlib.ExitStack() as opened:
        clients = [proxy.connect() for _each in range(40)]
        for client in clients:
            opened.enter_context(client)
        key, text = proxy.wait_for_message("fault")
        assert text == "No more connections can be taken: Too many open files."
        inside = []
        with contextlib.suppress(socket.timeout):
            server.settimeout(6 * MOMENT_S)
            while True:
                inside.append(opened.enter_context(server.accept()[0]))
        assert 5 < len(inside) < 15
        server.settimeout(LIMIT)
        proxy.wait_until_idle()
        for each in inside:
            each.sendall(b"served")
        served = []

        def next_served():
            return next((each for each in clients if each not in served and _says(each, b"served")), None)

        for _each in inside:
            served.append(until(next_served, "one of those inside is not served"))
        assert next_served() is None
        # A session that ends makes room, until every client has been served.
        for each in [*inside, *served]:
            each.close()
        for _each in range(40 - len(served)):
            with server.accept()[0] as each:
                each.sendall(b"served")
                served.append(until(next_served, "no other client is accepted"))
                served[-1].close()
        assert proxy.wait_for_message("cured")[0] == key
        assert [message for message in proxy.messages if "fault" in message][1:] == [], "it is said once"
    assert proxy.count("connect_errors") == 0, "it is not the server's fault"
    assert [message for message in proxy.messages if "failed" in message] == []


def _says(client, what: bytes) -> bool:
    client.settimeout(MOMENT_S)
    try:
        return client.recv(100) == what
    except socket.timeout:
        return False


def test_a_worker_that_hangs_keeps_no_client_from_another_one(tmp_path):
    """A client waits in the shared queue until one of them accepts it."""
    (port,) = free_ports(1)
    with Echo("a") as echo:
        servers = [{"name": "a", "address": LOCAL, "port": echo.port}]
        services = [{"name": "web", "bind": LOCAL, "port": port, "servers": servers, "check": {"type": "none"}}]
        with Running(tmp_path, {"services": services, "workers": 2}) as proxy:
            for pid in [each["pid"] for each in proxy.report()["workers"]]:
                os.kill(pid, signal.SIGSTOP)
                try:
                    assert {ask(port) for _each in range(5)} == {b"a:hello"}
                finally:
                    os.kill(pid, signal.SIGCONT)


# -- its end


def test_a_draining_worker_accepts_no_client_and_lets_sessions_finish(server):
    with Proxy(server) as proxy:
        with proxy.pair(server) as (client, accepted):
            proxy.send(drain=60)
            until(lambda: _is_closed(proxy))
            client.sendall(b"still here")
            assert accepted.recv(10) == b"still here"
        assert proxy.wait_for_message("drained")
        proxy.join()
    assert (proxy.count("sessions"), proxy.count("resets")) == (1, 0)


def test_a_session_that_does_not_finish_in_time_is_reset(server):
    with Proxy(server, clock=Clock()) as proxy, proxy.pair(server) as (client, _accepted):
        proxy.order(drain=40)
        proxy.let_pass(39)
        assert proxy.count("current") == 1
        proxy.let_pass(1)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        proxy.join()


def test_the_time_to_finish_in_can_be_shortened_but_not_extended(server):
    with Proxy(server, clock=Clock()) as proxy, proxy.pair(server) as (client, _accepted):
        for seconds in (60, 20, 60):
            proxy.order(drain=seconds)
        proxy.let_pass(19)
        assert proxy.count("current") == 1
        proxy.let_pass(1)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        proxy.join()


def test_a_worker_whose_master_has_gone_finishes_and_ends(server):
    with Proxy(server) as proxy:
        with proxy.pair(server) as (client, accepted):
            proxy.channel.close()
            until(lambda: _is_closed(proxy))
            client.sendall(b"still here")
            assert accepted.recv(10) == b"still here"
        proxy.join()


def _is_closed(proxy) -> bool:
    """Whether the port is closed; a client that tried would become a session until then."""
    try:
        socket.create_server(proxy.address).close()
    except OSError:
        return False
    return True


# -- what it tells


def test_what_has_passed_is_counted_in_and_out(server):
    with Proxy(server) as proxy, proxy.pair(server) as (client, accepted):
        client.sendall(b"x" * 1000)
        accepted.sendall(b"y" * 300_000)
        received = 0
        while received < 300_000:
            received += len(client.recv(65536))
        proxy.wait_for("bytes_out", 300_000, number=0)  # while the session lasts
        assert proxy.count("bytes_in") == 1000
        assert (proxy.count("sessions"), proxy.count("current")) == (1, 1)
    assert (proxy.count("sessions"), proxy.count("current")) == (1, 0)


def test_what_passes_right_before_the_end_is_counted_too(server):
    with Proxy(server) as proxy:
        for _each in range(5):
            with proxy.pair(server) as (client, accepted):
                client.sendall(b"x" * 1000)
                client.shutdown(socket.SHUT_WR)
                while accepted.recv(1000):
                    pass
                accepted.sendall(b"y" * 10)
    assert (proxy.count("bytes_in"), proxy.count("bytes_out")) == (5000, 50)


def test_only_changed_counters_are_reported(server):
    with Proxy(server, server) as proxy:
        with proxy.pair(server):
            pass
        proxy.wait_for("sessions", 1)
        proxy.wait_for("current", 0)
        assert set(proxy.messages[-1]["counters"]) == {"service", "service/0"}
        proxy.wait_for_message("counters")
        assert proxy.messages[-1]["counters"] == {}


def test_the_counters_of_many_servers_are_reported_together(server):
    with Proxy(*[server] * 250, clock=Clock()) as proxy:  # which stands still: there is no next time
        until(lambda: len(proxy.counters) == 251 or proxy.receive() and False)


def test_all_sessions_are_looked_at_in_turn(server, monkeypatch):
    monkeypatch.setattr(worker, "MIN_CHECKED", 1)
    with Proxy(server, clock=Clock(), tunnel=30) as proxy, contextlib.ExitStack() as opened:
        clients = [opened.enter_context(proxy.connect()) for _each in range(30)]
        for _each in clients:
            opened.enter_context(server.accept()[0])
        proxy.let_pass(31)
        assert 0 < proxy.count("current") <= 30
        for _tenth in range(10):
            proxy.tick()
        proxy.let_pass(1)
        assert proxy.count("current") == 0


def test_a_master_that_reads_nothing_delays_no_session_and_misses_nothing(server):
    with socket.socket() as closed:
        closed.bind((LOCAL, 0))
        with Proxy(*[closed.getsockname()] * 20, server, narrow=True) as proxy:
            until(lambda: _is_served(proxy, server))
            failed = {proxy.wait_for_message("failed") for _each in range(20)}
    assert failed == {f"service/{number}" for number in range(20)}


def _is_served(proxy, server) -> bool:
    with contextlib.suppress(ConnectionResetError), proxy.connect():
        accepted = accepted_within(server, 0.1)
        if accepted:
            accepted.close()
            return True
    return False


# -- what it needs


def test_an_idle_session_takes_little_memory(server):
    number = 500
    with Proxy(server) as proxy, contextlib.ExitStack() as opened:
        with proxy.pair(server) as (client, accepted):
            client.sendall(b"so that all that is ever needed has been made")
            accepted.recv(100)
        before = proxy.resident()
        for _each in range(number):
            client = opened.enter_context(proxy.connect())
            accepted = opened.enter_context(server.accept()[0])
            client.sendall(b"question")
            accepted.recv(8)
            accepted.sendall(b"answer")
            client.recv(6)
        assert proxy.resident() - before < number * 8192


def test_sessions_leave_no_garbage_and_no_descriptors():
    """In this process, so that the collector can be asked; which a worker never does."""
    with listening() as server, listening() as listener:
        listener.setblocking(False)
        place = server.getsockname()[:2]
        service = settings.Service("web", (LOCAL,), 1, (settings.Server("a", *place),))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made = Worker(settings.Settings((service,)), [("web", listener)], theirs)
        thread = threading.Thread(target=made.run)
        gc.collect()
        thread.start()
        for ending in (socket.socket.close, _reset) * 10:
            with socket.create_connection(listener.getsockname()) as client, server.accept()[0] as accepted:
                client.sendall(b"x" * 200_000)
                received = 0
                while received < 200_000:
                    received += len(accepted.recv(1 << 20))
                ending(client)
        ours.close()
        thread.join(LIMIT)
        assert not thread.is_alive()
        theirs.close()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            gc.collect()
            left = [each for each in gc.garbage if type(each).__module__.endswith((".session", ".end", ".splice"))]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
        assert left == []


def _reset(client) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
