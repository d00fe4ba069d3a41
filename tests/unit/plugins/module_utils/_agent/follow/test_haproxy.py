# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real HAProxy gets the servers that it should have, without a reload."""

from __future__ import annotations

import errno
import hashlib
import socket
import stat
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import files
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.haproxy import File, Process
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.runtime_api import Runtime
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Haproxy, Server, Target
from support.ports import free_ports
from support.proxy.masters import Echo, Load, ask
from support.proxy.proxies import LIMIT, LOCAL
from support.waiting import until

SECOND = 1_000_000
TEMPLATE = """\
global
    stats socket {folder}/haproxy.sock mode 600 level admin
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend web
    bind 127.0.0.1:{port}
    default_backend web
backend web
    balance {balance}
    default-server check inter {interval} fall 2 rise 1
    server a 127.0.0.1:{backend} weight 1
"""


class Balancer:
    """Both: the file, then the process, whatever is wrong with the file."""

    def __init__(self, about, drain_for, clock):
        self.about, self.file = about, File(about)
        self.process = Process(about, drain_for, clock, self.file)

    def apply(self, wanted):
        self.file.apply(wanted)
        return self.process.apply(wanted)


class Clock:
    now = 0

    def __call__(self):
        return self.now


class Case:
    """An HAProxy with a file, three servers on one port, and what follows."""

    def __init__(self, folder, balance="roundrobin", reload=(), interval="50ms"):
        self.folder, self.config = folder, folder / "haproxy.cfg"
        self.port, self.backend = free_ports(2)
        self.echoes = [Echo(name, self.backend, f"127.0.0.{at}") for at, name in enumerate("aba", 1)]
        self._write(balance=balance, interval=interval)
        self.config.chmod(0o640)
        self.clock = Clock()
        self.loaded = folder / "haproxy.loaded"
        about = Haproxy(
            (Target("web"),), str(self.config), str(folder / "haproxy.sock"), reload=reload, loaded=str(self.loaded)
        )
        self.balancer = Balancer(about, 60 * SECOND, self.clock)
        self.runtime = Runtime(about.socket)
        self.process = None
        self.start()

    def _write(self, **settings):
        self.config.write_text(TEMPLATE.format(folder=self.folder, port=self.port, backend=self.backend, **settings))

    def start(self):
        self.process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", str(self.config)])
        until(lambda: self.answers() or self.process.poll() is not None)

    def stop(self):
        self.process.kill()
        self.process.wait(LIMIT)

    def answers(self):
        try:
            return ask(self.port)
        except OSError:
            return None

    def close(self):
        self.stop()
        for echo in self.echoes:
            echo.close()

    def present(self):
        return {each.name: each.address for each in self.runtime.servers("web")}

    def up(self, name):
        rows = self.runtime.ask("show stat -1 4 -1").splitlines()
        return any(row.split(",")[1:2] == [name] and ",UP," in row for row in rows)


def test_each_node_is_a_server_of_the_fallback_as_well(case):
    case.stop()
    second = case.config.read_text().rpartition("backend web\n")[2]
    with case.config.open("a") as file:
        file.write(f"backend web-fallback\n{second}    fullconn 9\n")
    case.start()
    about = case.balancer.about
    follower = Balancer(about._replace(backends=(Target("web", fallback="web-fallback"),)), 0, case.clock)
    follower.apply([A, B])
    for backend in ("web", "web-fallback"):
        assert {each.name for each in case.runtime.servers(backend)} == {"a", "b"}, backend
    follower.apply([B])
    until(lambda: not follower.apply([B]).again)
    assert [each.name for backend in ("web", "web-fallback") for each in case.runtime.servers(backend)] == ["b", "b"]
    assert case.config.read_text().count("server b ") == 2 and "server a " not in case.config.read_text()


A, B, C = (Server(name, f"127.0.0.{at}") for at, name in enumerate("abc", 1))


@pytest.fixture
def case(tmp_path):
    found = Case(tmp_path)
    yield found
    found.close()


