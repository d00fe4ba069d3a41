# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two servers whose health pages a test tells what to answer, and a balancer of either engine in front of them."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import balancer
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent

from support import haproxies
from support.netns.links import PORT, temporary_link
from support.netns.namespaces import inside
from support.proxy.masters import Running
from support.rendering import haproxy as render
from support.waiting import LIMIT_S, pause, until

ONE, OTHER = "one", "other"
ENOUGH = 40  # connections
PACE_S = 0.01  # between two of them: a state of a server lasts for many
QUICK = (200, 0)
# Answers GET /health as it was told last, in a line of "STATUS SECONDS", STAY with its name each time, and all
# else once with it. Answers each line that it is told with the number of requests of GET /health so far.
SERVER = """
import socketserver, sys, threading, time
name, told, asked_for = sys.argv[1], [200, 0.0], []
class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            asked = self.request.recv(4096)
            if not asked:
                return
            while asked.startswith(b"STAY"):
                self.request.sendall(name.encode())
                asked = self.request.recv(4096)
            status, seconds = told
            if asked.startswith(b"GET /health"):
                asked_for.append(1)
                time.sleep(seconds)
            else:
                status = 200
            self.request.sendall(f"HTTP/1.0 {status} x\\r\\n\\r\\n{name}".encode())
        except OSError:
            pass
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 1024
server = Server(("", int(sys.argv[2])), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    status, seconds = line.split()
    told[:] = int(status), float(seconds)
    print(len(asked_for), flush=True)
"""
# Both ways, between the balancer and its servers: as a bad port of a switch.
LOSS = """
table ip loss {
    chain in { type filter hook input priority 0; ip saddr { %s } numgen random mod 100 < 5 drop; }
    chain out { type filter hook output priority 0; ip daddr { %s } numgen random mod 100 < 5 drop; }
}
"""
READY = PORT + 1
MONITOR = {"name": "ready", "port": READY, "at_least": {"web": 2}}
# What needs the folders and users of the package.
ELSEWHERE = ("user", "group", "chroot", "log", "stats")


class Pages:
    """The health pages of both servers."""

    def __init__(self, servers):
        self._servers = servers
        self.asked = {}  # how often each had been asked when it was told its answer

    def answer(self, **how):
        for name, (status, seconds) in how.items():
            server = self._servers[name]
            server.stdin.write(f"{status} {seconds}\n")
            server.stdin.flush()
            self.asked[name] = int(server.stdout.readline())


@contextlib.contextmanager
def pages_of(link):
    """Run the servers on the link's second and third member."""
    servers = {
        name: node.python(SERVER, name, PORT, stdin=subprocess.PIPE)
        for name, node in zip((ONE, OTHER), link.members[1:])
    }
    try:
        assert all(server.stdout.readline() == "ready\n" for server in servers.values())
        yield Pages(servers)
    finally:
        for server in servers.values():
            server.stdin.close()
        for node in link.members:
            node.end_programs()


@pytest.fixture(scope="module")
def link():
    """A balancer's host, and those of the two servers."""
    with temporary_link(3) as made:
        yield made


@pytest.fixture
def pages(link):
    with pages_of(link) as made:
        yield made


def service(link, **pace_of_check):
    servers = [{"name": name, "address": node.addresses[0]} for name, node in zip((ONE, OTHER), link.members[1:])]
    check = {"type": "http", "path": "/health", **pace_of_check}
    return [{"name": "web", "port": PORT, "check": check, "servers": servers}]


class Native:
    """A HAProxy in front of both servers, with the file that the role writes, and a socket of the test's."""

    def __init__(self, link, folder, **pace_of_check):
        self._link, self._socket, self._config = link, folder / "sock", folder / "haproxy.cfg"
        self._write(pace_of_check)
        command = [shutil.which("haproxy"), "-W", "-db", "-f", str(self._config)]
        self._process = subprocess.Popen(["ip", "netns", "exec", link.lb1.namespace, *command])

    def __enter__(self):
        until(lambda: f":{READY}" in self._link.lb1.output("ss", "-Hltn"))
        return self

    def __exit__(self, *_fault):
        self._process.terminate()
        self._process.wait(LIMIT_S)

    def _write(self, pace_of_check):
        text = render(service(self._link, **pace_of_check), monitors=[MONITOR], haproxy_stats_enabled=False)
        lines = [line for line in text.splitlines() if line.split()[:1] and line.split()[0] not in ELSEWHERE]
        socket_line = f"    stats socket {self._socket} expose-fd listeners"
        self._config.write_text("\n".join([*lines, "global", socket_line, ""]))

    def states(self):
        answer = balancer.ask(str(self._socket), LIMIT_S) or ""
        return states_of(balancer.of_statistics(answer, self._config.read_text()))

    def reload(self, **pace_of_check):
        self._write(pace_of_check)
        haproxies.reload(self._process)


class Embedded:
    """The agent's balancer in front of both servers."""

    def __init__(self, link, folder, **pace_of_check):
        self._link = link
        with inside(link.lb1.namespace):
            self._running = Running(folder, self._configuration(pace_of_check))

    def __enter__(self):
        self._running.__enter__()
        return self

    def __exit__(self, *fault):
        self._running.__exit__(*fault)

    def _configuration(self, pace_of_check):
        given = {"services": service(self._link, **pace_of_check), "monitors": [MONITOR], "stats_enabled": False}
        return {key: value for key, value in agent.translate(given)["proxy"].items() if key != "status_socket"}

    def states(self):
        return states_of(balancer.of_report(self._running.report()))

    def reload(self, **pace_of_check):
        self._running.reload(self._configuration(pace_of_check))


def states_of(servers):
    return {name: state for _service, name, state in servers}


def ask(link, port=PORT):
    """Return the name of the server that a client gets, "" if nobody answers, or the status of a monitor."""
    with inside(link.client.namespace), socket.socket() as client:
        client.settimeout(LIMIT_S)
        try:
            client.connect((link.lb1.addresses[0], port))
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b""
            while True:
                data = client.recv(4096)
                if not data:
                    break
                answer += data
        except OSError:
            return ""
    if port == READY:
        return answer.split()[1].decode()
    return answer.rpartition(b"\r\n\r\n")[2].decode()


class Clients:
    """A client that asks again and again, and the names of those that have answered it."""

    def __init__(self, link):
        self._link, self.answers = link, []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_fault):
        self._over.set()
        self._thread.join(LIMIT_S)

    def _run(self):
        while not self._over.is_set():
            self.answers.append(ask(self._link))
            pause(PACE_S)

    def find(self, *names):
        """Wait until these servers, and no others, have answered for a while; "" is nobody."""
        until(lambda: {*self.answers[-ENOUGH:]} == {*names})


@contextlib.contextmanager
def lossy(link):
    """Lose a packet in twenty between the balancer and its servers."""
    servers = ", ".join(node.addresses[0] for node in link.members[1:])
    link.lb1.output("nft", LOSS % (servers, servers))
    try:
        yield
    finally:
        link.lb1.output("nft", "delete table ip loss")


def watched(link, running, pages, checks):
    """Return the states of the servers and what clients get while each server is asked so often for its health."""
    states, answers = [], []
    pages.answer(one=QUICK, other=QUICK)
    enough = max(pages.asked.values()) + checks

    def have_been_asked():
        pages.answer(one=QUICK, other=QUICK)
        states.extend(running.states().values())
        answers.append(ask(link))
        pause(0.05)
        return min(pages.asked.values()) > enough

    until(have_been_asked)
    return {*states}, {*answers}
