# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct return with real nft and a real kernel: lasting connections survive what moves their buckets, or the VIP."""

from __future__ import annotations

import json
import re

import pytest
from support.netns.direct import PORT, Cluster, Lasting
from support.netns.links import VIP, VIP6, skip_reason, temporary_link
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))  # loads rulesets, as root

STRANGERS = 20
# Sends segments of connections that nobody has, to the holder's MAC. scapy itself would broadcast them as long as it
# does not know that.
STRANGER = f"""
import sys
from scapy.all import Ether, IP, IPv6, TCP, sendp
vip, port, mac = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ip = Ether(dst=mac) / (IPv6 if ":" in vip else IP)(dst=vip)
packets = [ip / TCP(sport=40000 + at, dport=port, flags="A", seq=1, ack=1) for at in range({STRANGERS})]
sendp(packets, iface="eth0", verbose=0)
"""


families = pytest.mark.parametrize("vip", [VIP, VIP6], ids=["IPv4", "IPv6"])


@pytest.fixture
def cluster(vip, tmp_path):
    with temporary_link(5) as link:
        yield Cluster(link, tmp_path, vip, link.members[:2], link.members[2:])


@pytest.fixture
def masters(vip, tmp_path):
    """Three hosts that are balancers and servers at the same time."""
    with temporary_link(3) as link:
        yield Cluster(link, tmp_path, vip, link.members, link.members)


@families
def test_connections_outlive_a_failover_and_the_return(cluster):
    cluster.set_servers(cluster.servers(*cluster.hosts))
    lasting = Lasting(cluster)
    assert set(lasting.shares) == {host.name for host in cluster.hosts}
    cluster.fail_over()
    assert lasting.lost() == {}
    cluster.fail_over()
    assert lasting.lost() == {}


@families
def test_masters_that_are_balancers_lose_none_either(masters):
    first, second, third = masters.hosts
    masters.set_servers(masters.servers(first, second))
    lasting = Lasting(masters)
    assert set(lasting.shares) == {first.name, second.name}
    masters.set_servers(masters.servers(first, second, third))
    assert lasting.lost() == {}
    for _balancer in range(3):
        masters.fail_over()
        assert lasting.lost() == {}
    masters.set_servers(masters.servers(second, third, drains=[first]))
    assert lasting.lost() == {}
    assert first.name not in Lasting(masters).shares


@families
def test_connections_outlive_a_server_that_is_added_and_one_that_drains(cluster):
    first, second, third = cluster.hosts
    cluster.set_servers(cluster.servers(first, second))
    lasting = Lasting(cluster)
    cluster.set_servers(cluster.servers(first, second, third))
    assert lasting.lost() == {}
    newer = Lasting(cluster)
    assert third.name in newer.shares
    cluster.set_servers(cluster.servers(first, second, drains=[third]))
    assert newer.lost() == {}
    assert third.name not in Lasting(cluster).shares
    cluster.set_servers(cluster.servers(first, second))
    assert lasting.lost() == {}


@families
def test_without_a_second_chance_they_do_not(cluster):
    """What the tests above would see, if the servers' tables did nothing."""
    first, second, third = cluster.hosts
    cluster.balance(cluster.servers(first, second))
    lasting = Lasting(cluster)
    cluster.balance(cluster.servers(first, second, third))
    assert lasting.lost()


@families
def test_a_packet_is_handed_on_once_whatever_the_servers_believe(cluster):
    """Each server takes another one for the owner, and nobody has the connection."""
    hosts = cluster.hosts
    for host, other in zip(hosts, [*hosts[1:], hosts[0]]):
        cluster.give_second_chances(cluster.servers(other), [host])
    cluster.balance(cluster.servers(hosts[0]))
    send_as_stranger(cluster)
    until(lambda: counted(hosts, "dscp") >= STRANGERS, lambda: f"{counted(hosts, 'dscp')} of {STRANGERS} arrived")
    assert counted(hosts, "dup to") == counted(hosts, "dscp") == STRANGERS


@families
def test_a_frame_is_handed_on_once_whatever_the_masters_believe(masters):
    """Each master takes the next one for the only owner. A frame has no hop limit, so it would run in circles."""
    hosts = masters.hosts
    for host, other in zip(hosts, [*hosts[1:], hosts[0]]):
        masters.balance(masters.servers(other, drains=[each for each in hosts if each is not other]), [host])
    send_as_stranger(masters)
    assert sum(sum(steered(host).values()) for host in hosts) == STRANGERS


def send_as_stranger(cluster):
    """Have the client send to the VIP what is of no connection."""
    assert cluster.client.python(STRANGER, cluster.vip, PORT, cluster.balancers[0].mac).wait(30) == 0


def steered(host):
    """Return the packets that a balancer has handed on, by its counters."""
    listed = json.loads(host.output("nft", "-j", "list", "counters"))["nftables"]
    return {each["counter"]["name"]: each["counter"]["packets"] for each in listed if "counter" in each}


def counted(hosts, rule):
    """Return the packets of the rules with some words."""
    lines = [line for host in hosts for line in host.output("nft", "list ruleset").splitlines() if rule in line]
    return sum(int(re.search(r"counter packets (\d+)", line)[1]) for line in lines if "counter" in line)
