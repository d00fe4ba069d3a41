# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes by the name in TLS, which is passed through: the agent and HAProxy choose the same servers."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import client_hello
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from support.ports import free_ports
from support.proxy.masters import Running
from support.proxy.proxies import LIMIT, LOCAL, is_cut_off, listening
from support.rendering import haproxy
from support.waiting import until

ROUTES = {"shard": ["*.shard.example.com"], "console": ["console.example.com", "*.oauth.example.com"]}
ASKED = {
    "a.shard.example.com": "shard",
    "A.SHARD.example.com": "shard",
    "a.b.shard.example.com": "shard",
    "shard.example.com": "own",
    "ashard.example.com": "own",
    "console.example.com": "console",
    "x.oauth.example.com": "console",
    "xconsole.example.com": "own",
    "other.example.com": "own",
    "": "own",
}


def services(port, servers):
    """Return a service with routes, in the words of the roles."""
    of = {name: [{"name": name, "address": LOCAL, "port": each.getsockname()[1]}] for name, each in servers.items()}
    quiet = {"check": {"type": "none"}}
    routes = [{"name": name, "hosts": hosts, "servers": of[name], **quiet} for name, hosts in ROUTES.items()]
    return [{"name": "web", "port": port, "bind": [LOCAL], "servers": of["own"], "routes": routes, **quiet}]


@contextlib.contextmanager
def running_agent(folder, given):
    found = agent.translate({"services": given, "stats_enabled": False})
    assert found["faults"] == []
    with Running(folder, {**found["proxy"], "status_socket": f"{folder}/run/proxy.sock"}):
        yield


@contextlib.contextmanager
def running_haproxy(folder, given):
    """Serve with the role's frontends and backends; what only root may do is left out."""
    text = haproxy(given, stats_enabled=False)
    (folder / "haproxy.cfg").write_text(text[text.index("\ndefaults\n") :].replace("    log global\n", ""))
    process = subprocess.Popen([shutil.which("haproxy"), "-db", "-f", folder / "haproxy.cfg"])
    try:
        until(lambda: _accepts(given[0]["port"]))
        yield
    finally:
        process.terminate()
        process.wait(LIMIT)


def _accepts(port):
    with contextlib.suppress(OSError), socket.create_connection((LOCAL, port), LIMIT):
        return True
    return False


@pytest.fixture(params=[running_agent, running_haproxy])
def balancer(request, tmp_path):
    """Yield the port, and the listening sockets of the servers."""
    if request.param is running_haproxy and not shutil.which("haproxy"):
        pytest.skip("HAProxy is not installed")
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(listening()) for name in ("own", *ROUTES)}
        (port,) = free_ports(1)
        stack.enter_context(request.param(tmp_path, services(port, servers)))
        yield port, servers


def connected(port):
    return socket.create_connection((LOCAL, port), LIMIT)


def received(server, size):
    with server.accept()[0] as accepted:
        accepted.settimeout(LIMIT)
        found = b""
        while len(found) < size:
            found += accepted.recv(1 << 16)
        return found


def test_the_first_route_with_the_name_has_the_client_and_all_of_its_bytes(balancer):
    port, servers = balancer
    for name, where in ASKED.items():
        hello = client_hello.of(name)
        with connected(port) as client:
            client.sendall(hello + b"early data")
            assert received(servers[where], len(hello) + 10) == hello + b"early data", name


def test_a_hello_may_come_in_segments(balancer):
    port, servers = balancer
    hello = client_hello.of("a.shard.example.com")
    with connected(port) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(hello), 40):
            client.sendall(hello[at : at + 40])
        assert received(servers["shard"], len(hello)) == hello


def test_a_hello_may_come_in_several_records_which_only_the_agent_reads(balancer, request):
    port, servers = balancer
    message = client_hello.of("a.shard.example.com")[5:]
    parts = [message[at : at + 100] for at in range(0, len(message), 100)]
    hello = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)
    where = "shard" if "running_agent" in request.node.name else "own"
    with connected(port) as client:
        client.sendall(hello)
        assert received(servers[where], len(hello)) == hello


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x15\x03\x01\x00\x02\x01\x00"])
def test_a_client_without_tls_is_cut_off(balancer, data):
    port, _servers = balancer
    with connected(port) as client:
        client.sendall(data)
        assert is_cut_off(client)


def test_a_client_that_ends_within_its_hello_is_cut_off(balancer):
    port, _servers = balancer
    with connected(port) as client:
        client.sendall(client_hello.of("a.shard.example.com")[:-1])
        client.shutdown(socket.SHUT_WR)
        assert is_cut_off(client)
