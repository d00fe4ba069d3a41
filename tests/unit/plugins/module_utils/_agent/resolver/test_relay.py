# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked last: it hands answers on, says of a failure what dnsmasq hands on, and says nothing by itself."""

from __future__ import annotations

import socket
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.resolver import relay, resolv_conf
from support.waiting import LIMIT_S

QUESTION = b"\1x\7example\0\0\1\0\1"


def query(number):
    return struct.pack("!6H", number, 0x0100, 1, 0, 0, 0) + QUESTION


def reply(number, rcode):
    return struct.pack("!6H", number, 0x8180 | rcode, 1, 0, 0, 0) + QUESTION


def bound(address="127.0.0.1"):
    found = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    found.bind((address, 0))
    found.settimeout(LIMIT_S)
    return found


class Between:
    """A relay between a client and a name server, each of which speaks when it is told to."""

    def __init__(self, address):
        self.relay = relay.Relay("127.0.0.1", 0)
        self.server, self.client = bound(address), bound()
        self.relay.upstream = f"{address}#{self.server.getsockname()[1]}"
        self.client.connect(self.relay._in.getsockname())

    def ask(self, number):
        self.client.send(query(number))
        self.relay.step()

    def answers(self, message):
        data, at = self.server.recvfrom(512)
        self.server.sendto(message, at)
        self.relay.step()
        return data

    def heard(self):
        self.client.setblocking(False)
        try:
            return self.client.recv(512)
        except BlockingIOError:
            return None


@pytest.fixture(params=["127.0.0.1", "::1"])
def between(request):
    found = Between(request.param)
    yield found
    for each in (found.server, found.client, found.relay._in, found.relay._out):
        if each:
            each.close()


@pytest.mark.parametrize("rcode, heard", [(0, 0), (1, 1), (2, 4), (3, 3), (4, 4), (5, 4)])
def test_a_failure_becomes_one_that_dnsmasq_hands_on_and_an_answer_stays(between, rcode, heard):
    between.ask(7)
    assert between.answers(reply(7, rcode)) == query(7)
    assert between.heard() == reply(7, heard)


def test_nothing_is_said_before_the_name_server_says_it(between):
    between.ask(7)
    assert between.heard() is None


@pytest.mark.parametrize("upstream", ["", "192.0.2.1.9", "a.example", "255.255.255.255"])
def test_without_a_name_server_it_says_nothing_and_tries_again(between, upstream):
    server, between.relay.upstream = between.relay.upstream, upstream
    between.ask(7)
    assert between.heard() is None and not between.relay._waiting
    between.relay.upstream = server
    between.ask(8)
    between.answers(reply(8, 0))
    assert between.heard() == reply(8, 0)


def test_one_that_cannot_be_reached_has_failed(between):
    """The host has no route to it, for instance: a program without a resolver is told at once as well."""
    between.relay.upstream = "127.0.0.1#9"
    between.ask(7)
    between.relay._out.shutdown(socket.SHUT_WR)
    between.ask(8)
    assert between.heard() == relay.failed(query(8)) == query(8)[:2] + b"\x81\4" + query(8)[4:]


def test_answers_to_nothing_and_pieces_of_messages_are_dropped(between):
    between.ask(7)
    for message in (reply(8, 0), b"", b"\0\7"):
        _data, at = between.server.recvfrom(512)
        between.server.sendto(message, at)
        between.relay.step()
        assert between.heard() is None
        between.client.send(query(7))
        between.relay.step()
    assert between.answers(reply(7, 0)) == query(7) and between.heard() == reply(7, 0)
    between.client.send(b"")
    between.relay.step()


def test_a_closed_port_is_no_end_and_neither_is_another_name_server(between):
    between.server.close()
    between.ask(7)
    between.relay.step()
    between.server = bound()
    between.relay.upstream = f"127.0.0.1#{between.server.getsockname()[1]}"
    between.ask(8)
    between.answers(reply(8, 3))
    assert between.heard() == reply(8, 3)


def test_as_many_questions_wait_as_have_room_and_the_oldest_goes_first(between, monkeypatch):
    monkeypatch.setattr(relay, "MOST", 2)
    for number in (1, 2, 3):
        between.ask(number)
    assert [*between.relay._waiting] == [struct.pack("!H", number) for number in (2, 3)]


def test_a_thread_that_ends_ends_the_process(between, monkeypatch):
    """A keeper without it would never be noticed: systemd starts both anew."""
    ended = []
    monkeypatch.setattr(relay.os, "_exit", ended.append)
    monkeypatch.setattr(between.relay, "step", lambda: 1 / 0)
    between.relay._run()
    assert ended == [1]


def test_it_is_at_an_address_of_the_loopback_that_nobody_else_has():
    assert resolv_conf.RELAY.startswith("127.") and not resolv_conf.RELAY.startswith("127.0.")
