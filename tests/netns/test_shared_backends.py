# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Services with the servers of another one: the installed HAProxy has one backend for them."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess

import pytest
from support.proxy.side_by_side import own_network
from support.rendering import haproxy as render
from support.waiting import LIMIT_S, until

LOCAL, SERVER = "127.0.0.1", 9001
WEB = {"name": "web", "port": 8001, "servers": [{"name": "one", "address": LOCAL, "port": SERVER, "maxconn": 1}]}
ALSO = {"name": "also", "port": 8002, "backend": "web"}
# What needs the folders and users of the package.
ELSEWHERE = ("user", "group", "chroot", "log")


@pytest.fixture(scope="module", autouse=True)
def network():
    with own_network():
        yield


@contextlib.contextmanager
def serving(folder, *services):
    sockets = folder / "admin.sock"
    text = render(list(services), haproxy_stats_enabled=False).replace("/run/haproxy/admin.sock", str(sockets))
    kept = [line for line in text.splitlines() if line.split()[:1] and line.split()[0] not in ELSEWHERE]
    (folder / "haproxy.cfg").write_text("\n".join(kept) + "\n")
    process = subprocess.Popen([shutil.which("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")])
    try:
        until(sockets.exists)
        yield lambda: statistics(sockets)
    finally:
        process.kill()
        process.wait()


def statistics(path):
    """Return the status of each section, by its name and part."""
    with socket.socket(socket.AF_UNIX) as admin:
        admin.connect(str(path))
        admin.sendall(b"show stat\n")
        found = b"".join(iter(lambda: admin.recv(65536), b"")).decode()
    names = found.splitlines()[0].lstrip("# ").split(",")
    rows = [dict(zip(names, line.split(","))) for line in found.splitlines()[1:] if line]
    return {(row["pxname"], row["svname"]): row for row in rows}


def test_both_ports_lead_to_the_server_whose_limit_counts_for_both(tmp_path):
    with socket.create_server((LOCAL, SERVER)) as server, serving(tmp_path, ALSO, WEB) as shown:
        server.settimeout(LIMIT_S)
        until(lambda: shown()["web", "one"]["status"].startswith("UP"))
        assert {name for name, part in shown() if part == "FRONTEND"} == {"web", "also"}
        assert {name for name, part in shown() if part in ("BACKEND", "one")} == {"web", "web-fallback"}
        with connected(8002, b"by the second port") as _first, brought(server) as found:
            assert found == b"by the second port"
            with connected(8001, b"waits"):
                until(lambda: shown()["web", "BACKEND"]["qcur"] == "1")


@contextlib.contextmanager
def connected(port, text):
    with socket.create_connection((LOCAL, port), LIMIT_S) as client:
        client.sendall(text)
        yield client


@contextlib.contextmanager
def brought(server):
    """What a connection brings that is none of the checks, which bring nothing. The connection stays."""
    found = b""
    while not found:
        connection, _address = server.accept()
        with contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            connection.settimeout(LIMIT_S)
            with contextlib.suppress(ConnectionResetError):
                found = connection.recv(64)
            if found:
                stack = stack.pop_all()
    with stack:
        yield found
