# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of servers, wherever a user may write them, and the addresses that they have."""

from __future__ import annotations

import socket
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import server_names
from support.waiting import LIMIT_S

KNOWN = {f"{name}.example.com": [f"192.0.2.{at}", "2001:db8::1"] for at, name in enumerate("abcd")}

SLOW = "slow.example.com"


@pytest.fixture(autouse=True)
def resolver(monkeypatch):
    """Answers for the known names; returns what releases those that hang."""
    released = threading.Event()

    def answer(name, _port, type):
        if name == SLOW:
            released.wait(LIMIT_S)
        known = {**KNOWN, SLOW: ["192.0.2.9"]}
        if name not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, type, 6, "", (address, 0)) for address in known[name] for _again in range(2)]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    monkeypatch.setattr(server_names, "TIMEOUT", LIMIT_S)
    yield
    released.set()


def test_they_are_found_in_services_routes_and_lists_of_servers():
    services = [
        {
            "name": "not.example.com",
            "port": 443,
            "servers": ["a.example.com", {"name": "b", "address": "b.example.com"}, "192.0.2.31"],
            "routes": [{"hosts": ["not.example.com"], "servers": [{"address": "c.example.com"}]}],
        },
        "d.example.com",
    ]
    assert server_names.resolved(services) == KNOWN


@pytest.mark.parametrize("given", [None, 5, {}, [], [{"servers": None}], ["192.0.2.1", "2001:db8::1"], {"a": "b"}])
def test_of_what_is_no_name_nothing_is_asked(given):
    assert server_names.resolved(given) == {}


def test_a_name_without_an_answer_in_time_is_left_out(monkeypatch):
    moments = iter([0, 0, 0, LIMIT_S])  # the time is over once the others have answered
    monkeypatch.setattr(server_names.in_time.time, "monotonic", lambda: next(moments))
    assert server_names.resolved(["none.example.com", "a.example.com", SLOW]) == {
        "a.example.com": KNOWN["a.example.com"]
    }
