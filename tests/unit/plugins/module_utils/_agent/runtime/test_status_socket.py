# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status socket answers every client, and never waits for one."""

from __future__ import annotations

import os
import select
import socket
import stat
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import request_server, status_socket
from support.agent.clients import while_running
from support.agent.loops import Looks
from support.waiting import LIMIT_S


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "run" / "vrrp.sock")


@pytest.fixture
def serve(loop, path):
    """A server with a report, closed at the end."""
    servers = []

    def make(report=lambda: {"agent": "onprem.lb"}):
        servers.append(status_socket.StatusServer(loop, path, report))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def test_a_client_gets_the_report_of_that_moment(loop, path, serve):
    count = iter(range(9))
    serve(lambda: {"count": next(count)})
    assert [while_running(loop, lambda: status_socket.fetch(path)) for _count in range(3)] == [
        {"count": at} for at in range(3)
    ]


def test_a_report_larger_than_a_sockets_buffer_arrives_whole(loop, path, serve):
    report = {"text": "x" * 3_000_000}
    serve(lambda: report)
    assert while_running(loop, lambda: status_socket.fetch(path)) == report


def test_a_client_that_does_not_read_is_dropped_and_delays_no_other(loop, path, serve, monkeypatch):
    clock = Looks(tick=1)
    monkeypatch.setattr(loop, "now", clock)
    serve(lambda: {"text": "x" * 3_000_000})

    def visit():
        with socket.socket(socket.AF_UNIX) as sleeper:
            sleeper.connect(path)
            good = status_socket.fetch(path)["text"]
            clock.now += request_server.CLIENT_TIMEOUT
            status_socket.fetch(path)  # wakes the loop up
            # The sleeper's turn is over: what it was sent until then is all that there is.
            poll = select.poll()
            poll.register(sleeper, 0)
            hung_up = bool(poll.poll(10_000))
            return len(good), hung_up

    assert while_running(loop, visit) == (3_000_000, True)


def test_a_client_that_leaves_at_once_does_no_harm(loop, path, serve):
    serve(lambda: {"text": "x" * 3_000_000})

    def visit():
        for _count in range(5):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
        return status_socket.fetch(path)

    assert while_running(loop, visit)


def test_only_its_owner_and_group_may_ask(path, serve):
    serve()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660


def test_a_socket_that_a_killed_process_left_is_replaced(loop, path, serve):
    os.makedirs(os.path.dirname(path))
    with socket.socket(socket.AF_UNIX) as predecessor:
        predecessor.bind(path)
        predecessor.listen(1)
    serve()
    assert while_running(loop, lambda: status_socket.fetch(path))


def test_a_second_agent_is_refused_and_the_first_goes_on(loop, path, serve):
    serve()
    with pytest.raises(status_socket.Refused, match="another agent answers at"):
        status_socket.StatusServer(loop, path, dict)
    assert while_running(loop, lambda: status_socket.fetch(path)) == {"agent": "onprem.lb"}


def test_what_is_no_socket_is_left_alone(loop, path):
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write("precious")
    with pytest.raises(status_socket.Refused, match="is not a socket, but something else"):
        status_socket.StatusServer(loop, path, dict)
    assert os.path.getsize(path) == 8


def test_a_path_that_cannot_be_had_is_a_sentence(loop, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(status_socket.Refused, match="the status socket .* cannot be had: File exists."):
        status_socket.StatusServer(loop, str(tmp_path / "file" / "vrrp.sock"), dict)


def test_nothing_is_left_behind(path, serve):
    server = serve()
    server.close()
    assert not os.path.exists(path)
    with pytest.raises(status_socket.Refused, match="no agent answers at .*: is it running?"):
        status_socket.fetch(path)


@pytest.mark.parametrize("answer", [b"", b"<html>", b'"text"'])
def test_what_is_no_report_is_a_sentence(tmp_path, answer):
    path = str(tmp_path / "other.sock")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        other.listen(1)

        def reply():
            connection, _address = other.accept()
            connection.send(answer)
            connection.close()

        thread = threading.Thread(target=reply, daemon=True)
        thread.start()
        with pytest.raises(status_socket.Refused, match="gave no report"):
            status_socket.fetch(path)
        thread.join(LIMIT_S)


def test_an_agent_that_hangs_is_a_sentence(tmp_path):
    path = str(tmp_path / "hanging.sock")
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(path)
        hanging.listen(1)
        with pytest.raises(status_socket.Refused, match="cannot be asked: timed out"):
            status_socket.fetch(path, timeout=0.1)
