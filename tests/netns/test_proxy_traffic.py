# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy between a client and servers that are hosts of their own: what becomes of traffic when one of them dies."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from support.netns.links import sh, temporary_link
from support.netns.namespaces import inside
from support.paths import MODULE_UTILS
from support.waiting import LIMIT_S, until

PORT, SERVICE = 8080, "service"
BALANCER, BALANCER6 = "192.0.2.1", "2001:db8::1"
BLOCK = random.Random(6).getrandbits(8 * 200_000).to_bytes(200_000, "big")

# Says its name to each client, then again whatever it hears.
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
    """The agent's proxy at lb1, with echo servers at the other members, who are called as these are."""

    def __init__(self, link, folder, **timeouts):
        self.link, self.folder = link, folder
        self.node, *members = link.members
        self.servers = {node.name: self.serve(node) for node in members}
        places = [{"name": node.name, "address": f"192.0.2.{node.number}", "port": PORT} for node in members]
        self.configure({"servers": places}, timeouts)

    def configure(self, service, timeouts):
        whole = {"name": SERVICE, "bind": ["*", "::"], "port": PORT, "check": {"type": "none"}, **service}
        config = {"services": [whole], "timeouts": timeouts, "status_socket": str(self.folder / "status")}
        (self.folder / "proxy.json").write_text(json.dumps(config))

    @staticmethod
    def serve(node):
        server = node.python(ECHO, node.name, PORT)
        assert server.stdout.readline() == "ready\n"
        return server

    def __enter__(self):
        command = [sys.executable, "-m", "_agent.cli", "proxy", "--config", str(self.folder / "proxy.json")]
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.node.namespace, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(MODULE_UTILS)},
            )
        try:
            until(lambda: self.process.poll() is not None or self.workers())
            assert self.process.poll() is None, self.log()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_fault):
        self._stop()
        assert "Traceback" not in self.log(), self.log()

    def _stop(self):
        """Its workers end with it, once their sessions have."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            until(lambda: self.process.poll() is not None or "Stopping: " in self.log())
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def log(self):
        return (self.folder / "log").read_text()

    def report(self):
        return status_socket.fetch(str(self.folder / "status"))

    def workers(self):
        try:
            return self.report()["workers"]
        except status_socket.Refused:
            return []

    def count(self, what, server):
        (service,) = self.report()["services"]
        return next(each[what] for each in service["servers"] if each["name"] == server)

    def connect(self, address=BALANCER):
        """Return a client's connection."""
        with inside(self.link.client.namespace):
            return socket.create_connection((address, PORT), LIMIT_S)

    def ask(self, address=BALANCER):
        """Return the name of the server that a new client is given."""
        with self.connect(address) as client:
            client.shutdown(socket.SHUT_WR)
            return _all_of(client).decode()


def _all_of(client):
    heard = b""
    while True:
        data = client.recv(65536)
        if not data:
            return heard
        heard += data


class Load:
    """Clients who stay, and say much, and clients who come and go. Whatever happens to them is noted."""

    def __init__(self, proxy, stay=8, come=4):
        self.proxy, self.come = proxy, come
        self.rounds, self.broken = {}, {}  # of those who stay: number -> how often answered, number -> why
        self.names = {}
        self.answers, self.faults = [], []  # of those who come and go: servers' names, what went wrong
        self._over = threading.Event()
        works = [(self._stay, number) for number in range(stay)] + [(self._come,) for _each in range(come)]
        self._threads = [threading.Thread(target=work, args=arguments, daemon=True) for work, *arguments in works]

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
        """Wait until everybody who is not broken has been answered again, time after time."""
        rounds, answers = dict(self.rounds), len(self.answers)

        def answered():
            stayed = [number for number in range(8) if number not in self.broken]
            return len(self.answers) >= answers + count and all(
                self.rounds.get(number, 0) > rounds.get(number, 0) + 2 for number in stayed
            )

        until(answered)

    def _stay(self, number):
        with self.proxy.connect() as client:
            self.names[number] = client.recv(3).decode()
            try:
                while not self._over.is_set():
                    self._talk(client)
                    self.rounds[number] = self.rounds.get(number, 0) + 1
            except (OSError, AssertionError) as fault:
                self.broken[number] = fault

    @staticmethod
    def _talk(client):
        """Say much, and hear it again."""
        speaker = threading.Thread(target=_say, args=(client,), daemon=True)
        speaker.start()
        heard = bytearray()
        while len(heard) < len(BLOCK):
            data = client.recv(65536)
            assert data, "it has ended"
            heard += data
        speaker.join(LIMIT_S)
        assert heard == BLOCK, "something else was heard"

    def _come(self):
        while not self._over.is_set():
            try:
                self.answers.append(self.proxy.ask())
            except OSError as fault:
                self.faults.append(fault)


