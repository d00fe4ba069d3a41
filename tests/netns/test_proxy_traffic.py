# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy between a client and servers on separate hosts: the traffic when one of the hosts or servers fails."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import threading
import time

import pytest
from support.agent.programs import PATIENT
from support.netns.links import sh, temporary_link
from support.netns.namespaces import inside
from support.proxy.masters import Running
from support.waiting import LIMIT_S, until

PORT, SERVICE = 8080, "service"
BALANCER, BALANCER6 = "192.0.2.1", "2001:db8::1"
BLOCK = random.Random(6).getrandbits(8 * 200_000).to_bytes(200_000, "big")

# Sends its name to each client, and then echoes.
ECHO = """
import socket, sys, threading
name, port = sys.argv[1].encode(), int(sys.argv[2])
server = socket.create_server(("::", port), family=socket.AF_INET6, backlog=512, dualstack_ipv6=True)

def serve(connection):
    try:
        connection.sendall(name)
        while True:
            data = connection.recv(65536)
            if not data:
                break
            connection.sendall(data)
    except OSError:
        pass
    connection.close()

print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


class Proxy:
    """The agent's proxy on lb1, with an echo server on each other member, which has the member's name."""

    def __init__(self, link, folder, **timeouts):
        self.link, self.folder = link, folder
        self.node, *members = link.members
        for node in members:
            node.end_programs()
        self.servers = {node.name: self.serve(node) for node in members}
        servers = [{"name": node.name, "address": f"192.0.2.{node.number}", "port": PORT} for node in members]
        self.configure({"servers": servers}, timeouts)

    def configure(self, service, timeouts):
        service = {"name": SERVICE, "bind": ["*", "::"], "port": PORT, "check": {"type": "none"}, **service}
        self.configuration = {"services": [service], "timeouts": timeouts}

    @staticmethod
    def serve(node):
        server = node.python(ECHO, node.name, PORT)
        assert server.stdout.readline() == "ready\n"
        return server

    def __enter__(self):
        program = ["ip", "netns", "exec", self.node.namespace, *PATIENT]
        self._running = Running(self.folder, self.configuration, program=program)
        return self

    def __exit__(self, *fault):
        self._running.__exit__(*fault)

    def count(self, what, server):
        return self._running.server(f"{SERVICE}/{server}")[what]

    def connect(self, address=BALANCER):
        """Return a client's connection."""
        with inside(self.link.client.namespace):
            return socket.create_connection((address, PORT), LIMIT_S)

    def ask(self, address=BALANCER):
        """Return the name of the server that a new client gets."""
        with self.connect(address) as client:
            client.shutdown(socket.SHUT_WR)
            return _receive_all(client).decode()


def _receive_all(client):
    received = b""
    while True:
        data = client.recv(65536)
        if not data:
            return received
        received += data


class Load:
    """Clients with persistent sessions that send much data, and clients with short sessions."""

    def __init__(self, proxy, persistent=8, short=4):
        self.proxy, self.persistent, self.short = proxy, persistent, short
        # Of the persistent clients, by number: their server, how many blocks came back, and what ended the session.
        self.names, self.rounds, self.broken = {}, {}, {}
        # Of the short sessions: the servers, and the errors.
        self.answers, self.faults = [], []
        self._over = threading.Event()
        runs = [(self._keep_session, number) for number in range(persistent)]
        runs += [(self._repeat_sessions,) for _each in range(short)]
        self._threads = [threading.Thread(target=run, args=arguments, daemon=True) for run, *arguments in runs]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *_fault):
        self._over.set()
        for thread in self._threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive()

    def more(self, count=60):
        """Wait for a number of short sessions, and for several echoes in each persistent session that is not broken."""
        rounds, answers = dict(self.rounds), len(self.answers)

        def enough():
            open_sessions = [number for number in range(self.persistent) if number not in self.broken]
            return len(self.answers) >= answers + count and all(
                self.rounds.get(number, 0) > rounds.get(number, 0) + 2 for number in open_sessions
            )

        until(enough)

    def _keep_session(self, number):
        with self.proxy.connect() as client:
            self.names[number] = client.recv(3).decode()
            try:
                while not self._over.is_set():
                    self._echo(client)
                    self.rounds[number] = self.rounds.get(number, 0) + 1
            except (OSError, AssertionError) as error:
                self.broken[number] = error

    @staticmethod
    def _echo(client):
        """Send a block, and receive it again."""
        sender = threading.Thread(target=_send, args=(client,), daemon=True)
        sender.start()
        received = bytearray()
        while len(received) < len(BLOCK):
            data = client.recv(65536)
            assert data, "the session has ended"
            received += data
        sender.join(LIMIT_S)
        assert received == BLOCK, "the data differ"

    def _repeat_sessions(self):
        while not self._over.is_set():
            try:
                self.answers.append(self.proxy.ask())
            except OSError as error:
                self.faults.append(error)


