# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PROXY protocol's header, byte by byte as its specification has it."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import proxy_header


def test_of_ipv4():
    header = proxy_header.encode(socket.AF_INET, "192.0.2.1", 50000, "198.51.100.7", 443)
    assert header.hex(" ") == ("0d 0a 0d 0a 00 0d 0a 51 55 49 54 0a 21 11 00 0c c0 00 02 01 c6 33 64 07 c3 50 01 bb")


def test_of_ipv6():
    header = proxy_header.encode(socket.AF_INET6, "2001:db8::1", 50000, "2001:db8::2", 443)
    assert header[12:16].hex(" ") == "21 21 00 24"
    assert header[16:32] == socket.inet_pton(socket.AF_INET6, "2001:db8::1")
    assert header[32:48] == socket.inet_pton(socket.AF_INET6, "2001:db8::2")
    assert header[48:].hex(" ") == "c3 50 01 bb"


def test_of_a_link_local_client():
    header = proxy_header.encode(socket.AF_INET6, "fe80::1%eth0", 1, "fe80::2%eth0", 2)
    assert header[16:32] == socket.inet_pton(socket.AF_INET6, "fe80::1")


def test_of_a_connection_that_has_no_client():
    assert proxy_header.local().hex(" ") == "0d 0a 0d 0a 00 0d 0a 51 55 49 54 0a 20 00 00 00"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_of_a_connection(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip(f"no {address} here")
    with server, socket.create_connection(server.getsockname()[:2]) as client, server.accept()[0] as accepted:
        header = proxy_header.encode(family, address, client.getsockname()[1], address, server.getsockname()[1])
        assert proxy_header.of(accepted) == header