def _say(client):
    with contextlib.suppress(OSError):  # which is found out by listening
        client.sendall(BLOCK)


@pytest.fixture
def hosts():
    """A balancer, two servers and a client."""
    with temporary_link(3) as made:
        yield made


def test_a_server_that_is_killed_takes_nobody_with_it_but_its_own(hosts, tmp_path):
    with Proxy(hosts, tmp_path) as proxy, Load(proxy) as load:
        assert set(load.answers) == {"lb2", "lb3"}
        began = time.monotonic()
        os.killpg(proxy.servers["lb2"].pid, signal.SIGKILL)
        own = {number for number, name in load.names.items() if name == "lb2"}
        assert 0 < len(own) < len(load.names)
        until(lambda: set(load.broken) >= own)
        # Who was just being served by it cannot be; after that nobody notices.
        load.more()
        in_flight = len(load.faults)
        before = len(load.answers)
        load.more(200)
        assert set(load.broken) == own
        assert in_flight <= load.come and len(load.faults) == in_flight
        assert set(load.answers[before:]) == {"lb3"}
        # Without checks it is tried again, a single time, whenever it has been avoided for a second.
        until(lambda: proxy.count("connect_errors", "lb2"))
        assert proxy.count("connect_errors", "lb2") <= load.come + time.monotonic() - began


def test_a_host_that_vanishes_makes_a_client_wait_for_another_one_and_comes_back(hosts, tmp_path):
    with Proxy(hosts, tmp_path, connect=0.3) as proxy:
        assert {proxy.ask() for _each in range(4)} == {"lb2", "lb3"}
        sh("ip", "-n", hosts.bridge, "link", "set", "p2", "down")
        began = time.monotonic()
        assert {proxy.ask() for _each in range(4)} == {"lb3"}
        assert time.monotonic() - began > 0.2, "nothing was tried"
        assert proxy.count("connect_errors", "lb2") <= 2
        sh("ip", "-n", hosts.bridge, "link", "set", "p2", "up")
        until(lambda: proxy.ask() == "lb2")


def test_a_client_that_vanishes_is_given_up(hosts, tmp_path):
    with Proxy(hosts, tmp_path, client=1, server=1, tunnel=1) as proxy, proxy.connect() as client:
        assert client.recv(3)
        sh("ip", "-n", hosts.bridge, "link", "set", hosts.client.port, "down")
        until(lambda: proxy.count("resets", "lb2") + proxy.count("resets", "lb3") == 1)
        assert proxy.count("current", "lb2") + proxy.count("current", "lb3") == 0


def test_clients_and_servers_need_not_speak_the_same_ip(hosts, tmp_path):
    proxy = Proxy(hosts, tmp_path)
    places = [
        {"name": "four", "address": "192.0.2.2", "port": PORT},
        {"name": "six", "address": "2001:db8::3", "port": PORT},
    ]
    proxy.configure({"servers": places}, {})
    with proxy:
        for address in (BALANCER, BALANCER6):
            assert {proxy.ask(address) for _each in range(4)} == {"lb2", "lb3"}, address


def test_a_connection_that_the_kernel_makes_to_itself_is_no_servers(hosts, tmp_path):
    """Where nobody listens on a port that the kernel also chooses for itself, it may connect a socket to its own."""
    proxy = Proxy(hosts, tmp_path)
    port = 20000
    proxy.node.output("sysctl", "-qw", f"net.ipv4.ip_local_port_range={port} {port + 1}")
    with inside(proxy.node.namespace), socket.socket() as itself:
        itself.connect(("127.0.0.1", port))  # and no other could be chosen
        assert itself.getsockname() == itself.getpeername()
    proxy.configure({"servers": [{"name": "nobody", "address": "127.0.0.1", "port": port}]}, {})
    with proxy, proxy.connect() as client:
        client.sendall(b"is somebody there?")
        with pytest.raises(ConnectionResetError):
            client.recv(100)
        assert proxy.count("sessions", "nobody") == 0
