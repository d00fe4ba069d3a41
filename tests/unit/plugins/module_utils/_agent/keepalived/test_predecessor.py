# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""keepalived starts, and its peers get priority 0 in the name of a predecessor that speaks no VRRP."""

from __future__ import annotations

import itertools
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf, predecessor
from support.paths import GOLDEN
from support.vrrp import fakes

ROUTERS = conf.routers((GOLDEN / "every-instance.keepalived.conf").read_text())
PEERS = {peer for router in ROUTERS for peer in router.peers or ("224.0.0.18",)}
MAC = "02:00:00:00:00:01"


@pytest.fixture
def host():
    network = fakes.Network([])
    for index, name in enumerate(("eth0", "eth1"), 1):
        network.netlink.link(name, index)
    network.netlink.put("192.0.2.1/24", "eth0")
    for address in ("198.51.100.1/24", "2001:db8::1/64", "fe80::1/64"):
        network.netlink.put(address, "eth1")
    return network


def resign(host, *answers):
    """Resign on a host where others answer for some addresses, one group of addresses after each second."""
    seconds = itertools.count()

    def now():
        second = next(seconds)
        host.answers.update(dict.fromkeys(answers[second - 1], [MAC]) if 0 < second <= len(answers) else {})
        return second

    def prober(interface, family):
        return host.prober(next(link for link in host.netlink.links() if link.name == interface), family)

    waiting = predecessor.Predecessor(
        host.netlink, host.open_socket, prober, lambda prober, _seconds: bool(prober.arrived), now
    )
    return waiting.resign(ROUTERS)


def addresses(routers):
    return [router.held[0].address for router in routers]


def test_the_peers_of_each_router_get_it_until_somebody_holds_its_address(host):
    assert resign(host, [], addresses(ROUTERS)) == []
    assert set(host.journal) == {f"send 0 to {peer}" for peer in PEERS}
    assert len(host.journal) == len([to for router in ROUTERS for to in router.peers or ("224.0.0.18",)])


def test_nothing_is_sent_where_somebody_holds_all_of_them_already(host):
    assert resign(host, addresses(ROUTERS)) == [] and host.journal == []


def test_who_holds_an_address_is_asked_where_the_address_is(host, monkeypatch):
    apart = [router for router in ROUTERS if router.held[0].interface != router.interface][:1]
    monkeypatch.setitem(globals(), "ROUTERS", apart)
    asked, prober = [], host.prober
    monkeypatch.setattr(host, "prober", lambda link, family: asked.append(link.name) or prober(link, family))
    assert resign(host, addresses(apart)) == []
    assert asked == [apart[0].held[0].interface]


def test_an_address_of_this_host_is_held_too(host):
    first, *others = ROUTERS
    host.netlink.put(f"{first.held[0].address}/32", first.held[0].interface)
    assert resign(host, addresses(others)) == [] and host.journal == []


def test_routers_that_nobody_takes_over_are_named_in_the_end(host):
    first, *others = ROUTERS
    assert resign(host, addresses(others)) == [first]
    assert len(host.journal) == (predecessor.LIMIT - 1) * len(first.peers or ["224.0.0.18"])


def test_a_router_without_an_address_to_send_from_is_said(host):
    host.netlink.take_away("198.51.100.1/24", "eth1")
    with pytest.raises(ValueError, match="eth1 has no address to send from"):
        resign(host)


def systemctl(returncode):
    """Return a stand-in for `subprocess.run` that expects to start keepalived."""

    def run(command, check):
        assert command == ["systemctl", "start", "keepalived.service"]
        return subprocess.CompletedProcess(command, returncode)

    return run


def test_nothing_is_sent_in_the_place_of_a_keepalived_that_does_not_start(tmp_path, capfd):
    assert predecessor.main(str(tmp_path / "keepalived.conf"), systemctl(1)) == 1
    assert capfd.readouterr().err == ""


def test_a_configuration_that_is_not_there_is_said(tmp_path, capfd):
    assert predecessor.main(str(tmp_path / "keepalived.conf"), systemctl(0)) == 1
    assert (
        "Priority 0 cannot be sent in the name of keepalived's predecessor: No such file or directory."
        in capfd.readouterr().err
    )
