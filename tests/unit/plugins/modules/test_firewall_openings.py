# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module firewall_openings: what is asked of it, said by it, and left by it. What it plans: test_firewall."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.modules import firewall_openings
from support.firewalls import FakeFirewalld, FakeHost, FakeUfw, dropping
from support.modules import refusal, run

MACHINES = {"port": "22623", "networks": ["10.0.0.0/24"]}
ASKED = {"ports": ["443"], "restricted_ports": [MACHINES], "vrrp_peers": ["192.0.2.12"]}
OPEN = ["tcp 443 from anywhere", "tcp 22623 from 10.0.0.0/24", "vrrp from 192.0.2.12"]
MANAGERS = {"firewalld": FakeFirewalld, "ufw": FakeUfw, "nftables": dropping}


@pytest.fixture
def on(monkeypatch):
    """Have the module run on a host of another test's making; return that host."""

    def put(host):
        monkeypatch.setattr(firewall_openings, "Host", lambda _module: host)
        return host

    return put


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"ports": ["https"]}, "Port https is not a number from 1 to 65535."),
        ({"ports": ["53/icmp"]}, "Port 53/icmp has an unknown protocol: write 8443, or 8443/tcp or 8443/udp."),
        ({"vrrp_peers": ["lb2"]}, "VRRP peer lb2 is not an IPv4 or IPv6 address."),
        ({"restricted_ports": [{**MACHINES, "port": "mcs"}]}, "Port mcs is not a number from 1 to 65535."),
        (
            {"restricted_ports": [{**MACHINES, "networks": ["10.0.0.1/24"]}]},
            "Network 10.0.0.1/24 is neither a network such as 192.0.2.0/24 nor an address.",
        ),
        (
            {"restricted_ports": [{**MACHINES, "networks": []}]},
            "Port 22623 is restricted to no network: name one, or open the port to everybody.",
        ),
        ({"restricted_ports": [{"port": "22623"}]}, "missing required arguments: networks found in restricted_ports"),
        ({"manager": "iptables"}, "value of manager must be one of: auto, firewalld, ufw, nftables, none"),
        ({"state": "open"}, "value of state must be one of: present, absent"),
        ({"ports": {"a": 1}}, "cannot be converted to a list"),
        ({"port": 443}, "module: port. Supported parameters include"),
        ({"manager": "ufw"}, "ufw was asked for, but is not active on this host."),
    ],
)
def test_a_wrong_argument_is_named(on, given, sentence):
    host = on(FakeHost())
    assert sentence in refusal(firewall_openings, given) and host.state() == FakeHost().state()


@pytest.mark.parametrize("manager", MANAGERS)
def test_check_mode_says_what_would_be_opened_and_opens_nothing(on, manager):
    host = on(MANAGERS[manager]())
    before = host.state()
    said = run(firewall_openings, ASKED, check=True)
    assert (said["changed"], said["manager"], said["openings"]) == (True, manager, OPEN)
    assert said["in_force"] is False
    assert host.state() == before
    done = run(firewall_openings, ASKED)
    assert host.state() != before, "and without check mode it is opened"
    assert done["diff"] == said["diff"] and all(f"{opening}\n" in done["diff"]["after"] for opening in OPEN)


@pytest.mark.parametrize("manager", MANAGERS)
def test_check_mode_closes_nothing_either(on, manager):
    host = on(MANAGERS[manager]())
    closed = host.state()
    run(firewall_openings, ASKED)
    before = host.state()
    assert run(firewall_openings, {"state": "absent"}, check=True)["changed"] and host.state() == before
    assert run(firewall_openings, {"state": "absent"})["changed"] and host.state() == closed


@pytest.mark.parametrize("manager", MANAGERS)
def test_what_is_open_already_is_no_change(on, manager):
    on(MANAGERS[manager]())
    run(firewall_openings, ASKED)
    for check in (True, False):
        again = run(firewall_openings, ASKED, check=check)
        assert not again["changed"] and again["in_force"] and again["diff"]["before"] == again["diff"]["after"]


def test_without_a_firewall_nothing_is_to_be_opened_and_that_is_said(on):
    on(FakeHost())
    said = run(firewall_openings, ASKED)
    assert (said["changed"], said["openings"]) == (False, [])
    assert said["msg"] == "No firewall is active; nothing to open."


def test_openings_that_the_next_boot_loses_are_warned_of(on):
    on(dropping(service=False))
    (warning,) = run(firewall_openings, ASKED)["warnings"]
    assert warning.startswith("nftables.service is not active")


class Refusing(FakeUfw):
    def _ufw(self, args, data):
        return (1, "", "ERROR: no\n") if args[0] == "allow" else super()._ufw(args, data)


def test_a_manager_that_fails_is_quoted(on):
    on(Refusing())
    assert refusal(firewall_openings, ASKED) == "ufw allow 443/tcp comment onprem.lb failed: ERROR: no"