def recorded(case):
    """Whether the file is the one that counts as loaded."""
    return case.loaded.read_text().partition(" ")[0] == hashlib.sha256(case.config.read_bytes()).hexdigest()


def test_a_server_that_joins_is_in_force_for_a_run_that_looks_at_the_file(case):
    case.loaded.write_text(f"{hashlib.sha256(case.config.read_bytes()).hexdigest()}  {case.config}\n12.34 5.67\n")
    case.stop()
    with pytest.raises(Refused):
        case.balancer.apply([A, B])
    assert not recorded(case)
    case.start()
    case.balancer.apply([A, B, C])
    assert recorded(case)


def test_a_server_that_joins_serves_without_a_reload_and_after_a_restart(case):
    done = case.balancer.apply([A, B])
    assert done.lines == ["web: b at 127.0.0.2 is added: 2 servers."] and not done.again
    assert case.present() == {"a": "127.0.0.1", "b": "127.0.0.2"}
    until(lambda: case.up("b"))
    until(lambda: ask(case.port) == b"b:hello")
    case.stop()
    case.start()
    assert case.present() == {"a": "127.0.0.1", "b": "127.0.0.2"}
    assert case.balancer.apply([A, B]).lines == []


def test_the_file_keeps_its_mode_and_nothing_is_left_beside_it(case):
    case.balancer.apply([A, B])
    assert stat.S_IMODE(case.config.stat().st_mode) == 0o640
    assert sorted(path.name for path in case.folder.iterdir()) == ["haproxy.cfg", "haproxy.sock"]


def test_a_server_that_leaves_is_drained_first(case):
    case.balancer.apply([A, B])
    until(lambda: case.up("b"))
    with_b = session_with(case, b"b")
    done = case.balancer.apply([A])
    assert done.lines == ["web: b at 127.0.0.2 leaves: 1 server."] and done.again
    assert "b" in case.present() and case.config.read_text().count("\n    server ") == 1
    assert {ask(case.port) for _time in range(6)} == {b"a:hello"}
    with_b.sendall(b"still")
    assert with_b.recv(100) == b"b:still"
    assert case.balancer.apply([A]) == ([], True)
    with_b.close()
    until(lambda: not case.balancer.apply([A]).again)
    assert case.present() == {"a": "127.0.0.1"}


def session_with(case, name):
    """Return a session that a server has."""
    for _time in range(20):
        client = socket.create_connection((LOCAL, case.port), LIMIT)
        client.sendall(b"x")
        if client.recv(100).startswith(name):
            return client
        client.close()
    raise AssertionError(f"no session with {name}")


def test_sessions_that_last_too_long_are_ended(case):
    case.balancer.apply([A, B])
    until(lambda: case.up("b"))
    with session_with(case, b"b") as client:
        assert case.balancer.apply([A]).again
        case.clock.now = 61 * SECOND
        until(lambda: not case.balancer.apply([A]).again)
        assert client.recv(100) == b""
    assert case.present() == {"a": "127.0.0.1"}


def test_a_server_that_is_wanted_again_while_it_drains_stays(case):
    case.balancer.apply([A, B])
    until(lambda: case.up("b"))
    with session_with(case, b"b"):
        case.balancer.apply([A])
        assert case.balancer.apply([A, B]) == (["web: b stays after all."], False)
    until(lambda: ask(case.port) == b"b:hello")


def test_a_server_at_another_address_stays_the_same_server(case):
    assert case.balancer.apply([A._replace(address=B.address)]).lines == ["web: a is at 127.0.0.2 now: 1 server."]
    assert case.present() == {"a": "127.0.0.2"}
    assert f"server a 127.0.0.2:{case.backend} weight 1" in case.config.read_text()
    until(lambda: case.answers() == b"b:hello")


def test_no_connection_fails_while_servers_join_and_leave(case):
    case.balancer.apply([A, B, C])
    until(lambda: case.up("b") and case.up("c"))
    with Load(case.port) as load:
        for wanted in ([A, B], [A, B, C], [B, C], [A, B, C]):
            case.balancer.apply(wanted)
            load.more()
            case.balancer.apply(wanted)
        load.more()
    assert load.faults == []


