# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct return on a link: balancers and servers with real tables, and a client whose connections last."""

from __future__ import annotations

import json
import subprocess

from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import rulesets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import Server
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.rulesets import Service

from support.netns.links import VIP, VIP6

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
        self.take_over(self.balancers[0])

    def take_over(self, node):
        """Have a balancer hold the VIP. As with VRRP it is deprecated in IPv6, so that no check comes from it."""
        node.take_over(self.vip)
        if ":" in self.vip:
            node.ip("addr", "change", f"{self.vip}/128", "dev", "eth0", "preferred_lft", "0")

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
            self.load(node, rulesets.whole(rulesets.of_balancer([service], "eth0", macs, node.mac)))

    def give_second_chances(self, servers, hosts=None):
        for host in hosts or self.hosts:
            self.load(host, rulesets.of_server([Service(self.vip, PORT, servers, BUCKETS)], "eth0", [self.own(host)]))

    def set_servers(self, servers):
        self.give_second_chances(servers)
        self.balance(servers)

    def fail_over(self):
        first, second = self.balancers[:2]
        first.release(self.vip)
        self.take_over(second)
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
