# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct return on a link: balancers and servers with real tables, and a client whose connections last."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys

from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import rulesets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import FEWEST, Server
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.rulesets import Service
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket

from support.agent.programs import PATIENT, PYTHONPATH
from support.netns.links import VIP, VIP6, temporary_link
from support.paths import MODULE_UTILS
from support.scope import FULL
from support.waiting import LIMIT_S, until

PORT, PROXY_PORT, CONNECTIONS = 8443, 9445, 100
BUCKETS = FEWEST if FULL else FEWEST // 4  # for tests that ask nft often: the more buckets, the longer it takes
TABLE = ("netdev", "onprem_lb_direct")
# The client's ports: each test's are its own. A server may still have a connection of an earlier test, as its client
# ended while the server had no bucket, and would take the segments of a new one from the same port.
FIRST_PORT, PORTS_PER_TEST, TURNS = 10000, 2500, 20
OWN = {VIP: "192.0.2.{}", VIP6: "2001:db8::{}"}

# Answers each line with its name. Many of them are started, and each has many connections: asyncio would take several
# times as long.
SERVER = """
import contextlib, select, socket, sys
answer, port = sys.argv[1].encode() + b"\\n", int(sys.argv[2])
server = socket.create_server(("::", port), family=socket.AF_INET6, backlog=512, dualstack_ipv6=True)
server.setblocking(False)
ready, connections = select.epoll(), {}
ready.register(server, select.EPOLLIN)
def accept():
    made = server.accept()[0]
    made.setblocking(True)
    connections[made.fileno()] = made
    ready.register(made, select.EPOLLIN)
def reply(connection):
    asked = b""
    with contextlib.suppress(OSError):
        asked = connection.recv(4096)
        connection.sendall(answer * asked.count(b"\\n"))
    if not asked:
        connections.pop(connection.fileno()).close()
print("ready", flush=True)
while True:
    for number, _events in ready.poll():
        if number in connections:
            reply(connections[number])
            continue
        with contextlib.suppress(OSError):  # the client has gone meanwhile
            accept()
"""

# Opens connections that last, and prints which server has how many of them. For each line of its input it asks on all
# of them, and prints what those that are lost got in place of their server's answer.
CLIENT = """
import collections, json, socket, sys, time
vip, (port, count, limit) = sys.argv[1], map(int, sys.argv[2:])
def ask(connection):
    try:
        connection.settimeout(max(0.01, end - time.monotonic()))  # one limit for all of them
        connection.sendall(b"who?\\n")
        return connection.recv(64).decode().strip() or "closed"
    except OSError as error:
        return type(error).__name__
lasting = [socket.create_connection((vip, port), limit) for _ in range(count)]
end = time.monotonic() + limit
first = [ask(connection) for connection in lasting]
print(json.dumps(collections.Counter(first)), flush=True)
for _line in sys.stdin:
    end = time.monotonic() + limit
    now = [ask(connection) for connection in lasting]
    print(json.dumps(collections.Counter(answer for answer, name in zip(now, first) if answer != name)), flush=True)
"""

# Opens connections one after the other, which last, and goes on asking on them, until there is a line of its input.
# Then it asks on all of them, and prints what those that are lost got, and which server has how many.
OPENER = """
import collections, itertools, json, select, socket, sys
vip, (port, limit) = sys.argv[1], map(int, sys.argv[2:])
lasting, lost = [], collections.Counter()
def ask(at):
    try:
        lasting[at][0].sendall(b"who?\\n")
        answer = lasting[at][0].recv(64).decode().strip() or "closed"
    except TimeoutError:
        raise
    except OSError as error:
        answer = type(error).__name__
    lasting[at][1] = lasting[at][1] or answer
    if answer != lasting[at][1]:
        lost[answer] += 1
for at in itertools.count():
    try:
        lasting.append([socket.create_connection((vip, port), limit), ""])
    except TimeoutError:
        raise
    except OSError as error:
        lost[type(error).__name__] += 1
    else:
        ask(len(lasting) - 1)
        ask(at % len(lasting))
    if at == 10:
        print("open", flush=True)
    if select.select([sys.stdin], [], [], 0.005)[0]:
        break
for at in range(len(lasting)):
    ask(at)
print(json.dumps([lost, collections.Counter(name for _connection, name in lasting)]), flush=True)
"""

# Asks on a connection, and for each line of its input resets it and asks on one that it opens from the same port.
SAME_PORT = """
import socket, struct, sys
vip, (port, limit), source = sys.argv[1], map(int, sys.argv[2:]), 0
while True:
    connection = socket.create_connection((vip, port), limit, ("", source))
    source = connection.getsockname()[1]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.sendall(b"who?\\n")
    print(connection.recv(64).decode().strip(), flush=True)
    if not sys.stdin.readline():
        break
    connection.close()
"""


