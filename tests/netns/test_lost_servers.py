# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server is lost while its balancer still takes it for one that serves: each client gets another one at once. And
what a kernel makes of the rules with which a drill loses one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import shutil
import socket
import struct
import subprocess
import termios
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import lost_server
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._shared.events import SERVER_CUT, SERVER_ENDED, SERVER_HUNG
from support.netns.links import PORT, sh, temporary_link
from support.netns.namespaces import inside
from support.proxy.masters import Running
from support.rendering import haproxy as render
from support.waiting import LIMIT_S, until

LASTING_PORT = PORT + 1
ANSWERS = 20 * 20_000  # bytes of some answers of a server, with a pause after each
CLIENTS, MAX_WEIGHT = 8, 256
SYN_SENT = 2  # include/net/tcp_states.h
# The ports from which the balancer has tried to connect: each attempt has one, however often TCP repeats its SYN.
SEEN = """
table ip seen {
    set lost { type inet_service; flags dynamic; size 1000; }
    set other { type inet_service; flags dynamic; size 1000; }
    chain out {
        type filter hook output priority 0
        ip daddr %s tcp flags & (syn | ack) == syn add @lost { tcp sport }
        ip daddr %s tcp flags & (syn | ack) == syn add @other { tcp sport }
    }
}
"""
# Answers each client again and again, once it has said something: with more than TCP sends at first.
ANSWERING = """
import socket, sys, threading, time
server = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
def answer(connection):
    try:
        connection.recv(64)
        while True:
            connection.sendall(b"here" * 5000)
            time.sleep(0.02)
    except OSError:
        pass
while True:
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
"""
# What needs the folders and users of the package.
ELSEWHERE = ("user", "group", "chroot", "log", "stats")


@pytest.fixture(scope="module")
def link():
    with temporary_link(3) as made:
        for number in range(CLIENTS):
            made.client.ip("addr", "add", f"192.0.2.{150 + number}/24", "dev", "eth0")
        for node in made.members[1:]:
            node.serve()
            assert node.python(ANSWERING, LASTING_PORT).stdout.readline() == "ready\n"
        yield made


def services(link, balance):
    """Return the service. Nothing checks its servers, and nearly all clients get the second one."""
    servers = [
        {"address": node.addresses[0], "weight": weight} for node, weight in zip(link.members[1:], (1, MAX_WEIGHT))
    ]
    check = {"type": "none"}
    return [{"name": "web", "port": PORT, "balance": balance, "check": check, "servers": servers}]


def with_a_backup(link, **check):
    """Return the service where the second server gets all clients, and the first one is its backup."""
    servers = [
        {"address": node.addresses[0], "backup": backup} for node, backup in zip(link.members[1:], (True, False))
    ]
    return [{"name": "web", "port": PORT, "check": {"type": "tcp", **check}, "servers": servers}]


@contextlib.contextmanager
def native(link, folder, served):
    text = render(served)
    kept = [line for line in text.splitlines() if line.split()[:1] and line.split()[0] not in ELSEWHERE]
    (folder / "haproxy.cfg").write_text("\n".join(kept) + "\n")
    command = [shutil.which("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")]
    process = subprocess.Popen(["ip", "netns", "exec", link.lb1.namespace, *command])
    try:
        until(lambda: f":{PORT}" in link.lb1.output("ss", "-Hltn"))
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def embedded(link, folder, served):
    proxy = agent.translate({"services": served, "stats_enabled": False})["proxy"]
    with inside(link.lb1.namespace):
        running = Running(folder, {key: value for key, value in proxy.items() if key != "status_socket"})
    with running:
        yield


def ask(link, number):
    """Return whether a client is answered."""
    with inside(link.client.namespace), socket.socket() as client:
        client.settimeout(LIMIT_S)
        client.bind((f"192.0.2.{150 + number}", 0))
        client.connect((link.lb1.addresses[0], PORT))
        client.sendall(b"hello")
        return client.recv(4) == b"here"


def attempts(link, servers):
    """Return how many connections the balancer has tried to open to the lost server, or to the other one."""
    listed = json.loads(link.lb1.output("nft", "--json", "list", "set", "ip", "seen", servers))["nftables"]
    return sum(len(each["set"].get("elem", [])) for each in listed if "set" in each)


