# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connections of this host's own programs in the kernel's tables."""

from __future__ import annotations

import contextlib
import inspect
import socket
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import sockets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.sockets import Connection
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import socket_tables
from support.paths import GOLDEN

VIP, VIP6 = "192.0.2.100", "2001:db8::100"
FOUR, SIX = (VIP, 6443), (VIP6, 6443)
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LOCAL, CLIENT = "640200C0:192B", "070200C0:9C40"  # 192.0.2.100:6443 and 192.0.2.7:40000
LOCAL6, CLIENT6 = "B80D0120000000000000000000010000:192B", "B80D0120000000000000000007000000:9C40"
MAPPED = "0000000000000000FFFF0000"


@pytest.fixture(autouse=True)
def little(monkeypatch):
    monkeypatch.setattr(socket_tables.sys, "byteorder", "little")


def table(local=LOCAL, client=CLIENT, state="01"):
    line = f"{local} {client} {state} 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 20 4 30 10 -1\n"
    return f"{HEAD}   0: {line}"


def listed(text, *places):
    return list(sockets.listed(text, places or (FOUR,)))


def test_a_connection_to_a_place_is_found():
    assert listed(table()) == [Connection(VIP, 6443, "192.0.2.7", 40000)]


def test_one_of_a_program_that_listens_for_both_families_as_well():
    text = table(MAPPED + LOCAL, MAPPED + CLIENT)
    assert listed(text) == [Connection(VIP, 6443, "192.0.2.7", 40000)]


def test_one_of_ipv6_as_well():
    assert listed(table(LOCAL6, CLIENT6), SIX) == [Connection(VIP6, 6443, "2001:db8::7", 40000)]


def test_on_a_big_endian_host_the_words_are_the_other_way_round(monkeypatch):
    monkeypatch.setattr(socket_tables.sys, "byteorder", "big")
    assert listed(table("C0000264:192B", "C0000207:9C40")) == [Connection(VIP, 6443, "192.0.2.7", 40000)]


@pytest.mark.parametrize("state", ["03", "04", "05", "08", "09", "0B"])
def test_one_that_begins_or_closes_is_one(state):
    assert len(listed(table(state=state))) == 1


@pytest.mark.parametrize("state", [sockets.LISTEN, sockets.TIME_WAIT])
def test_a_listener_and_what_is_over_are_none(state):
    assert listed(table(state=state)) == []


@pytest.mark.parametrize("local", ["640200C0:192C", "650200C0:192B"], ids=["port", "address"])
def test_one_to_another_place_is_none_of_its_business(local):
    assert listed(table(local)) == []


def test_both_tables_are_read_and_that_of_ipv6_may_be_missing(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(table())
    assert len(sockets.connections([FOUR], str(tmp_path))) == 1
    (tmp_path / "net" / "tcp6").write_text(table(MAPPED + LOCAL, MAPPED + CLIENT))
    assert len(sockets.connections([FOUR], str(tmp_path))) == 2


def test_a_table_that_is_missing_is_not_an_empty_one(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp6").write_text(table(MAPPED + LOCAL, MAPPED + CLIENT))
    with pytest.raises(FileNotFoundError):
        sockets.connections([FOUR], str(tmp_path))


@pytest.mark.parametrize("family, address", [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_this_kernels_tables_are_as_expected(monkeypatch, family, address):
    monkeypatch.undo()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((address, 0), family=family))
        port = listener.getsockname()[1]
        client = stack.enter_context(socket.create_connection((address, port)))
        stack.enter_context(listener.accept()[0])
        expected = Connection(address, port, address, client.getsockname()[1])
        assert sockets.connections([(address, port)]) == [expected]


def test_the_tables_are_where_a_confined_unit_has_them():
    """Found on hosts: without them a plane took no connection for the balancer's own, and all of those were reset."""
    root = inspect.signature(sockets.connections).parameters["root"].default
    assert root == "/proc/self" and all(Path(root, name).exists() for name in sockets.TABLES)
    assert "ProcSubset" not in (GOLDEN / "direct.service").read_text()