def answer_with_its_name(host, name="", port=PORT):
    assert host.python(SERVER, name or host.name, port).stdout.readline() == "ready\n"


class Cluster:
    """Some balancers, the first of which has the VIP, some servers, and a client.

    :param serve: starts what a server has, and returns once it listens
    :param proxy_port: to which redirects of the hosts lead
    """

    def __init__(self, link, vip, balancers, hosts, serve=answer_with_its_name, proxy_port=0, buckets=FEWEST):
        self.proxy_port, self.serve, self.buckets = proxy_port, serve, buckets
        self.link, self.vip, self.client = link, vip, link.client
        self.balancers, self.hosts = list(balancers), list(hosts)
        self._balancers = tuple(balancers)
        self._first_ports = itertools.cycle(range(FIRST_PORT, FIRST_PORT + TURNS * PORTS_PER_TEST, PORTS_PER_TEST))
        for host in self.hosts:
            host.set_sysctl("ipv4/conf/all/arp_ignore", 1)
            host.set_sysctl("ipv4/conf/all/arp_announce", 2)

    def arrange(self, folder):
        """Put everything as a test finds it, whatever an earlier one has changed, started or ended; return itself."""
        self.folder, self.balancers = folder, list(self._balancers)
        self.client.end_programs()
        first = next(self._first_ports)
        self.client.set_sysctl("ipv4/ip_local_port_range", f"{first} {first + PORTS_PER_TEST - 1}")
        for node in self.link.members:
            self._tidy(node)
        for host in self.hosts:
            host.ip("addr", "replace", self.on_lo, "dev", "lo")
            if not host.processes or host.processes[0].poll() is not None:
                host.end_programs()
                self.serve(host)
        self.give_second_chances(self.servers(*self.hosts))
        return self

    def _tidy(self, node):
        node.set_forwarding(False)
        node.output("nft", "flush", "ruleset")
        node.ip("link", "set", "eth0", "address", node.mac, "up")
        holds = node is self.balancers[0]
        if not node.has(*node.addresses, *[self.vip] * holds):
            node.ip("addr", "flush", "dev", "eth0", "scope", "global")
            node.add_own_addresses()
            if holds:
                self.take_over(node)
        node.ip("neigh", "flush", "dev", "eth0")

    @property
    def on_lo(self):
        """The VIP as a server has it."""
        return f"{self.vip}/{128 if ':' in self.vip else 32}"

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

    def service(self, servers, **more):
        return Service(self.vip, PORT, servers, self.buckets, proxy_port=self.proxy_port, **more)

    def table(self, node, servers, **more):
        macs = {self.own(host): host.mac for host in self.hosts}
        return rulesets.of_balancer([self.service(servers, **more)], "eth0", macs, node.mac)

    def balance(self, servers, balancers=None):
        for node in balancers or self.balancers:
            self.load(node, rulesets.whole(self.table(node, servers)))

    def give_second_chances(self, servers, hosts=None):
        for host in hosts or self.hosts:
            self.load(host, rulesets.of_server([self.service(servers)], "eth0", [self.own(host)]))

    def set_servers(self, servers):
        self.give_second_chances(servers)
        self.balance(servers)

    def fail_over(self):
        first, second = self.balancers[:2]
        first.release(self.vip)
        self.take_over(second)
        self.balancers.append(self.balancers.pop(0))


@contextlib.contextmanager
def behind_balancers(vip, balancers=1, strangers=0, **more):
    """Three servers behind one balancer, or behind more of them, for the tests of a module: each arranges them."""
    with temporary_link(balancers + 3 + strangers) as link:
        yield Cluster(link, vip, link.members[:balancers], link.members[balancers:][:3], **more)


@contextlib.contextmanager
def masters(vip, **more):
    """Three hosts that are balancers and servers at the same time."""
    with temporary_link(3) as link:
        yield Cluster(link, vip, link.members, link.members, **more)


