# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy as a host runs it: its start, reloads, new versions, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from support.paths import MODULE_UTILS
from support.proxy.masters import Echo, Load, Running, ask, free_ports, get
from support.proxy.proxies import LIMIT, LOCAL
from support.waiting import until

QUICK = {"interval": 0.1, "rise": 2, "fall": 2}


@pytest.fixture
def echoes():
    """Two servers, called a and b."""
    with Echo("a") as a, Echo("b") as b:
        yield {"a": a, "b": b}


@pytest.fixture
def port():
    return free_ports(1)[0]


def service(port, echoes, **changes):
    servers = [{"name": name, "address": LOCAL, "port": echo.port} for name, echo in echoes.items()]
    return {"name": "web", "bind": LOCAL, "port": port, "servers": servers, "check": QUICK, **changes}


@pytest.fixture
def start(tmp_path):
    """Start a proxy with some services and other things; it is stopped at the end."""
    with contextlib.ExitStack() as stack:

        def begin(*services, environ=None, **whole):
            return stack.enter_context(Running(tmp_path, {"services": list(services), **whole}, environ=environ))

        yield begin


def test_a_reload_under_load_refuses_and_cuts_no_connection(start, echoes, port):
    proxy = start(service(port, echoes))
    with Load(port) as load:
        for number in range(20):
            balance = ("leastconn", "roundrobin")[number % 2]
            proxy.reload({"services": [service(port, echoes, balance=balance)], "workers": 1 + number % 2})
            load.more()
        assert load.faults == []
        # Only the client that stays keeps its old worker alive.
        until(lambda: len(proxy.report()["workers"]) <= 3)
    until(lambda: len(proxy.report()["workers"]) == 2)
    assert proxy.report()["workers"][-1]["generation"] == 21
    until(lambda: proxy.service()["sessions"] >= load.answers and proxy.service()["current"] == 0)


def test_a_new_version_of_itself_takes_over_under_load(start, echoes, port):
    (monitored,) = free_ports(1)
    monitors = [{"name": "alive", "bind": LOCAL, "port": monitored}]
    proxy = start(service(port, echoes), monitors=monitors)
    proxy.order("web/a", "drain")
    since = proxy.report()["since"]
    with Load(port) as load:
        for number in range(5):
            proxy.process.send_signal(signal.SIGUSR2)
            until(lambda wanted=3 + 2 * number: proxy.generation() == wanted)
            assert get(monitored)[0] == 200
            load.more()
        assert load.faults == []
    # What was counted under the old programs still counts.
    until(lambda: proxy.service()["sessions"] >= load.answers)
    report = proxy.report()
    assert (report["since"], report["pid"]) == (since, proxy.process.pid)
    assert len(proxy.lines(f"onprem.lb 0.1.0 serves by {proxy.path}.")) == 6
    assert proxy.server("web/a")["order"] == "drain"
    # Of every program there is one checks process, and those before are not left as zombies.
    until(lambda: len(_children(proxy.process.pid)) == 2)


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def test_a_second_sigusr2_during_an_upgrade_is_ignored(start, echoes, port):
    proxy = start(service(port, echoes))
    pid = proxy.process.pid
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: len(_children(pid)) == 3)  # the checks, the worker and the new version's trial
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: proxy.generation() == 3)
    until(lambda: len(_children(pid)) == 2)
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: proxy.generation() == 5)


def test_a_new_version_that_does_not_take_the_configuration_is_refused(start, echoes, port):
    proxy = start(service(port, echoes))
    proxy.write({"services": [service(port, {})]})
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: proxy.lines("The new version is refused, and the old one goes on"))
    assert "name at least one server" in proxy.log
    assert ask(port) in (b"a:hello", b"b:hello") and proxy.generation() == 1


def test_a_faulty_file_changes_nothing_and_is_logged(start, echoes, port):
    proxy = start(service(port, echoes))
    proxy.reload({"services": [service(port, echoes, prot=1)]})
    assert "has the unknown key 'prot': did you mean 'port'?" in proxy.report()["config_fault"]
    assert ask(port) in (b"a:hello", b"b:hello") and proxy.generation() == 1
    proxy.reload({"services": [service(port, echoes)]})
    assert proxy.report()["config_fault"] is None and proxy.generation() == 2


