# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong around direct return: serving goes on, and what is lost is what the documentation says.

The first member is the balancer, the next three are the servers, and the last one is a stranger.
"""

from __future__ import annotations

import contextlib
import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import config
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.server import command
from support.netns.direct import BUCKETS, PORT, Cluster, Lasting, Plane, behind_balancers, running_plane
from support.netns.links import families, skip_reason, temporary_link
from support.netns.namespaces import inside
from support.waiting import LIMIT_S, until

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))
FLOOD = 100_000  # SYNs
SMALL_MTU = 1400
LONG = 3000  # bytes: more than one segment

# Sends SYNs from 100 addresses of the link to the VIP, as fast as it can, and prints how many a second. More addresses
# would fill the table of neighbours (gc_thresh3), which all namespaces of a machine share: other tests would fail.
FLOODER = """
import socket, sys, time
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import segments
vip, port, mac, own, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
six = ":" in vip
ethernet = bytes.fromhex((mac + own).replace(":", "")) + (b"\\x86\\xdd" if six else b"\\x08\\x00")
def frame(number):
    source = ("2001:db8::9:{}" if six else "192.0.2.{}").format(130 + number % 100)
    ends = segments.Ends(source, 1024 + number * 31 % 60000, vip, port)
    return ethernet + segments.write(ends, segments.SYN, number, 0)
frames = [frame(number) for number in range(2000)]
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as link:
    link.bind(("eth0", 0))
    begin = time.monotonic()
    for number in range(count):
        link.send(frames[number % len(frames)])
print(int(count / (time.monotonic() - begin)), flush=True)
"""

# Prints how many bytes an answer has.
LONG_ANSWER = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), int(sys.argv[4])) as connection:
    connection.sendall(sys.argv[3].encode() + b"\\n")
    received = 0
    while received < int(sys.argv[3]):
        data = connection.recv(65536)
        if not data:
            break
        received += len(data)
print(received, flush=True)
"""
# Answers each line with as many bytes as it says.
LONG_SERVER = """
import socketserver, socket, sys
class Server(socketserver.ThreadingTCPServer):
    address_family, allow_reuse_address, daemon_threads = socket.AF_INET6, True, True
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()
    def handle_error(self, request, client_address):
        pass  # a check resets its connection
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"x" * int(line))
server = Server(("::", int(sys.argv[2])), Answer)
print("ready", flush=True)
server.serve_forever()
"""


def answer_at_length(host):
    assert host.python(LONG_SERVER, host.name, PORT).stdout.readline() == "ready\n"


@pytest.fixture(scope="module")
def the_cluster(vip):
    with behind_balancers(vip, strangers=1, buckets=BUCKETS) as made:
        yield made


@pytest.fixture
def cluster(the_cluster, tmp_path):
    return the_cluster.arrange(tmp_path)


@pytest.fixture
def plane(cluster, tmp_path):
    with running_plane(cluster, tmp_path) as made:
        yield made


def stranger(cluster):
    return cluster.link.members[4]


def names(*hosts):
    return {host.name for host in hosts}


def test_a_flood_of_syns_cuts_no_connection_and_new_ones_succeed_after_it(vip, tmp_path):
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            behind_balancers(vip, strangers=1, buckets=BUCKETS)
        )  # its servers answer the SYNs for a minute
        plane = stack.enter_context(running_plane(cluster.arrange(tmp_path), tmp_path))
        lasting, attacker = Lasting(cluster), stranger(cluster)
        flood = attacker.python(FLOODER, cluster.vip, PORT, cluster.balancers[0].mac, attacker.mac, FLOOD)
        assert lasting.lost() == {}
        print(f"{flood.stdout.readline().strip()} SYNs a second")
        assert flood.wait(LIMIT_S) == 0
        assert lasting.lost() == {}
        assert set(Lasting(cluster).shares) == names(*cluster.hosts)
        assert plane.owners() == names(*cluster.hosts)


