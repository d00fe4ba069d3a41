# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct return with real nft and a real kernel: lasting connections survive what moves their buckets, or the VIP."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.direct import rulesets
from ansible_collections.onprem.lb.plugins.module_utils._plan.direct.buckets import Server
from ansible_collections.onprem.lb.plugins.module_utils._plan.direct.rulesets import Service
from support.netns.links import VIP, VIP6, skip_reason, temporary_link

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))  # loads rulesets, as root
PORT, CONNECTIONS, BUCKETS = 8443, 100, 4096
OWN = {VIP: "192.0.2.{}", VIP6: "2001:db8::{}"}

# Answers each line with its name.
SERVER = """
import asyncio, sys
async def answer(reader, writer):
    while await reader.readline():
        writer.write(sys.argv[1].encode() + b"\\n")
    writer.close()
async def main():
    server = await asyncio.start_server(answer, None, int(sys.argv[2]), backlog=512)
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""

# Opens connections that last, and prints which server has how many of them. For each line of its input it asks on all
# of them, and prints what those that are lost got in place of their server's answer.
CLIENT = """
import collections, json, socket, sys
vip, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def ask(connection):
    try:
        connection.sendall(b"who?\\n")
        return connection.recv(64).decode().strip() or "closed"
    except OSError as error:
        return type(error).__name__
lasting = [socket.create_connection((vip, port), 3) for _ in range(count)]
first = [ask(connection) for connection in lasting]
print(json.dumps(collections.Counter(first)), flush=True)
for _line in sys.stdin:
    now = [ask(connection) for connection in lasting]
    print(json.dumps(collections.Counter(answer for answer, name in zip(now, first) if answer != name)), flush=True)
"""

# Sends segments of a connection that nobody has.
STRANGERS = 20
STRANGER = f"""
import sys
from scapy.all import IP, IPv6, TCP, send
vip, port = sys.argv[1], int(sys.argv[2])
ip = (IPv6 if ":" in vip else IP)(dst=vip)
send([ip / TCP(sport=40000 + number, dport=port, flags="A", seq=1, ack=1) for number in range({STRANGERS})], verbose=0)
"""


class Cluster:
    """Some balancers, the first of which has the VIP, some servers, and a client."""

    def __init__(self, link, folder, vip, balancers, hosts):
        self.folder, self.vip, self.client = folder, vip, link.client
        self.balancers, self.hosts = list(balancers), list(hosts)
        for host in self.hosts:
            host.set_sysctl("ipv4/conf/all/arp_ignore", 1)
            host.set_sysctl("ipv4/conf/all/arp_announce", 2)
            host.ip("addr", "add", f"{vip}/{128 if ':' in vip else 32}", "dev", "lo")
            assert host.python(SERVER, host.name, PORT).stdout.readline() == "ready\n"
        self.balancers[0].take_over(vip)

    def own(self, host):
        return OWN[self.vip].format(host.number)

    def servers(self, *hosts, drains=()):
        return [Server(self.own(host), drains=host in drains) for host in (*hosts, *drains)]

    def load(self, node, text):
        path = self.folder / "ruleset.nft"
        path.write_text(text)
        node.output("nft", "--file", str(path))

    def balance(self, servers):
        service = Service(self.vip, PORT, servers, BUCKETS)
        macs = {self.own(host): host.mac for host in self.hosts}
        for node in self.balancers:
            self.load(node, rulesets.of_balancer([service], "eth0", macs, node.mac))

    def give_second_chances(self, servers, hosts=None):
        for host in hosts or self.hosts:
            self.load(host, rulesets.of_server([Service(self.vip, PORT, servers, BUCKETS)], "eth0", self.own(host)))

    def set_servers(self, servers):
        self.give_second_chances(servers)
        self.balance(servers)

    def fail_over(self):
        first, second = self.balancers[:2]
        first.release(self.vip)
        second.take_over(self.vip)
        self.balancers.append(self.balancers.pop(0))


class Lasting:
    """Connections of the client that stay open."""

    def __init__(self, cluster):
        self.process = cluster.client.python(CLIENT, cluster.vip, PORT, CONNECTIONS, stdin=subprocess.PIPE)
        self.shares = json.loads(self.process.stdout.readline())

    def lost(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


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
    assert cluster.client.python(STRANGER, cluster.vip, PORT).wait(30) == 0
    handed_on = [number for host in hosts for number in counted(host, "dup to")]
    stayed = [number for host in hosts for number in counted(host, "dscp")]
    assert sum(handed_on) == sum(stayed) == STRANGERS


def counted(host, rule):
    """Return the packets of the rules with some words."""
    lines = host.output("nft", "list ruleset").splitlines()
    return [int(re.search(r"counter packets (\d+)", line)[1]) for line in lines if rule in line and "counter" in line]
