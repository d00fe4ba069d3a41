# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy as it is deployed, on a real link: one file, started by root, at an address that moves.

The first member of the link runs the proxy, and the second one the servers.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive
from support.netns.links import VIP, VIP6, temporary_link
from support.netns.namespaces import inside
from support.paths import AGENT
from support.proxy.masters import AS_NOBODY, Echo, Load, Running, ask, get
from support.proxy.proxies import LIMIT
from support.waiting import LIMIT_S, until

SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/bin")  # every user may run it
SERVERS = "192.0.2.2"
PORT, OTHER_PORT, MONITOR = 443, 80, 444  # below 1024
QUICK = {"interval": 0.1, "rise": 2, "fall": 2}


@pytest.fixture(scope="module")
def the_link():
    if not SYSTEM_PYTHON:
        pytest.skip("there is no Python that other users may run")
    with temporary_link() as made:
        yield made


class Host:
    """The first member, with the archive, and the servers."""

    def __init__(self, link, folder):
        self.link, self.folder = link, folder
        self.archive = folder / "agent.pyz"
        self.install()
        self.clients = functools.partial(inside, link.client.namespace)
        self._stack = contextlib.ExitStack()
        with inside(link.lb2.namespace):
            self.echoes = {name: self._stack.enter_context(Echo(name, address=SERVERS)) for name in "ab"}

    def install(self, version=None):
        """Replace the archive atomically, as a package manager does: running processes keep the old file."""
        modules = archive.sources(str(AGENT))
        modules["runtime/watchdog.py"] += f"MAX_SILENCE = {LIMIT_S} * MILLION\n".encode()  # see support.agent.patient
        if version:
            modules["__init__.py"] += f'VERSION = "{version}"\n'.encode()
        new = self.archive.with_suffix(".new")
        new.write_bytes(archive.pack(modules))
        new.chmod(0o755)
        new.rename(self.archive)

    def configuration(self, *services, **whole):
        monitor = {"name": "all", "bind": "192.0.2.1", "port": MONITOR, "path": "/ready", "at_least": {"web": 2}}
        return {"services": services or [self.service()], "monitors": [monitor], **whole}

    def service(self, name="web", port=PORT, **changes):
        servers = [{"name": each, "address": SERVERS, "port": echo.port} for each, echo in self.echoes.items()]
        return {"name": name, "bind": [VIP, VIP6], "port": port, "servers": servers, "check": QUICK, **changes}

    def start(self, *services, **whole):
        """Start a proxy; return when all servers have been checked."""
        program = ["ip", "netns", "exec", self.link.lb1.namespace, *AS_NOBODY, SYSTEM_PYTHON, self.archive]
        proxy = self._stack.enter_context(Running(self.folder, self.configuration(*services, **whole), program=program))
        until(lambda: all(server["check"]["up"] for server in proxy.service()["servers"]))
        return proxy

    def load(self):
        return Load(PORT, VIP, self.clients)

    def ask(self, port=PORT, address=VIP):
        with self.clients():
            return ask(port, address=address)

    def try_ask(self):
        """Return the answer or the error. The workers get a change later than the status shows it."""
        try:
            return self.ask()
        except OSError as error:
            return error

    def get(self, path="/ready"):
        with self.clients():
            return get(MONITOR, path, "192.0.2.1")

    def close(self):
        self._stack.close()


@pytest.fixture
def host(the_link):
    folder = Path(tempfile.mkdtemp())  # unlike pytest's folder, one that other users can enter
    folder.chmod(0o755)
    shutil.chown(folder, "nobody")
    host = Host(the_link, folder)
    try:
        yield host
    finally:
        host.close()
        shutil.rmtree(folder)


@pytest.fixture
def holder(host):
    """The host, which holds the VIPs."""
    host.link.lb1.take_over(VIP, VIP6)
    try:
        yield host
    finally:
        host.link.lb1.release(VIP, VIP6)


ANSWERS = (b"a:hello", b"b:hello")


def test_an_address_that_is_added_later_is_served_at_once_and_one_that_is_removed_costs_nothing(host):
    proxy = host.start()
    for _each in range(2):
        host.link.lb1.take_over(VIP, VIP6)
        try:
            assert host.ask() in ANSWERS and host.ask(address=VIP6) in ANSWERS
        finally:
            host.link.lb1.release(VIP, VIP6)
    assert (proxy.report()["limits"], proxy.generation()) == (limits_of_files(proxy), 1)


def limits_of_files(proxy):
    """Return the reported limits of open files, which depend on the machine."""
    return [limit for limit in proxy.report()["limits"] if "open files" in limit]


