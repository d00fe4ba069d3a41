# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a client may take for its ClientHello, where routes are chosen by it, and what it costs."""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import session
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import client_hello
from support.proxy.proxies import LIMIT, Clock, Proxy, is_cut_off, listening


@pytest.fixture
def worker():
    """A worker at a clock of its own whose service has a route to the second server."""
    clock = Clock()
    with listening() as own, listening() as other, Proxy(
        own, clock=clock, routes=[("route", ("a.example",), other)]
    ) as proxy:
        yield proxy, clock, own, other


def test_a_slow_hello_is_cut_off_after_the_limit_however_much_has_come(worker):
    proxy, _clock, _own, _other = worker
    hello = client_hello.of("a.example")
    with proxy.connect() as client:
        client.sendall(hello[:100])
        proxy.let_pass(session.HELLO_TIMEOUT - 2)
        client.sendall(hello[100:200])
        proxy.let_pass(1)
        assert proxy.count("refused") == 0
        proxy.let_pass(2)
        assert is_cut_off(client)
        proxy.wait_for("refused", 1)


def test_one_that_is_cut_off_costs_no_place_of_another(worker):
    """The service's limit counts its routes' sessions, and is free again."""
    proxy, _clock, own, other = worker
    for name, server in (("a.example", other), ("", own)) * 3:
        with proxy.connect() as client:
            client.sendall(client_hello.of(name))
            with server.accept()[0] as accepted:
                accepted.settimeout(LIMIT)
                assert accepted.recv(1)
        with proxy.connect() as client:
            client.sendall(b"GET /")
            assert is_cut_off(client)


def test_sixteen_kilobytes_without_a_name_are_the_end(worker):
    proxy, _clock, _own, _other = worker
    with proxy.connect() as client:
        with contextlib.suppress(ConnectionError):
            client.sendall((b"\x16\x03\x01\x00\x01" + b"\x01") + b"\x16\x03\x01\x00\x01\x00" * 4000)
        assert is_cut_off(client)