def test_a_fifo_instead_of_a_file_is_refused_at_once(start, echoes, port):
    proxy = start(service(port, echoes))
    proxy.path.unlink()
    os.mkfifo(proxy.path)
    proxy.reload()
    fault = f"{proxy.path} is no regular file: name one that contains the configuration."
    assert proxy.report()["config_fault"] == fault
    assert ask(port) in (b"a:hello", b"b:hello")


def test_a_reload_that_wants_a_place_in_use_changes_nothing_and_leaves_nothing_open(start, echoes, port):
    other, free = free_ports(2)
    proxy = start(service(port, echoes))
    with socket.create_server((LOCAL, other)):
        both = [service(port, echoes), service(free, echoes, name="two"), service(other, echoes, name="three")]
        proxy.reload({"services": both})
        assert f"service three: {LOCAL} port {other} is in use by another program" in proxy.report()["config_fault"]
        assert ask(port) in (b"a:hello", b"b:hello")
        with pytest.raises(ConnectionRefusedError):
            ask(free)
    proxy.reload()
    assert ask(other) in (b"a:hello", b"b:hello") and ask(free)


def test_a_reload_that_wants_a_status_socket_which_cannot_be_had_leaves_nothing_open(start, echoes, port, tmp_path):
    (free,) = free_ports(1)
    proxy = start(service(port, echoes))
    (tmp_path / "file").write_text("precious")
    both = [service(port, echoes), service(free, echoes, name="two")]
    proxy.reload({"services": both, "status_socket": str(tmp_path / "file")})
    assert "is no socket, but something else" in proxy.report()["config_fault"]
    assert _refused(free) and proxy.generation() == 1
    other = str(tmp_path / "run" / "other.sock")
    proxy.reload({"services": both, "status_socket": other})
    assert not os.path.exists(proxy.socket)
    proxy.socket = other
    assert proxy.generation() == 2 and ask(free)


def test_a_service_that_is_gone_is_closed_and_a_new_one_is_there(start, echoes, port):
    (other,) = free_ports(1)
    proxy = start(service(port, echoes))
    proxy.reload({"services": [service(other, echoes, name="other")]})
    assert ask(other) in (b"a:hello", b"b:hello")
    until(lambda: _refused(port))


def _refused(port, address=LOCAL):
    try:
        socket.create_connection((address, port), LIMIT).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # this one came between the last accept() and close()
    return False


def test_under_load_a_service_moves_from_every_address_to_one(start, echoes, port):
    proxy = start(service(port, echoes, bind="*"))
    with Load(port) as load:
        for bind in (LOCAL, "*", [LOCAL, "127.0.0.2"], "*"):
            proxy.reload({"services": [service(port, echoes, bind=bind)]})
            assert proxy.report()["config_fault"] is None
            load.more()
        # A connection that arrives at the very moment when a socket is closed is reset.
        assert len(load.faults) <= 2, load.faults
    assert ask(port, address="127.0.0.3")


def test_a_place_in_use_is_one_sentence_and_the_exit_code_is_1(tmp_path, echoes, port):
    with socket.create_server((LOCAL, port)):
        proxy = Running(tmp_path, {"services": [service(port, echoes)]}, wait=False)
        assert proxy.process.wait(LIMIT) == 1
    assert proxy.log == (
        f"service web: {LOCAL} port {port} is in use by another program: "
        "stop that one, or choose another address or port.\n"
    )


def test_an_address_that_is_not_on_this_host_yet_is_listened_on(start, echoes, port):
    start(service(port, echoes, bind=["192.0.2.77", "2001:db8::77", LOCAL]))
    assert ask(port) in (b"a:hello", b"b:hello")
    with open("/proc/net/tcp", encoding="ascii") as file:
        assert f" 4D0200C0:{port:04X} " in file.read()


