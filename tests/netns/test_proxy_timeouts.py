# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Timeouts of TCP sessions: the same plays at the same time through HAProxy and through the agent's proxy.

configuration.txt of HAProxy, "timeout tunnel": "This timeout supersedes both the client and server timeouts once the
connection becomes a tunnel. In TCP, this timeout is used as soon as no analyzer remains attached to either
connection". "timeout client-fin": "this timeout can override "timeout tunnel" when a connection shuts down in one
direction. [...] By default it is not set, so half-closed connections will use the other timeouts".
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
import time

import pytest
from support.proxy.masters import Running, free_ports
from support.proxy.proxies import LIMIT, LOCAL, listening
from support.waiting import until

CLIENT, SERVER, FIN, PAUSE, TUNNEL = 1, 1, 1, 3, 5  # seconds: a pause exceeds all but the tunnel


def one_way_stream_with_a_pause(client, server):
    server.sendall(b"a")
    time.sleep(PAUSE)
    server.sendall(b"b")
    server.close()
    return everything(client)


def first_answer_after_a_pause(client, server):
    client.sendall(b"?")
    time.sleep(PAUSE)
    server.sendall(b"!")
    server.close()
    return everything(client)


def answer_after_the_client_has_finished(client, server):
    client.sendall(b"?")
    client.shutdown(socket.SHUT_WR)
    assert everything(server) == b"?"
    time.sleep(PAUSE)
    with contextlib.suppress(OSError):  # it was cut
        server.sendall(b"!")
        server.close()
    return everything(client)


def request_after_the_server_has_finished(client, server):
    server.sendall(b"!")
    server.shutdown(socket.SHUT_WR)
    assert everything(client) == b"!"
    time.sleep(PAUSE)
    with contextlib.suppress(OSError):
        client.sendall(b"?")
        client.close()
    return everything(server)


def silence_from_the_start(client, _server):
    return seconds_until_it_is_cut(client)


def silence_after_a_question(client, _server):
    client.sendall(b"?")
    return seconds_until_it_is_cut(client)


def silence_after_an_exchange(client, server):
    client.sendall(b"?")
    server.sendall(b"!")
    assert client.recv(1) == b"!"
    return seconds_until_it_is_cut(client)


def everything(connection):
    """Return what arrives until the connection ends in any way."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while True:
            data = connection.recv(100)
            if not data:
                break
            found += data
    return found


def seconds_until_it_is_cut(client):
    """Return whole seconds; the agent may be a second late, since it looks at each session once a second."""
    began = time.monotonic()
    assert everything(client) == b""
    lasted = time.monotonic() - began
    return TUNNEL if TUNNEL - 0.1 < lasted < TUNNEL + 2 else lasted


# What each play finds without and with a timeout for half-closed sessions.
PLAYS = {
    one_way_stream_with_a_pause: (b"ab", b"ab"),
    first_answer_after_a_pause: (b"!", b"!"),
    answer_after_the_client_has_finished: (b"!", b""),
    request_after_the_server_has_finished: (b"?", b""),
    silence_from_the_start: (TUNNEL, TUNNEL),
    silence_after_a_question: (TUNNEL, TUNNEL),
    silence_after_an_exchange: (TUNNEL, TUNNEL),
}


@contextlib.contextmanager
def agent(folder, services, fin):
    """Run the agent's proxy with services: ports by their servers' ports."""
    timeouts = {"connect": 5, "client": CLIENT, "server": SERVER, "tunnel": TUNNEL, "fin": fin}
    described = [
        {
            "name": f"s{port}",
            "bind": LOCAL,
            "port": port,
            "check": {"type": "none"},
            "servers": [{"name": "a", "address": LOCAL, "port": server}],
        }
        for server, port in services.items()
    ]
    with Running(folder, {"services": described, "timeouts": timeouts}):
        yield


@contextlib.contextmanager
def haproxy(folder, services, fin):
    """Run HAProxy with the same services."""
    lines = [
        "defaults",
        *("mode tcp", "timeout connect 5s", f"timeout client {CLIENT}s", f"timeout server {SERVER}s"),
        f"timeout tunnel {TUNNEL}s",
        *([f"timeout client-fin {fin}s", f"timeout server-fin {fin}s"] if fin else []),
    ]
    for server, port in services.items():
        lines += [f"listen s{port}", f"bind {LOCAL}:{port}", f"server a {LOCAL}:{server}"]
    (folder / "haproxy.cfg").write_text("\n".join(lines) + "\n")
    process = subprocess.Popen([shutil.which("haproxy"), "-db", "-f", folder / "haproxy.cfg"])
    try:
        for port in services.values():
            until(lambda port=port: accepts(port))
        yield
    finally:
        process.terminate()
        process.wait(LIMIT)


def accepts(port):
    with socket.socket() as client:
        return client.connect_ex((LOCAL, port)) == 0


def perform(balancer, folder, fin, ports):
    """Perform all plays at once through a balancer, each at a port; return what each has found."""
    found, folder = {}, folder / f"{balancer.__name__}-{fin}"
    folder.mkdir()
    servers = {play: listening() for play in PLAYS}
    with contextlib.ExitStack() as stack:
        for server in servers.values():
            stack.enter_context(server)
        services = dict(zip((server.getsockname()[1] for server in servers.values()), ports))
        stack.enter_context(balancer(folder, services, fin))

        def run(play):
            server = servers[play]
            discard_probes(server)
            address = (LOCAL, services[server.getsockname()[1]])
            with socket.create_connection(address, 2 * LIMIT) as client, server.accept()[0] as accepted:
                accepted.settimeout(2 * LIMIT)
                found[play] = play(client, accepted)

        threads = [threading.Thread(target=run, args=(play,)) for play in PLAYS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(3 * LIMIT)
    return found


def discard_probes(server):
    """Close the connections that ``accepts`` has led to."""
    server.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        while True:
            server.accept()[0].close()
    server.settimeout(2 * LIMIT)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what each balancer's plays find, by the balancer and its timeout for half-closed sessions."""
    results, folder = {}, tmp_path_factory.mktemp("timeouts")

    def run(balancer, fin, ports):
        results[balancer, fin] = perform(balancer, folder, fin, ports)

    threads = [
        threading.Thread(target=run, args=(balancer, fin, free_ports(len(PLAYS))))
        for balancer in (agent, haproxy)
        for fin in (0, FIN)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(6 * LIMIT)
    return results


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
@pytest.mark.parametrize("fin", [0, FIN], ids=["no fin timeout", "fin timeout"])
def test_a_session_lasts_as_long_as_through_haproxy(found, play, fin):
    expected = PLAYS[play][bool(fin)]
    assert (found[haproxy, fin].get(play), found[agent, fin].get(play)) == (expected, expected)