class Lasting:
    """Connections of the client that stay open."""

    def __init__(self, cluster):
        self.process = cluster.client.python(CLIENT, cluster.vip, PORT, CONNECTIONS, LIMIT_S, stdin=subprocess.PIPE)
        self.shares = json.loads(self.process.stdout.readline())

    def lost(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Opener:
    """The client opens connections one after the other, which last, until it is stopped."""

    def __init__(self, cluster):
        self.process = cluster.client.python(OPENER, cluster.vip, PORT, LIMIT_S, stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "open\n"

    def stop(self):
        """Return what those that are lost got, and which server has how many."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class SamePort:
    """A connection of the client that it opens again and again from the same port."""

    def __init__(self, cluster):
        self.process = cluster.client.python(SAME_PORT, cluster.vip, PORT, LIMIT_S, stdin=subprocess.PIPE)
        self.server = self._answer()

    def open_again(self):
        """Return which server has it now."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.server = self._answer()
        return self.server

    def _answer(self):
        return self.process.stdout.readline().strip()


class Plane:
    """A running `agent direct`, by default on the cluster's first balancer. At the end it has ended by itself."""

    def __init__(self, cluster, folder, node=None, **service):
        self.cluster, self.node, self.folder = cluster, node or cluster.balancers[0], folder
        self.path, self.socket, self.down_file = folder / "direct.json", str(folder / "run" / "s"), folder / "down"
        self._log = folder / "log"
        self.write(**service)
        self.start()

    def write(self, pause=0.2, **changes):
        hosts = [{"name": host.name, "address": self.cluster.own(host)} for host in self.cluster.hosts]
        service = {
            "name": "api",
            "bind": self.cluster.vip,
            "port": PORT,
            "servers": hosts,
            "buckets": self.cluster.buckets,
            "check": {"interval": 0.1, "timeout": 1, "fall": 2, "rise": 2},
            **changes,
        }
        self.path.write_text(
            json.dumps(
                {
                    "interface": "eth0",
                    "services": [service],
                    "down_file": str(self.down_file),
                    "stop_pause": pause,
                    "status_socket": self.socket,
                }
            )
        )
        self.path.chmod(0o600)

    def start(self):
        agent = [*PATIENT, "direct", "--config", str(self.path)]
        with open(self._log, "ab") as log:
            command = ["ip", "netns", "exec", self.node.namespace, *agent]
            environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
            self.process = subprocess.Popen(command, cwd=MODULE_UTILS, env=environment, stderr=log, stdout=log)
        try:
            until(lambda: self.process.poll() is not None or self.serves(), lambda: self.log)
        except AssertionError:
            self.process.kill()
            raise
        assert self.process.poll() is None, self.log

    def serves(self):
        with contextlib.suppress(status_socket.Refused):
            return self.report()["table"]["in_force"]

    def reload(self, **changes):
        """Write the configuration, and return once the kernel has what it says, in another transaction."""
        before = self.report()["table"]["transactions"]
        self.write(**changes)
        self.process.send_signal(signal.SIGHUP)
        until(lambda: self.table(transactions=before + 1, in_force=True), lambda: self.log)

    def restart(self, how=signal.SIGUSR2):
        """End it so that its table stays, and start it again."""
        self.process.send_signal(how)
        self.process.wait(LIMIT_S)
        assert self.has_table()
        self.start()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(LIMIT_S) == 0, self.log

    def close(self):
        try:
            if self.process.poll() is None:
                self.stop()
        finally:
            self.process.kill()
            self.process.wait()
        assert "Traceback" not in self.log, self.log

    @property
    def log(self):
        return self._log.read_text()

    def report(self):
        return status_socket.fetch(self.socket, LIMIT_S)

    def table(self, **wanted):
        """Return the report on the table as soon as it has some values."""
        found = self.report()["table"]
        return found if wanted.items() <= found.items() else None

    def servers(self):
        return self.report()["services"][0]["servers"]

    def server(self, host):
        return next(server for server in self.servers() if server["name"] == host.name)

    def owners(self):
        """Return who gets new connections."""
        return {server["name"] for server in self.servers() if server["owner"]}

    def macs(self):
        """Return the MACs that the kernel's table has."""
        listed = json.loads(self.node.output("nft", "-j", "list", "table", *TABLE))["nftables"]
        found = [item["map"].get("elem", []) for item in listed if item.get("map", {}).get("map") == "ether_addr"]
        return {mac for elements in found for _key, mac in elements}

    def has_table(self):
        tables = json.loads(self.node.output("nft", "-j", "list", "tables"))["nftables"]
        return any(item.get("table", {}).get("name") == TABLE[1] for item in tables)

    def order(self, order, host):
        return cli.main(["server", order, f"api/{host.name}", "--socket", self.socket])

    def kill_server(self, host):
        os.kill(host.processes[0].pid, signal.SIGKILL)


@contextlib.contextmanager
def running_plane(cluster, folder):
    """A plane on the cluster's first balancer; if a test fails, with its log."""
    made = Plane(cluster, folder)
    try:
        yield made
    except BaseException:
        sys.stderr.write(made.log)
        raise
    finally:
        made.close()