def test_a_worker_that_dies_is_replaced_at_once(start, echoes, port):
    proxy = start(service(port, echoes))
    (worker,) = proxy.report()["workers"]
    os.kill(worker["pid"], signal.SIGKILL)
    until(lambda: proxy.lines(f"Worker {worker['pid']} has ended (signal 9) and is replaced"))
    until(lambda: [each["pid"] for each in proxy.report()["workers"]] not in ([], [worker["pid"]]))
    assert ask(port) in (b"a:hello", b"b:hello")


def test_a_worker_that_hangs_is_replaced(start, echoes, port):
    (monitored,) = free_ports(1)
    proxy = start(service(port, echoes), monitors=[{"name": "alive", "bind": LOCAL, "port": monitored}])
    (hung,) = [each["pid"] for each in proxy.report()["workers"]]
    os.kill(hung, signal.SIGSTOP)
    assert ask(port) in (b"a:hello", b"b:hello")
    assert proxy.lines(f"Worker {hung} has not reported for 3 s and is replaced; its sessions are lost.")
    until(lambda: [each["state"] for each in proxy.report()["workers"]] == ["serving"])
    assert get(monitored)[0] == 200 and not os.path.exists(f"/proc/{hung}")


def test_a_pause_of_all_processes_together_costs_no_worker(start, echoes, port):
    """As when the host is suspended, or a virtual machine migrates."""
    proxy = start(service(port, echoes))
    everything = [proxy.process.pid, *map(int, _children(proxy.process.pid))]
    for signal_number, pause in ((signal.SIGSTOP, 5), (signal.SIGCONT, 4)):
        for pid in everything:
            os.kill(pid, signal_number)
        time.sleep(pause)
    assert [proxy.process.pid, *map(int, _children(proxy.process.pid))] == everything
    assert not proxy.lines("has not reported") and ask(port)


def test_a_proxy_whose_worker_cannot_serve_is_not_ready_and_ends_with_the_reason(tmp_path, echoes, port):
    """Without its capabilities root cannot read a library that belongs to another user, for instance."""
    (tmp_path / "sitecustomize.py").write_text(UNFIT)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "PYTHONPATH": str(tmp_path)}
        proxy = Running(tmp_path, {"services": [service(port, echoes)]}, wait=False, environ=environ)
        assert proxy.process.wait(LIMIT) == 1
        with pytest.raises(BlockingIOError):
            systemd.recv(4096, socket.MSG_DONTWAIT)
    assert proxy.log.splitlines()[-1] == "no worker can serve: permission denied."
    assert _refused(port)


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
        until(lambda: _refused(port))
        assert get(monitored) == (503, "alive: the proxy is stopping\n")
        assert proxy.report()["state"] == "draining"
        proxy.process.send_signal(signal.SIGHUP)
        proxy.process.send_signal(signal.SIGUSR2)
        assert [proxy.generation() for _each in range(3)] == [1] * 3 and _refused(port)
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
        until(lambda: _refused(port))
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


def test_a_check_that_is_asking_while_a_new_version_takes_over_is_answered(start, echoes, port):
    (monitored,) = free_ports(1)
    proxy = start(service(port, echoes), monitors=[{"name": "alive", "bind": LOCAL, "port": monitored}])
    over, found = threading.Event(), []

    def check():
        while not over.is_set():
            with socket.create_connection((LOCAL, monitored), LIMIT) as client:
                client.sendall(b"GET / HTTP/1.1\r\n")
                over.wait(0.02)  # half of the request is there when the old one goes
                client.sendall(b"\r\n")
                found.append(client.recv(1000)[:12])

    threads = [threading.Thread(target=check, daemon=True) for _each in range(4)]
    for thread in threads:
        thread.start()
    for wanted in (3, 5, 7):
        proxy.process.send_signal(signal.SIGUSR2)
        until(lambda wanted=wanted: proxy.generation() == wanted)
    over.set()
    for thread in threads:
        thread.join(LIMIT)
    assert set(found) == {b"HTTP/1.1 200"}
