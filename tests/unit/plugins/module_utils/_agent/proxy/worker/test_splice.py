# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes that go from one socket to another through a pipe."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import splice
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.splice import MAX_SPARE, Pipe, Pipes

MAKERS = [splice._splice_of_libc] + [splice._splice_of_python] * hasattr(os, "splice")


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def kind(request, monkeypatch):
    """Both ways to call it: Python 3.8 has only the first one."""
    monkeypatch.setattr(splice, "splice", request.param())


@pytest.fixture
def sockets():
    pairs = [socket.socketpair() for _each in range(2)]
    for pair in pairs:
        for end in pair:
            end.setblocking(False)
    yield pairs
    for pair in pairs:
        for end in pair:
            end.close()


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_what_is_filled_in_comes_out(kind, sockets, pipe):
    (sender, source), (destination, receiver) = sockets
    sender.send(b"some bytes")
    assert pipe.fill(source.fileno()) == pipe.held == 10
    pipe.drain(destination.fileno())
    assert pipe.held == 0
    assert receiver.recv(100) == b"some bytes"


def test_a_source_that_has_nothing_yet_is_not_one_that_has_ended(kind, sockets, pipe):
    (sender, source), _others = sockets
    with pytest.raises(BlockingIOError):
        pipe.fill(source.fileno())
    sender.close()
    assert pipe.fill(source.fileno()) == 0


def test_what_the_destination_does_not_take_is_held(kind, sockets, pipe):
    (sender, source), (destination, receiver) = sockets
    with pytest.raises(BlockingIOError):
        while True:
            destination.send(b"x" * 65536)
    sender.send(b"late")
    pipe.fill(source.fileno())
    pipe.drain(destination.fileno())
    assert pipe.held == 4
    with pytest.raises(BlockingIOError):
        while True:
            receiver.recv(1 << 20)
    pipe.drain(destination.fileno())
    assert pipe.held == 0


def test_what_leaves_in_parts_leaves_all_the_same(kind, sockets, pipe, monkeypatch):
    """A destination that takes more would not say so again."""
    (sender, source), (destination, receiver) = sockets
    whole = splice.splice
    monkeypatch.setattr(splice, "splice", lambda here, there, size: whole(here, there, min(size, 3)))
    sender.send(b"in parts")
    for _each in range(3):
        pipe.fill(source.fileno())
    pipe.drain(destination.fileno())
    assert (pipe.held, receiver.recv(100)) == (0, b"in parts")


def test_a_destination_that_has_gone_raises(kind, sockets, pipe):
    (sender, source), (destination, receiver) = sockets
    receiver.close()
    sender.send(b"lost")
    pipe.fill(source.fileno())
    with pytest.raises(BrokenPipeError):
        pipe.drain(destination.fileno())


def test_a_pipe_is_used_again_unless_something_is_in_it(sockets):
    (sender, source), _others = sockets
    pipes = Pipes()
    first = pipes.take()
    pipes.give(first)
    assert pipes.take() is first
    sender.send(b"left over")
    first.fill(source.fileno())
    pipes.give(first)
    assert pipes.take() is not first
    pipes.close()


def test_no_more_pipes_are_kept_than_may_be_of_use():
    pipes = Pipes()
    before = len(os.listdir("/proc/self/fd"))
    for each in [pipes.take() for _each in range(MAX_SPARE + 3)]:
        pipes.give(each)
    assert len(os.listdir("/proc/self/fd")) == before + 2 * MAX_SPARE
    pipes.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_where_splice_does_not_work_there_are_no_pipes(monkeypatch):
    def refused(*_arguments):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(splice, "splice", refused)
    before = os.listdir("/proc/self/fd")
    pipes = Pipes()
    with pytest.raises(OSError, match="not implemented"):
        pipes.take()
    assert len(os.listdir("/proc/self/fd")) == len(before)