def test_an_empty_list_changes_nothing(case):
    with pytest.raises(Refused):
        case.balancer.apply([])
    assert case.present() == {"a": "127.0.0.1"}


def test_a_file_that_haproxy_refuses_never_reaches_its_path(case):
    before = case.config.read_text() + "backend x\n    nonsense\n"
    case.config.write_text(before)
    with pytest.raises(Refused) as refused:
        case.balancer.apply([A, B])
    assert f"{case.config} stays as it is, because the new one is refused: " in str(refused.value)
    assert "nonsense" in str(refused.value)
    assert case.config.read_text() == before
    case.balancer.process.apply([A, B])  # the mistake is not in what it gets
    assert case.present() == {"a": "127.0.0.1", "b": "127.0.0.2"}


def test_a_full_disk_keeps_no_server_from_the_process_and_none_that_leaves(case, monkeypatch):
    before = case.config.read_text()

    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files.tempfile, "mkstemp", full)
        with pytest.raises(Refused, match="cannot be written: no space left on device"):
            case.balancer.file.apply([B])
        until(lambda: not case.balancer.process.apply([B]).again)
    assert set(case.present().values()) == {"127.0.0.2"} and case.config.read_text() == before
    case.balancer.apply([B])
    assert f"127.0.0.2:{case.backend}" in case.config.read_text()


def test_a_haproxy_that_is_away_gets_its_servers_when_it_is_back(case):
    case.stop()
    with pytest.raises(Refused, match="HAProxy cannot be reached at .*: connection refused: is it running"):
        case.balancer.apply([A, B])
    case.start()
    assert set(case.present()) == {"a", "b"}


def test_a_haproxy_that_was_restarted_with_an_older_file_is_corrected(case):
    old = case.config.read_text()
    case.balancer.apply([A, B])
    case.stop()
    case.config.write_text(old)
    case.start()
    assert case.balancer.apply([A, B]).lines == ["web: b at 127.0.0.2 is added: 2 servers."]
    assert set(case.present()) == {"a", "b"}


def test_an_algorithm_that_takes_no_servers_at_runtime_needs_a_reload(tmp_path):
    told = tmp_path / "told"
    case = Case(tmp_path, balance="source", reload=("/usr/bin/touch", str(told)))
    try:
        assert case.balancer.apply([A, B]).lines == ["web: b at 127.0.0.2 is added: 2 servers."]
        assert told.exists() and f"server b 127.0.0.2:{case.backend}" in case.config.read_text()
    finally:
        case.close()


def test_without_a_reload_that_is_a_sentence(tmp_path):
    case = Case(tmp_path, balance="source")
    try:
        with pytest.raises(Refused) as refused:
            case.balancer.apply([A, B])
        assert "HAProxy does not add web/b while it runs: Backend must use a dynamic load balancing" in str(
            refused.value
        )
        assert "Set haproxy.reload to what reloads it." in str(refused.value)
    finally:
        case.close()


def test_it_says_which_servers_answer_and_which_the_file_has(case):
    gone = Server("gone", "127.0.0.9")
    case.balancer.apply([A, B, gone])
    assert case.balancer.file.written() == [A, B, gone]
    wanted = {"127.0.0.1": True, "127.0.0.2": True, "127.0.0.9": False}
    until(lambda: dict(case.balancer.process.answering()) == wanted)
    case.config.write_text(case.config.read_text().replace("default-server check", "default-server"))
    case.stop()
    case.start()
    assert case.balancer.process.answering() == [], "none is checked"


def test_many_servers_that_join_at_once_are_all_added(tmp_path):
    many = [A, *(Server(f"n{at}", f"127.1.{at // 250}.{at % 250 + 1}") for at in range(500))]
    case = Case(tmp_path, interval="60s")
    try:
        assert len(case.balancer.apply(many).lines) == 500
        assert len(case.present()) == 501
        assert case.balancer.apply(many).lines == []
    finally:
        case.close()
