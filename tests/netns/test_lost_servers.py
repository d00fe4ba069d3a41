# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server is lost while its balancer still takes it for one that serves: each client gets another one at once."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from support.netns.links import PORT, sh, temporary_link
from support.netns.namespaces import inside
from support.proxy.masters import Running
from support.rendering import haproxy as render
from support.waiting import LIMIT_S, until

CLIENTS, MAX_WEIGHT = 8, 256
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
# What needs the folders and users of the package.
ELSEWHERE = ("user", "group", "chroot", "log", "stats")


@pytest.fixture(scope="module")
def link():
    with temporary_link(3) as made:
        for number in range(CLIENTS):
            made.client.ip("addr", "add", f"192.0.2.{150 + number}/24", "dev", "eth0")
        for node in made.members[1:]:
            node.serve()
        yield made


def services(link, balance):
    """Return the service. Nothing checks its servers, and nearly all clients get the second one."""
    servers = [
        {"address": node.addresses[0], "weight": weight} for node, weight in zip(link.members[1:], (1, MAX_WEIGHT))
    ]
    check = {"type": "none"}
    return [{"name": "web", "port": PORT, "balance": balance, "check": check, "servers": servers}]


@contextlib.contextmanager
def native(link, folder, balance):
    text = render(services(link, balance))
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
def embedded(link, folder, balance):
    proxy = agent.translate({"services": services(link, balance), "stats_enabled": False})["proxy"]
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
    with engine(link, tmp_path, balance):
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
