# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resets at every stage of a session, against real sockets: each is passed on and leaves nothing behind."""

from __future__ import annotations

import socket

import pytest
from support.proxy.connections import BLOCK, fill, is_reset, reset
from support.proxy.proxies import Proxy
from support.waiting import until


def after_a_request(one, other):
    one.sendall(b"request")
    assert other.recv(7) == b"request"


def after_a_request_of_the_other_side(one, other):
    after_a_request(one=other, other=one)


def while_the_other_side_sends_much(one, other):
    other.sendall(BLOCK * 20)
    assert one.recv(100)


def while_it_reads_nothing(one, other):
    fill(other)


def while_the_other_side_reads_nothing(one, other):
    fill(one)


def while_both_read_nothing(one, other):
    fill(one)
    fill(other)


def after_its_own_end(one, other):
    one.sendall(b"all")
    one.shutdown(socket.SHUT_WR)
    assert other.recv(4) == b"all"
    assert other.recv(1) == b""


def after_the_other_end(one, other):
    after_its_own_end(one=other, other=one)


STAGES = [
    after_a_request,
    after_a_request_of_the_other_side,
    while_the_other_side_sends_much,
    while_it_reads_nothing,
    while_the_other_side_reads_nothing,
    while_both_read_nothing,
    after_its_own_end,
    after_the_other_end,
]


@pytest.mark.parametrize("resetting", ["client", "server"])
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
def test_a_reset_is_passed_on_and_leaves_nothing_behind(server, stage, resetting):
    with Proxy(server) as proxy:
        before = proxy.descriptors()
        with proxy.pair(server) as pair:
            one, another = pair if resetting == "client" else reversed(pair)
            stage(one, another)
            reset(one)
            assert is_reset(another)
        until(lambda: proxy.descriptors() <= before + 6)  # pipes are kept for the next one
        with proxy.pair(server) as (client, accepted):
            client.sendall(b"next")
            client.shutdown(socket.SHUT_WR)
            assert accepted.recv(4) == b"next"
            accepted.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert (proxy.count("sessions"), proxy.count("resets"), proxy.count("current")) == (2, 1, 0)


def test_a_client_that_resets_before_it_has_a_server_leaves_nothing_behind(deaf):
    with Proxy(deaf, connect=0.3) as proxy:
        before = proxy.descriptors()
        client = proxy.connect()
        until(lambda: proxy.descriptors() > before)
        reset(client)
        until(lambda: proxy.descriptors() == before)


def test_a_client_that_has_already_reset_gets_no_server(server):
    with Proxy(server) as proxy:
        with proxy.suspended():
            reset(proxy.connect())
        with proxy.pair(server) as (client, accepted):
            client.sendall(b"next")
            assert accepted.recv(4) == b"next"
    assert (proxy.count("sessions"), proxy.count("current")) == (1, 0)
