# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy as a host runs it: its start, reloads and new versions."""

from __future__ import annotations

import os
import signal
import socket
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from support.agent.programs import children
from support.ports import free_ports
from support.proxy.masters import Load, Running, ask, get, is_refused, service
from support.proxy.proxies import LIMIT, LOCAL
from support.waiting import MOMENT_S, pause, until


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
    assert len(proxy.lines(f"onprem.lb {VERSION} serves by {proxy.path}.")) == 6
    assert proxy.server("web/a")["order"] == "drain"
    # Of every program there is one checks process, and those before are not left as zombies.
    until(lambda: len(children(proxy.process.pid)) == 2)


def test_a_second_sigusr2_during_an_upgrade_is_ignored(start, echoes, port):
    proxy = start(service(port, echoes))
    pid = proxy.process.pid
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: len(children(pid)) == 3)  # the checks, the worker and the new version's trial
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: proxy.generation() == 3)
    until(lambda: len(children(pid)) == 2)
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: proxy.generation() == 5)


def test_a_new_version_that_does_not_take_the_configuration_is_refused(start, echoes, port):
    proxy = start(service(port, echoes))
    proxy.write({"services": [service(port, {})]})
    proxy.process.send_signal(signal.SIGUSR2)
    until(lambda: proxy.lines("The new version is refused, and the old one keeps running"))
    assert "servers is []: a list of 1 or more is required." in proxy.log
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
    fault = f"{proxy.path} is not a regular file: name one that contains the configuration."
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
    assert "is not a socket, but something else" in proxy.report()["config_fault"]
    assert is_refused(free) and proxy.generation() == 1
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
    until(lambda: is_refused(port))


def test_under_load_a_service_moves_from_every_address_to_one(start, echoes, port):
    proxy = start(service(port, echoes, bind="*"))
    with Load(port) as load:
        for bind in (LOCAL, "*", [LOCAL, "127.0.0.2"], "*"):
            proxy.reload({"services": [service(port, echoes, bind=bind)]})
            assert proxy.report()["config_fault"] is None
            load.more()
        assert load.faults == []
    assert ask(port, address="127.0.0.3")
    proxy.reload({"services": [service(port, echoes, bind=["127.0.0.3"])]})
    until(lambda: is_refused(port))


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


def test_a_check_that_is_asking_while_a_new_version_takes_over_is_answered(start, echoes, port):
    (monitored,) = free_ports(1)
    proxy = start(service(port, echoes), monitors=[{"name": "alive", "bind": LOCAL, "port": monitored}])
    over, found = threading.Event(), []

    def check():
        while not over.is_set():
            with socket.create_connection((LOCAL, monitored), LIMIT) as client:
                client.sendall(b"GET / HTTP/1.1\r\n")
                pause(MOMENT_S)  # half of the request is there when the old one goes
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