def test_no_process_runs_as_root_and_ports_below_1024_are_served(holder):
    proxy = holder.start()
    proxy.reload(holder.configuration(holder.service(), holder.service("plain", OTHER_PORT)))
    assert proxy.report()["config_fault"] is None
    assert holder.ask(OTHER_PORT) in ANSWERS
    until(lambda: len(children(proxy.process.pid)) == 2)  # the checks and a worker
    pids = [proxy.process.pid, *children(proxy.process.pid)]
    assert {os.stat(f"/proc/{pid}").st_uid for pid in pids} == {65534}


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_reloads_under_load_lose_no_request(holder):
    proxy = holder.start()
    with holder.load() as load:
        for number in range(6):
            more = [holder.service("plain", OTHER_PORT)] if number % 2 else []
            proxy.reload(holder.configuration(holder.service(), *more, workers=1 + number % 2))
            assert proxy.report()["config_fault"] is None
            load.more()
        proxy.reload(holder.configuration(holder.service(port=0)))
        assert "port is 0" in proxy.report()["config_fault"]
        load.more()
    assert load.faults == []
    until(lambda: proxy.service()["sessions"] >= load.answers)


def test_a_new_version_takes_over_under_load_and_no_request_is_lost(holder):
    proxy = holder.start()
    pid = proxy.process.pid
    with holder.load() as load:
        for version in ("0.1.1", "0.1.2", "0.1.3"):
            holder.install(version)
            load.more()
            proxy.process.send_signal(signal.SIGUSR2)
            until(lambda version=version: proxy.report()["version"] == version)
            load.more()
    assert load.faults == []
    assert proxy.report()["pid"] == pid and "Traceback" not in proxy.log
    until(lambda: proxy.service()["sessions"] >= load.answers)


def test_a_broken_version_is_refused_and_the_running_one_does_not_need_its_file_any_more(holder):
    """It imports everything at its start, because Python would search the new file at the offsets of the old one."""
    proxy = holder.start(page={"port": 445})
    holder.archive.write_bytes(b"#!/usr/bin/env python3\nthis is no archive\n" * 30_000)
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: proxy.lines("The new version is refused, and the old one keeps running"))
    checks, worker = children(proxy.process.pid)
    for pid in (checks, worker):
        os.kill(int(pid), signal.SIGKILL)
    until(lambda: len({*children(proxy.process.pid)} - {checks, worker}) == 2)
    # This is its first https check. The servers do not speak TLS.
    secure = holder.service(check={**QUICK, "type": "https", "path": "/"})
    proxy.reload(holder.configuration(secure, page={"port": 445}))
    until(lambda: proxy.service()["usable"] == 0)
    assert proxy.server("web/a")["check"]["detail"].startswith("TLS: ")
    with inside(holder.link.lb1.namespace):
        assert all(get(445, path)[0] == 200 for path in ("/", "/metrics"))
    assert proxy.order("web/b", "drain") == "web/b is down."
    proxy.reload(holder.configuration())
    until(lambda: proxy.server("web/a")["state"] == "up")
    until(lambda: holder.try_ask() == b"a:hello")


def test_a_monitor_follows_the_servers(holder):
    proxy = holder.start()
    assert holder.get() == (200, "all: good\n")
    port = holder.echoes["a"].port
    holder.echoes["a"].close()
    until(lambda: holder.get()[0] == 503)
    assert holder.get()[1] == "all: web has 1 of 2 servers\n"
    assert {holder.ask() for _each in range(4)} == {b"b:hello"}
    with inside(holder.link.lb2.namespace):
        again = Echo("a", port, SERVERS)
    with again:
        until(lambda: holder.get()[0] == 200)
        proxy.order("web/b", "maint")
        assert holder.get()[0] == 503
        until(lambda: {holder.ask() for _each in range(4)} == {b"a:hello"})


def test_servers_that_are_unreachable_are_down_until_they_are_reachable_again(holder):
    proxy = holder.start(holder.service(check={**QUICK, "timeout": 0.2}))
    servers = holder.link.lb2
    servers.ip("link", "set", "eth0", "down")
    try:
        until(lambda: proxy.service()["state"] == "down")
        assert proxy.lines("web has no server that is up: connections to it are refused.")
        until(lambda: isinstance(holder.try_ask(), ConnectionResetError))
    finally:
        servers.ip("link", "set", "eth0", "up")
    until(lambda: holder.get()[0] == 200)
    until(lambda: holder.try_ask() in ANSWERS)


def test_a_proxy_that_stops_lets_sessions_finish_and_ends_with_the_last_one(holder):
    """Or at its limit: see the unit tests of its end."""
    proxy = holder.start()
    with holder.clients():
        brief, lasting = (socket.create_connection((VIP, PORT), LIMIT) for _each in range(2))
    with brief, lasting:
        for client in (brief, lasting):
            client.sendall(b"1")
            assert client.recv(10)[1:] == b":1"
        proxy.process.send_signal(signal.SIGTERM)
        until(lambda: holder.get() == (503, "all: the proxy is stopping\n"))
        until(lambda: isinstance(holder.try_ask(), ConnectionRefusedError))
        for client in (brief, lasting):
            assert proxy.process.poll() is None
            client.sendall(b"2")
            assert client.recv(10)[1:] == b":2"
            client.close()
        assert proxy.process.wait(LIMIT) == 0
