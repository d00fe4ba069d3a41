# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the VRRP process is handed, without a network."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import network
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import Link

CALLS = [
    ("open_socket", ("eth0", 7, 4, True)),
    ("announcing", ("a link", "192.0.2.10")),
    ("ask", ("a link", "192.0.2.1", "192.0.2.2")),
]


@pytest.fixture
def calls(monkeypatch):
    """Everything that is called in place of the kernel, with what it was given."""
    found = []

    class Part:
        def __init__(self, name):
            self.name = name

        def announcing(self, *given):
            found.append(("announcing", given))

        def ask(self, *given):
            found.append(("ask", given))

        def close(self):
            found.append(("close", self.name))

    monkeypatch.setattr(network, "Netlink", lambda: Part("netlink"))
    monkeypatch.setattr(network, "Announcer", lambda: Part("announcer"))
    monkeypatch.setattr(network.sockets, "open_socket", lambda *given: found.append(("open_socket", given)))
    return found


def test_a_prober_sends_from_the_mac_that_the_interface_has_now(calls, monkeypatch):
    made = []
    monkeypatch.setattr(network, "NeighbourProber", lambda *given, mac_of: made.append((*given, mac_of("eth0"))))
    network.Network().prober(Link(2, "eth0", True, b"\2" * 6), 4)
    assert made == [("eth0", 4, b"\2" * 6)]


@pytest.mark.parametrize("name, given", CALLS)
def test_what_is_asked_of_it_is_passed_on(calls, name, given):
    getattr(network.Network(), name)(*given)
    assert calls == [(name, given)]


def test_all_that_it_opened_is_closed(calls):
    network.Network().close()
    assert sorted(calls) == [("close", "announcer"), ("close", "netlink")]
