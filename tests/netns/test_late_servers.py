# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that answer their checks late are not lost: while no server is up, clients get them, and nobody is refused.

Both engines, with the pace that they have by default. One who says no, or never answers, is not late.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import balancer
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, pace
from support.netns.links import PORT, sh, temporary_link
from support.netns.namespaces import inside
from support.proxy.masters import Running
from support.rendering import haproxy as render
from support.waiting import LIMIT_S, until

ONE, OTHER = "one", "other"
LATE_S = 1
ENOUGH = 40  # connections
# Answers GET /health as it was told last, in a line of "STATUS SECONDS", and anything else at once with its name.
SERVER = """
import socketserver, sys, threading, time
name, told = sys.argv[1], [200, 0.0]
class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            asked = self.request.recv(4096)
            if not asked:
                return
            status, seconds = told
            if asked.startswith(b"GET /health"):
                time.sleep(seconds)
            else:
                status = 200
            self.request.sendall(f"HTTP/1.1 {status} x\\r\\nContent-Length: {len(name)}\\r\\nConnection: close\\r\\n\\r\\n{name}".encode())
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
    print("told", flush=True)
"""
QUICK, LATE, NO, HUNG = (200, 0), (200, LATE_S), (503, 0), (200, 10 * LIMIT_S)
# What needs the folders and users of the package.
ELSEWHERE = ("user", "group", "chroot", "log", "stats")


class Pages:
    """The health pages of both servers."""

    def __init__(self, servers):
        self._servers = servers

    def answer(self, **how):
        for name, (status, seconds) in how.items():
            server = self._servers[name]
            server.stdin.write(f"{status} {seconds}\n")
            server.stdin.flush()
            assert server.stdout.readline() == "told\n"


@pytest.fixture(scope="module")
def link():
    with temporary_link(3) as made:
        yield made


@pytest.fixture
def pages(link):
    servers = {
        name: node.python(SERVER, name, PORT, stdin=subprocess.PIPE)
        for name, node in zip((ONE, OTHER), link.members[1:])
    }
    assert all(server.stdout.readline() == "ready\n" for server in servers.values())
    yield Pages(servers)
    for server in servers.values():
        server.stdin.close()
    for node in link.members:
        node.end_programs()


def services(link):
    servers = [{"name": name, "address": node.addresses[0]} for name, node in zip((ONE, OTHER), link.members[1:])]
    return [{"name": "web", "port": PORT, "check": {"type": "http", "path": "/health"}, "servers": servers}]


@contextlib.contextmanager
def native(link, folder):
    lines = [line for line in render(services(link)).splitlines() if line.split()[:1] != ["stats"]]
    lines = [line for line in lines if not line.split() or line.split()[0] not in ELSEWHERE]
    path, config = folder / "sock", folder / "haproxy.cfg"
    config.write_text("\n".join([*lines, "global", f"    stats socket {path}", ""]))
    command = [shutil.which("haproxy"), "-db", "-f", str(config)]
    process = subprocess.Popen(["ip", "netns", "exec", link.lb1.namespace, *command])
    try:
        until(lambda: f":{PORT}" in link.lb1.output("ss", "-Hltn"))
        yield lambda: states_of(balancer.of_statistics(balancer.ask(str(path)), config.read_text()))
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def embedded(link, folder):
    proxy = agent.translate({"services": services(link), "stats_enabled": False})["proxy"]
    with inside(link.lb1.namespace):
        running = Running(folder, {key: value for key, value in proxy.items() if key != "status_socket"})
    with running:
        yield lambda: states_of(balancer.of_report(running.report()))


def states_of(servers):
    return {name: state for _service, name, state in servers}


BOTH = pytest.mark.parametrize("engine", [native, embedded])


def ask(link):
    """Return the name of the server that a client gets, "" if nobody answers."""
    with inside(link.client.namespace), socket.socket() as client:
        client.settimeout(LIMIT_S)
        try:
            client.connect((link.lb1.addresses[0], PORT))
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b""
            while True:
                data = client.recv(4096)
                if not data:
                    break
                answer += data
        except OSError:
            return ""
    return answer.rpartition(b"\r\n\r\n")[2].decode() if answer.startswith(b"HTTP/1.1 200") else ""


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

    def find(self, *names):
        """Wait until these servers, and no others, have answered for a while; "" is nobody."""
        until(lambda: {*self.answers[-ENOUGH:]} == {*names})


@BOTH
def test_late_servers_get_connections_while_none_is_up_and_nobody_is_refused(link, pages, tmp_path, engine):
    with engine(link, tmp_path) as states, Clients(link) as clients:
        pages.answer(one=LATE, other=LATE)
        until(lambda: states() == {ONE: "late", OTHER: "late"})
        clients.find(ONE, OTHER)
        pages.answer(other=QUICK)
        until(lambda: states() == {ONE: "late", OTHER: "up"})
        clients.find(OTHER)
        pages.answer(one=QUICK)
        until(lambda: states() == {ONE: "up", OTHER: "up"})
        clients.find(ONE, OTHER)
        pages.answer(one=LATE, other=LATE)
        clients.find(ONE, OTHER)
        assert "" not in clients.answers


@BOTH
def test_servers_that_say_no_get_none_and_a_late_one_beside_them_gets_all(link, pages, tmp_path, engine):
    with engine(link, tmp_path) as states, Clients(link) as clients:
        pages.answer(one=NO, other=LATE)
        until(lambda: states() == {ONE: "down", OTHER: "late"})
        clients.find(OTHER)
        pages.answer(other=NO)
        until(lambda: states() == {ONE: "down", OTHER: "down"})
        clients.find("")
        pages.answer(one=LATE)
        until(lambda: states() == {ONE: "late", OTHER: "down"})
        clients.find(ONE)


@BOTH
def test_a_server_that_never_answers_gets_none_beside_one_that_does_and_alone_until_its_time_is_over(
    link, pages, tmp_path, engine, monkeypatch
):
    monkeypatch.setattr(pace, "LATE_S", 2)
    monkeypatch.setattr(pace, "LATE", "2s")
    with engine(link, tmp_path) as states, Clients(link) as clients:
        pages.answer(one=HUNG)
        until(lambda: states()[ONE] == "late")
        clients.find(OTHER)
        until(lambda: states()[ONE] == "down")
        assert "" not in clients.answers
        pages.answer(other=HUNG)
        clients.find("")
        assert states() == {ONE: "down", OTHER: "down"}


@BOTH
def test_from_its_start_on_a_balancer_whose_servers_are_late_refuses_nobody(link, pages, tmp_path, engine):
    pages.answer(one=LATE, other=LATE)
    with engine(link, tmp_path) as states, Clients(link) as clients:
        until(lambda: states() == {ONE: "late", OTHER: "late"})
        clients.find(ONE, OTHER)
        assert "" not in clients.answers