@pytest.mark.parametrize("balance", ["roundrobin", "leastconn", "source"])
@pytest.mark.parametrize("engine", [native, embedded])
def test_each_client_of_a_server_that_is_cut_off_is_sent_to_another_one_next(link, tmp_path, engine, balance):
    other, lost = link.members[1:]
    with engine(link, tmp_path, services(link, balance)):
        assert all(ask(link, number) for number in range(CLIENTS))
        link.lb1.output("nft", SEEN % (lost.addresses[0], other.addresses[0]))
        sh("ip", "-n", link.bridge, "link", "set", lost.port, "nomaster")
        try:
            with ThreadPoolExecutor(CLIENTS) as pool:
                answered = list(pool.map(lambda number: ask(link, number), range(CLIENTS)))
            at_lost, at_other = attempts(link, "lost"), attempts(link, "other")
        finally:
            sh("ip", "-n", link.bridge, "link", "set", lost.port, "master", "br0")
            link.lb1.output("nft", "delete", "table", "ip", "seen")
    assert answered == [True] * CLIENTS
    assert 0 < at_lost <= at_other  # no two attempts of a client at the lost one follow each other


def is_answered(link, number):
    """Return whether a client is answered, and not reset."""
    try:
        return ask(link, number)
    except ConnectionError:
        return False


@pytest.mark.parametrize("ends", [False, True], ids=["sessions stay", "sessions end with their server"])
@pytest.mark.parametrize("engine", [native, embedded])
def test_clients_of_the_last_active_server_wait_for_the_backup_unless_haproxy_ends_them(link, tmp_path, engine, ends):
    """They come as it is cut off. The forecast says so: see `_plan.forecast.servers`."""
    _backup, active = link.members[1:]
    with engine(link, tmp_path, with_a_backup(link, shutdown_sessions=ends)):
        assert all(ask(link, number) for number in range(CLIENTS))
        sh("ip", "-n", link.bridge, "link", "set", active.port, "nomaster")
        try:
            with ThreadPoolExecutor(CLIENTS) as pool:
                answered = list(pool.map(lambda number: is_answered(link, number), range(CLIENTS)))
            assert ask(link, 0)  # by the backup, since they have waited for it
        finally:
            sh("ip", "-n", link.bridge, "link", "set", active.port, "master", "br0")
    assert answered == [not (ends and engine is native)] * CLIENTS


@contextlib.contextmanager
def lost(link, event, address):
    """Have a server lost for the balancer's host, as a drill does."""
    link.lb1.output("nft", lost_server.rules(event, address, LASTING_PORT))
    try:
        yield
    finally:
        link.lb1.output("nft", lost_server.DELETE_TABLE)


def connection(node, address):
    """Return a connection to a server, from a member."""
    with inside(node.namespace):
        return socket.create_connection((address, LASTING_PORT), LIMIT_S)


def answer(sock):
    sock.settimeout(LIMIT_S)
    sock.sendall(b"hello")
    return sock.recv(4)


def is_acknowledged(sock):
    """Return whether the other kernel has acknowledged all that was sent."""
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4))[0] == 0


def is_silent(sock, other):
    """Return whether nothing more comes on a connection while another server sends some answers."""
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while sock.recv(4096):
            pass
    received = 0
    while received < ANSWERS:
        received += len(other.recv(65536))
    try:
        return not sock.recv(4096)
    except BlockingIOError:
        return True


family = pytest.mark.parametrize("version", [4, 6])


@family
def test_a_server_that_a_drill_cuts_off_is_silent_for_the_balancers_host_alone(link, version):
    server, other = (node.addresses[version == 6] for node in link.members[1:])
    with inside(link.lb1.namespace):
        client = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6)
    before = connection(link.lb1, server)
    assert answer(before) == b"here"
    with client, before, lost(link, SERVER_CUT, server):
        client.setblocking(False)
        assert client.connect_ex((server, LASTING_PORT)) == errno.EINPROGRESS
        for address, node in ((other, link.lb1), (server, link.members[2])):
            with connection(node, address) as another:
                assert answer(another) == b"here" and is_silent(before, another)
        assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == SYN_SENT
    with connection(link.lb1, server) as client:
        assert answer(client) == b"here"


@family
def test_a_server_whose_process_a_drill_ends_refuses_the_balancers_host_alone(link, version):
    server, other = (node.addresses[version == 6] for node in link.members[1:])
    with connection(link.lb1, server) as before, lost(link, SERVER_ENDED, server):
        with pytest.raises(ConnectionRefusedError):
            connection(link.lb1, server)
        with pytest.raises(ConnectionResetError):
            answer(before)
        for address, node in ((other, link.lb1), (server, link.members[2])):
            with connection(node, address) as another:
                assert answer(another) == b"here"


@family
def test_a_server_whose_process_a_drill_hangs_accepts_and_acknowledges_and_answers_afterwards(link, version):
    server, other = (node.addresses[version == 6] for node in link.members[1:])
    with lost(link, SERVER_HUNG, server):
        client = connection(link.lb1, server)
        client.sendall(b"hello")
        until(lambda: is_acknowledged(client))
        for address, node in ((other, link.lb1), (server, link.members[2])):
            with connection(node, address) as another:
                assert answer(another) == b"here" and is_silent(client, another)
    with client:
        client.settimeout(LIMIT_S)
        assert client.recv(4) == b"here"
