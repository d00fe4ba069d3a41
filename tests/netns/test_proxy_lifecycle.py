# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy as it is deployed: one file, started by root, on a link with clients and servers, at an address that moves.

The first member of the link has the proxy, the second one the servers.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive
from support.netns.links import VIP, VIP6, temporary_link
from support.netns.namespaces import inside
from support.paths import AGENT
from support.proxy.masters import AS_NOBODY, Echo, Load, Running, ask, get
from support.proxy.proxies import LIMIT
from support.waiting import until

SYSTEMS = shutil.which("python3", path="/usr/bin:/bin")  # one that everybody may run
SERVERS = "192.0.2.2"
PORT, OTHER_PORT, MONITOR = 443, 80, 444  # for root, all of them
QUICK = {"interval": 0.1, "rise": 2, "fall": 2}


@pytest.fixture(scope="module")
def the_link():
    if not SYSTEMS:
        pytest.skip("there is no Python that another user may run")
    with temporary_link() as made:
        yield made


class Host:
    """The first member, with what is needed for a proxy."""

    def __init__(self, link, folder):
        self.link, self.folder = link, folder
        self.archive = folder / "agent.pyz"
        self.install()
        self.clients = functools.partial(inside, link.client.namespace)
        self._stack = contextlib.ExitStack()
        with inside(link.lb2.namespace):
            self.echoes = {name: self._stack.enter_context(Echo(name, address=SERVERS)) for name in "ab"}

    def install(self, version=None):
        """Put the archive in its place, as a package manager does: the old one is still what it was, elsewhere."""
        modules = archive.sources(str(AGENT))
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
        program = ["ip", "netns", "exec", self.link.lb1.namespace, *AS_NOBODY, SYSTEMS, self.archive]
        proxy = self._stack.enter_context(Running(self.folder, self.configuration(*services, **whole), program=program))
        until(lambda: all(server["check"]["up"] for server in proxy.service()["servers"]))
        return proxy

    def load(self):
        return Load(PORT, VIP, self.clients)

    def ask(self, port=PORT, address=VIP):
        with self.clients():
            return ask(port, address=address)

    def asked(self):
        """The same, or why not: the workers hear of a change a moment after everybody else."""
        try:
            return self.ask()
        except OSError as fault:
            return fault

    def get(self, path="/ready"):
        with self.clients():
            return get(MONITOR, path, "192.0.2.1")

    def close(self):
        self._stack.close()


@pytest.fixture
def host(the_link):
    folder = Path(tempfile.mkdtemp())  # every user may go there, other than to pytest's
    folder.chmod(0o755)
    shutil.chown(folder, "nobody")
    made = Host(the_link, folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder)


@pytest.fixture
def holder(host):
    """The same, and it holds the addresses."""
    host.link.lb1.take_over(VIP, VIP6)
    try:
        yield host
    finally:
        host.link.lb1.release(VIP, VIP6)


HEARD = (b"a:hello", b"b:hello")


def test_an_address_that_comes_later_is_served_at_once_and_one_that_goes_is_missed_by_nobody(host):
    proxy = host.start()
    for _each in range(2):
        host.link.lb1.take_over(VIP, VIP6)
        try:
            assert host.ask() in HEARD and host.ask(address=VIP6) in HEARD
        finally:
            host.link.lb1.release(VIP, VIP6)
    assert (proxy.report()["limits"], proxy.generation()) == (only_of_files(proxy), 1)


def only_of_files(proxy):
    """A machine may allow fewer open files than are liked."""
    return [limit for limit in proxy.report()["limits"] if "open files" in limit]


def test_nobody_of_it_is_root_and_ports_for_root_are_bound_all_the_same(holder):
    proxy = holder.start()
    proxy.reload(holder.configuration(holder.service(), holder.service("plain", OTHER_PORT)))
    assert proxy.report()["config_fault"] is None
    assert holder.ask(OTHER_PORT) in HEARD
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


def test_a_new_version_that_is_none_is_refused_and_the_old_one_needs_nothing_of_its_own_file(holder):
    """Whatever it does later was read at its start: Python would look for it in the wrong places of the new file."""
    proxy = holder.start(page={"port": 445})
    holder.archive.write_bytes(b"#!/usr/bin/env python3\nthis is no archive\n" * 30_000)
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: proxy.lines("The new version is refused, and the old one goes on"))
    checks, worker = children(proxy.process.pid)
    for pid in (checks, worker):
        os.kill(int(pid), signal.SIGKILL)
    until(lambda: len({*children(proxy.process.pid)} - {checks, worker}) == 2)
    # https is asked for the first time: the servers speak something else.
    secure = holder.service(check={**QUICK, "type": "https", "path": "/"})
    proxy.reload(holder.configuration(secure, page={"port": 445}))
    until(lambda: proxy.service()["usable"] == 0)
    assert proxy.server("web/a")["check"]["detail"].startswith("TLS: ")
    with inside(holder.link.lb1.namespace):
        assert all(get(445, path)[0] == 200 for path in ("/", "/metrics"))
    assert proxy.order("web/b", "drain") == "web/b is down."
    proxy.reload(holder.configuration())
    until(lambda: proxy.server("web/a")["state"] == "up")
    until(lambda: holder.asked() == b"a:hello")


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


def test_servers_whose_link_is_silent_are_down_and_come_back_with_it(holder):
    proxy = holder.start(holder.service(check={**QUICK, "timeout": 0.2}))
    ours = holder.link.lb2
    ours.ip("link", "set", "eth0", "down")
    try:
        until(lambda: proxy.service()["state"] == "down")
        assert proxy.lines("web has no server that is up: connections to it are refused.")
        until(lambda: isinstance(holder.asked(), ConnectionResetError))
    finally:
        ours.ip("link", "set", "eth0", "up")
    until(lambda: holder.get()[0] == 200)
    until(lambda: holder.asked() in HEARD)


def test_the_end_lets_sessions_finish_for_as_long_as_it_may(holder):
    proxy = holder.start(hard_stop_after=1)
    with holder.clients():
        brief, lasting = (socket.create_connection((VIP, PORT), LIMIT) for _each in range(2))
    with brief, lasting:
        for client in (brief, lasting):
            client.sendall(b"1")
            assert client.recv(10)[1:] == b":1"
        begun = time.monotonic()
        proxy.process.send_signal(signal.SIGTERM)
        until(lambda: holder.get() == (503, "all: the proxy is stopping\n"))
        until(lambda: isinstance(holder.asked(), ConnectionRefusedError))
        brief.sendall(b"2")
        assert brief.recv(10)[1:] == b":2"
        assert proxy.process.wait(LIMIT) == 0
        assert time.monotonic() - begun > 0.9
        with pytest.raises(ConnectionResetError):
            lasting.recv(10)
