# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways of one session, round by round: what an end does when the other one takes nothing at all."""

from __future__ import annotations

import contextlib
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import session
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.endpoint import (
    RELAYING,
    SPLICE_AFTER,
    Endpoint,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.event_loop import (
    BOTH_WAYS,
    LARGE_READ,
    EventLoop,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.splice import Pipe


class Front:
    """Of a service without servers."""

    def __init__(self, event_loop) -> None:
        self.loop = event_loop


class Stage:
    """A session that is relaying, and the sockets of its client and its server."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.client, ours = socket.socketpair()
        self.server, theirs = socket.socketpair()
        for each in (ours, theirs, self.client, self.server):
            each.setblocking(False)
        self.session = session.Session(Front(self.loop), ours, "192.0.2.9")
        self.session.server = Endpoint(self.session, theirs)
        self.session.state = RELAYING
        ends = self.session.client, self.session.server
        for end, other in zip(ends, reversed(ends)):
            end.other, end.watches_out = other, True
            self.loop.watch(end.descriptor, end, BOTH_WAYS)
        self.session.enable_fast_path()
        self.round()

    def round(self, number: int = 3) -> None:
        """Let it do what there is to do."""
        rounds = iter(range(number - 1, -1, -1))

        def keep_house() -> float:
            if not next(rounds):
                self.loop.stop()
            return 0.0

        self.loop.run(keep_house)

    def stuff_server(self) -> None:
        """Let the server's way in be full, so that not one more byte is taken."""
        for size in (65536, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    self.session.server.socket.send(b"x" * size)

    def read_at_server(self) -> bytes:
        """Read all there is; say so to the worker, and read what it sends then."""
        received = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                data = self.server.recv(1 << 20)
                if not data:
                    return received.lstrip(b"x") + b"<end>"
                received += data
                self.round()
        return received.lstrip(b"x")


@pytest.fixture
def stage():
    stage = Stage()
    yield stage
    for each in (stage.client, stage.server, stage.session.client.socket, stage.session.server.socket):
        each.close()
    stage.loop.close()


def test_what_the_other_end_does_not_take_at_all_is_kept(stage):
    stage.stuff_server()
    stage.client.send(b"kept")
    stage.round()
    assert stage.session.client.pending == b"kept"
    assert stage.read_at_server() == b"kept"
    assert stage.session.client.pending == b""


def test_what_is_kept_is_counted(stage):
    stage.stuff_server()
    stage.client.send(b"kept")
    stage.round()
    assert stage.session.client.count == 4


def test_nothing_more_is_read_until_that_has_gone(stage):
    stage.stuff_server()
    stage.client.send(b"kept")
    stage.round()
    stage.client.send(b", waiting")
    stage.round()
    assert stage.session.client.pending == b"kept"
    assert stage.read_at_server() == b"kept, waiting"


def test_the_end_of_a_way_comes_after_what_is_kept(stage):
    stage.stuff_server()
    stage.client.send(b"kept")
    stage.round()
    stage.client.shutdown(socket.SHUT_WR)
    stage.round()
    assert stage.read_at_server() == b"kept<end>"


def test_the_end_of_a_way_comes_after_what_is_in_the_pipe(stage):
    stage.session.client.large_reads = SPLICE_AFTER
    stage.session.disable_fast_path()
    stage.stuff_server()
    stage.client.send(b"in the pipe")
    stage.round()
    assert stage.session.client.pipe.held == 11
    stage.client.shutdown(socket.SHUT_WR)
    stage.round()
    assert stage.read_at_server() == b"in the pipe<end>"


def test_a_pipe_with_something_in_it_is_not_given_back(stage):
    stage.session.client.large_reads = SPLICE_AFTER
    stage.session.disable_fast_path()
    stage.stuff_server()
    stage.client.send(b"in the pipe")
    stage.round()
    stage.session.client.release_pipe()
    stage.client.send(b", and after it")
    stage.round()
    assert stage.read_at_server() == b"in the pipe, and after it"


def test_a_side_that_repeatedly_sends_much_data_gets_a_pipe(stage):
    for number in range(SPLICE_AFTER):
        assert stage.session.client.pipe is None, number
        stage.client.send(b"y" * LARGE_READ)
        stage.round()
    assert stage.session.client.pipe
    assert stage.read_at_server() == b"y" * LARGE_READ * SPLICE_AFTER


def test_that_splice_finds_nothing_more_need_not_be_the_end(stage, monkeypatch):
    """It says so at urgent data, too, where it stops for good."""
    stage.session.client.large_reads = SPLICE_AFTER
    stage.session.disable_fast_path()
    monkeypatch.setattr(Pipe, "fill", lambda pipe, source: 0)
    stage.client.send(b"there is more")
    stage.round()
    assert stage.read_at_server() == b"there is more"
    stage.client.shutdown(socket.SHUT_WR)
    stage.round()
    assert stage.read_at_server() == b"<end>"


def test_the_other_way_goes_on_meanwhile(stage):
    stage.stuff_server()
    stage.client.send(b"kept")
    stage.round()
    stage.server.send(b"the other way")
    stage.round()
    assert stage.client.recv(100) == b"the other way"


def test_once_it_has_gone_the_loop_does_it_again(stage):
    stage.stuff_server()
    stage.client.send(b"kept")
    stage.round()
    assert stage.session.client.forward is None
    stage.read_at_server()
    assert stage.session.client.forward and stage.session.server.forward


def test_a_pipe_is_given_back_when_little_comes_and_nothing_is_lost(stage):
    stage.session.client.large_reads = SPLICE_AFTER
    stage.session.disable_fast_path()
    stage.client.send(b"much")
    stage.round()
    assert stage.session.client.pipe
    stage.session.client.release_pipe()
    assert stage.session.client.pipe is None
    stage.client.send(b", little")
    stage.round()
    assert stage.read_at_server() == b"much, little"
