# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy as a host runs it: processes that die or hang, and its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from support.agent.programs import PYTHONPATH, UNCHANGED
from support.paths import MODULE_UTILS
from support.ports import free_ports
from support.proxy.masters import Running, ask, get, is_refused, service
from support.proxy.proxies import LIMIT, LOCAL
from support.waiting import until


def test_a_worker_that_dies_is_replaced_at_once(start, echoes, port):
    proxy = start(service(port, echoes))
    (worker,) = proxy.report()["workers"]
    os.kill(worker["pid"], signal.SIGKILL)
    until(lambda: proxy.lines(f"Worker {worker['pid']} has ended (signal 9) and is replaced"))
    until(lambda: [each["pid"] for each in proxy.report()["workers"]] not in ([], [worker["pid"]]))
    assert ask(port) in (b"a:hello", b"b:hello")


def test_a_worker_that_hangs_is_replaced(start, echoes, port):
    (monitored,) = free_ports(1)
    monitors = [{"name": "alive", "bind": LOCAL, "port": monitored}]
    proxy = start(service(port, echoes), monitors=monitors, program=UNCHANGED)
    (hung,) = [each["pid"] for each in proxy.report()["workers"]]
    os.kill(hung, signal.SIGSTOP)
    assert ask(port) in (b"a:hello", b"b:hello")
    assert proxy.lines(f"Worker {hung} has not reported for 3 s and is replaced; its sessions are lost.")
    until(lambda: [each["state"] for each in proxy.report()["workers"]] == ["serving"])
    assert get(monitored)[0] == 200 and not os.path.exists(f"/proc/{hung}")


def test_a_proxy_whose_worker_cannot_serve_is_not_ready_and_ends_with_the_reason(tmp_path, echoes, port):
    """Without its capabilities root cannot read a library that belongs to another user, for instance."""
    (tmp_path / "sitecustomize.py").write_text(UNFIT)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "PYTHONPATH": f"{tmp_path}{os.pathsep}{PYTHONPATH}"}
        proxy = Running(tmp_path, {"services": [service(port, echoes)]}, wait=False, environ=environ)
        assert proxy.process.wait(LIMIT) == 1
        with pytest.raises(BlockingIOError):
            systemd.recv(4096, socket.MSG_DONTWAIT)
    assert proxy.log.splitlines()[-1] == "no worker can serve: permission denied."
    assert is_refused(port)


# The processes that the master forks cannot open an event loop.
UNFIT = """
import os, select
master, epoll = os.getpid(), select.epoll

def fail():
    if os.getpid() != master:
        raise PermissionError(13, "Permission denied")
    return epoll()

select.epoll = fail
"""


def test_a_new_worker_knows_which_servers_are_down(start, echoes, port):
    echoes["a"].close()
    proxy = start(service(port, echoes))
    until(lambda: proxy.server("web/a")["state"] == "down")
    # The first worker may be told a moment later, and tells of what it tried meanwhile with what it tells of this one.
    assert ask(port) == b"b:hello"
    until(lambda: proxy.service()["sessions"] == 1)
    errors = proxy.server("web/a")["connect_errors"]
    proxy.reload()
    assert [ask(port) for _each in range(4)] == [b"b:hello"] * 4
    until(lambda: proxy.service()["sessions"] == 5)
    assert proxy.server("web/a")["connect_errors"] == errors


def test_sigterm_lets_the_last_session_finish_and_accepts_no_other(start, echoes, port):
    (monitored,) = free_ports(1)
    proxy = start(service(port, echoes), monitors=[{"name": "alive", "bind": LOCAL, "port": monitored}])
    with socket.create_connection((LOCAL, port), LIMIT) as client:
        client.sendall(b"1")
        assert client.recv(10)[1:] == b":1"
        proxy.process.send_signal(signal.SIGTERM)
        until(lambda: is_refused(port))
        assert get(monitored) == (503, "alive: the proxy is stopping\n")
        assert proxy.report()["state"] == "draining"
        proxy.process.send_signal(signal.SIGHUP)
        proxy.process.send_signal(signal.SIGUSR2)
        assert [proxy.generation() for _each in range(3)] == [1] * 3 and is_refused(port)
        client.sendall(b"2")
        assert client.recv(10)[1:] == b":2"
    assert proxy.process.wait(LIMIT) == 0
    assert not os.path.exists(proxy.socket)


@pytest.mark.parametrize("limit", ["hard_stop_after", "stop_within"])
def test_the_end_waits_no_longer_than_it_is_allowed_to(start, echoes, port, limit):
    proxy = start(service(port, echoes), **{limit: 0.3})
    with socket.create_connection((LOCAL, port), LIMIT) as client:
        client.sendall(b"1")
        assert client.recv(10)
        begun = time.monotonic()
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait(LIMIT) == 0
        assert time.monotonic() - begun > 0.25
        with pytest.raises(ConnectionResetError):
            client.recv(10)


def test_a_second_sigterm_ends_it_at_once(start, echoes, port):
    proxy = start(service(port, echoes))
    with socket.create_connection((LOCAL, port), LIMIT) as client:
        client.sendall(b"1")
        assert client.recv(10)
        proxy.process.send_signal(signal.SIGTERM)
        until(lambda: proxy.lines("Stopping: "))
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait(LIMIT) == 0


def test_when_the_master_is_killed_its_sessions_go_on_and_another_one_may_begin(tmp_path, echoes, port):
    first = Running(tmp_path, {"services": [service(port, echoes)]})
    worker = first.report()["workers"][0]["pid"]
    with socket.create_connection((LOCAL, port), LIMIT) as client:
        client.sendall(b"1")
        assert client.recv(10)[1:] == b":1"
        first.process.kill()
        first.process.wait()
        until(lambda: is_refused(port))
        with Running(tmp_path, {"services": [service(port, echoes)]}):
            assert ask(port) in (b"a:hello", b"b:hello")
            client.sendall(b"2")
            assert client.recv(10)[1:] == b":2"
    until(lambda: not os.path.exists(f"/proc/{worker}"))


def test_systemd_is_notified_that_it_is_ready_and_alive(tmp_path, start, echoes, port):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(LIMIT)
        heard = []

        def hear(message):
            late = time.monotonic() + LIMIT
            while message not in heard:
                assert time.monotonic() < late, heard
                heard.extend(systemd.recv(4096).decode().splitlines())

        proxy = start(
            service(port, echoes), environ={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        )
        hear("READY=1")
        assert "STATUS=1 services, 1 workers" in heard
        hear("WATCHDOG=1")
        heard.clear()
        proxy.process.send_signal(signal.SIGUSR2)
        hear("READY=1")  # says the new program
        assert "RELOADING=1" in heard
        hear("WATCHDOG=1")
        proxy.process.send_signal(signal.SIGTERM)
        hear("STOPPING=1")


def test_a_second_proxy_at_the_same_socket_is_refused(start, tmp_path, echoes, port):
    proxy = start(service(port, echoes))
    command = [sys.executable, "-m", "_agent.cli", "proxy", "--config", str(tmp_path / "second.json")]
    (other,) = free_ports(1)
    (tmp_path / "second.json").write_text(proxy.path.read_text().replace(str(port), str(other)))
    ran = subprocess.run(command, cwd=MODULE_UTILS, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ran.returncode == 1
    assert ran.stderr == f"another agent answers at {proxy.socket}: stop it first, or name another status_socket.\n"
