# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`agent direct-server` with a real kernel: what it puts in force, what it notices, and what it takes back."""

from __future__ import annotations

import contextlib
import json
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import config
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.server import command
from support.netns.direct import PORT, Lasting, behind_balancers
from support.netns.links import VIP, VIP6, skip_reason, temporary_link
from support.netns.namespaces import inside
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))
IGNORE = "net/ipv4/conf/all/arp_ignore"
FLUSH = ("nft", "flush", "ruleset")


def service(vip, name="api", **others):
    servers = ["2001:db8::1", "2001:db8::2"] if ":" in vip else ["192.0.2.1", "192.0.2.2"]
    return {"name": name, "bind": vip, "port": PORT, "servers": servers, **others}


def settings(*services):
    found, faults = config.parse(json.dumps({"interface": "eth0", "services": services}))
    assert faults == []
    return found


BOTH = settings(service(VIP), service(VIP6, "api6"))


class Server:
    """A host that is to be a server."""

    def __init__(self, node, folder):
        self.node, self.record = node, str(folder / node.name / "record.json")

    def apply(self, wanted=BOTH):
        with inside(self.node.namespace):
            command.apply(wanted, self.record)

    def remove(self):
        with inside(self.node.namespace):
            command.remove(self.record)

    def differences(self, wanted=BOTH):
        with inside(self.node.namespace):
            return command.differences(wanted, self.record)

    def state(self):
        """Return all that is changed there: the addresses of lo, the settings, and the ruleset."""
        links = json.loads(self.node.output("ip", "-json", "address", "show", "dev", "lo"))
        settings = self.node.output("sysctl", IGNORE, "net/ipv4/conf/eth0/arp_announce", "net/ipv4/tcp_mtu_probing")
        return links, settings, self.node.output("nft", "list", "ruleset")


@pytest.fixture(scope="module")
def link():
    """One for all tests: each takes back what it has changed."""
    with temporary_link() as made:
        yield made


@pytest.fixture
def server(link, tmp_path):
    found = Server(link.lb1, tmp_path)
    yield found
    found.remove()
    found.node.output(*FLUSH)
    found.node.ip("address", "flush", "dev", "lo", "scope", "global")


def test_it_is_in_force_once_applied_and_as_before_once_removed(server):
    before = server.state()
    assert len(server.differences()) == 8
    server.apply()
    assert server.differences() == []
    server.apply()
    assert server.differences() == []
    server.remove()
    assert server.state() == before
    server.remove()


def test_the_vip_of_ipv6_is_usable_at_once_and_never_a_source(server):
    server.apply()
    shown = server.node.output("ip", "address", "show", "dev", "lo", "to", VIP6)
    assert "deprecated" in shown and "tentative" not in shown


@pytest.mark.parametrize(
    "change",
    [
        FLUSH,
        ("nft", "insert rule ip onprem_lb_second_chance prerouting counter accept"),
        ("nft", "delete table ip6 onprem_lb_second_chance"),
        ("ip", "address", "delete", f"{VIP}/32", "dev", "lo"),
        ("ip", "address", "delete", f"{VIP6}/128", "dev", "lo"),
        ("sysctl", f"{IGNORE}=0"),
    ],
    ids=["flushed", "a rule more", "a table less", "IPv4", "IPv6", "sysctl"],
)
def test_what_a_hand_has_changed_is_noticed_and_repaired(server, change):
    server.apply()
    server.node.output(*change)
    assert len(server.differences()) == 1
    server.apply()
    assert server.differences() == []


def test_what_was_before_comes_back_although_it_was_repaired_meanwhile(server):
    before = server.state()
    server.apply()
    server.node.output("sysctl", f"{IGNORE}=0")
    server.node.output(*FLUSH)
    server.apply()
    server.remove()
    assert server.state() == before


def test_a_service_that_is_dropped_takes_its_vip_along(server):
    server.apply()
    assert server.differences(settings(service(VIP))) != []
    server.apply(settings(service(VIP)))
    assert server.differences(settings(service(VIP))) == []
    assert VIP6 not in server.node.output("ip", "address", "show", "dev", "lo")


def test_an_address_that_was_there_before_stays(server):
    server.node.ip("address", "add", f"{VIP}/32", "dev", "lo")
    before = server.state()
    server.apply()
    server.remove()
    assert server.state() == before


def test_a_host_that_is_no_server_is_refused_and_not_changed(link, tmp_path):
    stranger = Server(link.client, tmp_path)
    before = stranger.state()
    with pytest.raises(command.Refused, match="this host has none of these addresses"):
        stranger.apply()
    assert stranger.state() == before


def test_what_nft_refuses_can_be_removed(server):
    before = server.state()
    with pytest.raises(command.Refused, match="refuses the table of second chances: .*Interface does not exist"):
        server.apply(BOTH._replace(interface="eth9"))
    server.remove()
    assert server.state() == before


def test_nobody_answers_for_the_vip_that_a_server_has(link, server):
    def reaches():
        with inside(link.client.namespace), contextlib.suppress(OSError):
            socket.create_connection((VIP, PORT), 1).close()
            return True

    server.node.serve(PORT)
    server.apply(settings(service(VIP)))
    assert not reaches()
    server.remove()
    server.node.ip("address", "add", f"{VIP}/32", "dev", "lo")
    until(reaches, "the VIP on lo is not reached without the settings either")


@pytest.mark.parametrize("vip", [VIP, VIP6], ids=["IPv4", "IPv6"])
def test_connections_outlive_a_server_that_is_added(vip, tmp_path):
    with behind_balancers(vip, 2) as cluster:
        cluster.arrange(tmp_path)
        for host in cluster.hosts:
            host.output(*FLUSH)
        first, second, third = cluster.hosts
        cluster.balance(cluster.servers(first, second))
        lasting = Lasting(cluster)
        wanted = settings(service(vip, servers=[cluster.own(host) for host in cluster.hosts]))
        for host in cluster.hosts:
            Server(host, tmp_path).apply(wanted)
        cluster.balance(cluster.servers(first, second, third))
        assert third.name in Lasting(cluster).shares
        assert lasting.lost() == {}