def _send(client):
    with contextlib.suppress(OSError):  # receiving will report it
        client.sendall(BLOCK)


@pytest.fixture(scope="module")
def hosts():
    """A balancer, two servers and a client."""
    with temporary_link(3) as made:
        yield made


@contextlib.contextmanager
def cut_off(hosts, port):
    """Nothing passes a port of the bridge meanwhile."""
    sh("ip", "-n", hosts.bridge, "link", "set", port, "down")
    try:
        yield
    finally:
        sh("ip", "-n", hosts.bridge, "link", "set", port, "up")


def test_a_killed_server_costs_its_own_sessions_only(hosts, tmp_path):
    with Proxy(hosts, tmp_path) as proxy, Load(proxy) as load:
        assert set(load.answers) == {"lb2", "lb3"}
        began = time.monotonic()
        os.killpg(proxy.servers["lb2"].pid, signal.SIGKILL)
        own = {number for number, name in load.names.items() if name == "lb2"}
        assert 0 < len(own) < len(load.names)
        until(lambda: set(load.broken) >= own)
        # The short sessions that it was just serving fail, and none after them.
        load.more()
        in_flight = len(load.faults)
        before = len(load.answers)
        load.more(200)
        assert set(load.broken) == own
        assert in_flight <= load.short and len(load.faults) == in_flight
        assert set(load.answers[before:]) == {"lb3"}
        # Without checks it is tried again once after each second of back-off.
        until(lambda: proxy.count("connect_errors", "lb2"))
        assert proxy.count("connect_errors", "lb2") <= load.short + time.monotonic() - began


def test_a_host_that_is_unreachable_costs_a_connect_timeout_and_serves_again_later(hosts, tmp_path):
    with Proxy(hosts, tmp_path, connect=0.3) as proxy:
        assert {proxy.ask() for _each in range(4)} == {"lb2", "lb3"}
        with cut_off(hosts, "p2"):
            began = time.monotonic()
            assert {proxy.ask() for _each in range(4)} == {"lb3"}
            assert time.monotonic() - began > 0.2, "the lost server was not tried"
            # Once, and once more after each second of back-off.
            assert proxy.count("connect_errors", "lb2") <= 1 + time.monotonic() - began
        until(lambda: proxy.ask() == "lb2")


def test_a_client_that_is_unreachable_times_out(hosts, tmp_path):
    timeouts = {"client": 1, "server": 1, "tunnel": 1}
    with Proxy(hosts, tmp_path, **timeouts) as proxy, proxy.connect(), cut_off(hosts, hosts.client.port):
        until(lambda: proxy.count("resets", "lb2") + proxy.count("resets", "lb3") == 1)
        assert proxy.count("current", "lb2") + proxy.count("current", "lb3") == 0


def test_clients_and_servers_may_use_different_ip_versions(hosts, tmp_path):
    proxy = Proxy(hosts, tmp_path)
    servers = [
        {"name": "four", "address": "192.0.2.2", "port": PORT},
        {"name": "six", "address": "2001:db8::3", "port": PORT},
    ]
    proxy.configure({"servers": servers}, {})
    with proxy:
        for address in (BALANCER, BALANCER6):
            assert {proxy.ask(address) for _each in range(4)} == {"lb2", "lb3"}, address


def test_a_connection_of_a_socket_to_itself_is_a_failed_connection(link, tmp_path):
    """Without a listener on a local ephemeral port, the kernel may choose that very port as the source."""
    proxy = Proxy(link, tmp_path)
    port = 20000
    proxy.node.output("sysctl", "-qw", f"net.ipv4.ip_local_port_range={port} {port + 1}")
    with inside(proxy.node.namespace), socket.socket() as itself:
        itself.connect(("127.0.0.1", port))  # the kernel chooses this very port as the source
        assert itself.getsockname() == itself.getpeername()
    proxy.configure({"servers": [{"name": "none", "address": "127.0.0.1", "port": port}]}, {})
    with proxy, proxy.connect() as client:
        client.sendall(b"hello")
        with pytest.raises(ConnectionResetError):
            client.recv(100)
        assert proxy.count("sessions", "none") == 0