def test_a_stranger_with_the_address_of_a_server_gets_no_connection(plane, cluster):
    """It announces itself, and the checks ask it: nothing listens there, or it has no VIP."""
    first, second, third = cluster.hosts
    lasting, other = Lasting(cluster), stranger(cluster)
    other.ip("addr", "add", f"{cluster.own(third)}/{64 if ':' in cluster.vip else 24}", "dev", "eth0", *nodad(cluster))
    other.announce(cluster.own(third))
    until(lambda: plane.owners() == names(first, second), lambda: plane.log)
    assert other.mac not in plane.macs()
    assert set(Lasting(cluster).shares) == names(first, second)
    other.ip("addr", "flush", "dev", "eth0")
    third.announce(cluster.own(third))
    until(lambda: plane.owners() == names(*cluster.hosts), lambda: plane.log)
    assert lasting.lost() == {}, "its own connections stayed with it"


def nodad(cluster):
    return ["nodad"] if ":" in cluster.vip else []


def test_a_server_that_reboots_loses_its_own_connections_alone_and_comes_back(plane, cluster):
    first, second, third = cluster.hosts
    lasting = Lasting(cluster)
    third.ip("link", "set", "eth0", "down")
    plane.kill_server(third)
    third.ip("addr", "del", cluster.on_lo, "dev", "lo")
    third.output("nft", "flush ruleset")
    until(lambda: plane.owners() == names(first, second), lambda: plane.log)
    assert set(Lasting(cluster).shares) == names(first, second)
    # Its path has failed first. A check that began before it is back would find it down once more.
    until(lambda: plane.server(third)["state"] == "down", lambda: plane.log)
    third.ip("link", "set", "eth0", "up")
    if ":" in cluster.vip:
        third.ip("addr", "add", f"{cluster.own(third)}/64", "dev", "eth0", "nodad")
    third.ip("addr", "add", cluster.on_lo, "dev", "lo")
    cluster.serve(third)
    cluster.give_second_chances(cluster.servers(*cluster.hosts), [third])
    until(lambda: plane.owners() == names(*cluster.hosts), lambda: plane.log)
    newer = Lasting(cluster)
    assert set(newer.shares) == names(*cluster.hosts) and newer.lost() == {}
    assert sum(lasting.lost().values()) == lasting.shares[third.name]


@families
def test_a_smaller_mtu_on_the_way_is_found_by_the_servers_themselves(vip, tmp_path):
    """A router on the way says that a packet is too big, to the VIP, which is no server's."""
    with temporary_link(5) as link:
        cluster = Cluster(link, vip, link.members[:1], link.members[1:4], serve=answer_at_length).arrange(tmp_path)
        through_a_router(cluster, link.members[4])
        plane = Plane(cluster, tmp_path)
        settings, _faults = config.parse(plane.path.read_text())
        try:
            for host in cluster.hosts:
                host.ip("addr", "del", cluster.on_lo, "dev", "lo")
                with inside(host.namespace):
                    command.apply(settings, str(tmp_path / host.name / "record.json"))
            until(lambda: plane.owners() == names(*cluster.hosts), lambda: plane.log)
            answers = [link.client.python(LONG_ANSWER, vip, PORT, LONG, LIMIT_S) for _each in range(8)]
            assert [json.loads(each.stdout.readline()) for each in answers] == [LONG] * 8
        finally:
            plane.close()


def through_a_router(cluster, router):
    """Put the client behind a router, on a link with a smaller MTU, of which it does not know itself."""
    client, six = cluster.client, ":" in cluster.vip
    far, near, network = (
        ("2001:db8:2::1", "2001:db8:2::2", "2001:db8:2::/64")
        if six
        else ("198.51.100.1", "198.51.100.2", "198.51.100.0/24")
    )
    router.ip("link", "add", "far", "type", "veth", "peer", "far", "netns", client.namespace)
    client.ip("link", "set", "eth0", "down")
    prefix = network.partition("/")[2]
    for node, address in ((router, far), (client, near)):
        node.ip("addr", "add", f"{address}/{prefix}", "dev", "far", *(["nodad"] if six else []))
        node.ip("link", "set", "far", "up")
    router.ip("link", "set", "far", "mtu", str(SMALL_MTU))
    client.ip("route", "add", "default", "via", far)
    router.set_forwarding(True)
    for node in (*cluster.balancers, *cluster.hosts):
        node.ip("route", "add", network, "via", cluster.own(router))
