# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link for a test: a bridge, members and a client, each in its own network namespace.

The bridge does not snoop multicast, because without a querier it would drop what VRRP and neighbour discovery send. The
names contain the run and the process, so that several links can exist at once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import collection, leaks
from support.netns.namespaces import inside
from support.paths import COLLECTIONS
from support.waiting import until

collection.make_importable()
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import announce, netlink  # noqa: E402

VIP, VIP6 = "192.0.2.100", "2001:db8::100"
families = pytest.mark.parametrize("vip", [VIP, VIP6], ids=["IPv4", "IPv6"], scope="module")
PORT = 8443
# They read nothing in /sys. For the others `ip netns exec` mounts it, which takes three times as long as they do.
WITHOUT_SYS = ("ip", "nft", "ss", "sysctl", "cat")
_serial = itertools.count()
IPV6_ADDR_LINKLOCAL, IFA_F_TENTATIVE = 0x20, 0x40  # linux/ipv6.h, linux/if_addr.h

# Accepts connections on every address, also on those that are added later, and answers any data. Prints "ready"
# when it listens, and "served" after the first connection.
SERVER = """
import socket, sys
port = int(sys.argv[1])
server = socket.create_server(("::", port), family=socket.AF_INET6, backlog=4096, dualstack_ipv6=True)
print("ready", flush=True)
served = False
while True:
    try:
        connection, _ = server.accept()
        if not served:
            print("served", flush=True)
            served = True
        connection.settimeout(0.2)
        if connection.recv(64):
            connection.send(b"here")
    except OSError:
        pass
    connection.close()
"""


def sh(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def batch(namespace, *commands):
    """Run several commands of `ip` in one process, because each process takes its time."""
    command = ["ip", "-n", namespace, "-batch", "-"]
    subprocess.run(command, input="\n".join(commands), check=True, capture_output=True, text=True)


class Node:
    def __init__(self, link, name, number):
        self.link, self.name, self.number = link, name, number
        self.namespace = f"{link.prefix}-{name}"
        self.mac = f"02:00:00:00:00:{number:02x}"
        self.addresses = (f"192.0.2.{number}", f"2001:db8::{number}")
        self.port = f"p{number}"  # its end at the bridge
        self.processes = []

    def create(self):
        sh("ip", "netns", "add", self.namespace)
        self.set_dad(False, "default")
        self.set_forwarding(False)

    def connect(self):
        """Set the interface up, which the bridge has created."""
        batch(self.namespace, "link set lo up", f"link set eth0 address {self.mac} up")
        self.add_own_addresses()

    def add_own_addresses(self):
        address, address6 = self.addresses
        batch(self.namespace, f"addr add {address}/24 dev eth0", f"addr add {address6}/64 dev eth0 nodad")

    def has_link_local(self):
        """Return whether it has a link-local address that is not tentative, because nothing can be sent from it before.

        This polls: `ip monitor` does not say when it begins to listen, so it may miss the change.
        """
        with inside(self.namespace), open("/proc/thread-self/net/if_inet6") as file:
            fields = [line.split() for line in file]
        return any(
            name == "eth0" and int(scope, 16) == IPV6_ADDR_LINKLOCAL and not int(flags, 16) & IFA_F_TENTATIVE
            for _address, _index, _prefix, scope, flags, name in fields
        )

    def set_dad(self, enabled, interface="eth0"):
        """Set duplicate address detection (RFC 4862, 5.4). A new address is tentative for two seconds with it."""
        for name in ("accept_dad", "dad_transmits"):
            self.set_sysctl(f"ipv6/conf/{interface}/{name}", enabled)

    def set_forwarding(self, enabled):
        """Set IP forwarding. A new namespace inherits it from the machine, where a container engine may need it."""
        for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            self.set_sysctl(name, enabled)

    def set_sysctl(self, name, value):
        """Set a parameter of the kernel for this namespace.

        A write to `forwarding` does not sleep until other processes have set up their links: it computes until then.
        """
        with inside(self.namespace):
            file, wanted = Path("/proc/sys/net", name), value if isinstance(value, str) else str(int(value))
            if file.read_text().strip() != wanted:
                file.write_text(wanted)

    def ip(self, *arguments):
        sh("ip", "-n", self.namespace, *arguments)

    def output(self, *command):
        if command[0] not in WITHOUT_SYS:
            return sh("ip", "netns", "exec", self.namespace, *command)
        with inside(self.namespace):
            return sh(*command)

    def processes_inside(self):
        pids = subprocess.run(["ip", "netns", "pids", self.namespace], check=True, capture_output=True, text=True)
        return list(map(int, pids.stdout.split()))

    def python(self, code, *arguments, stdin=None, packages=False):
        """Start Python code in the namespace; it ends with the test.

        :param packages: whether it imports some; otherwise it starts in half the time
        """
        environment = dict(os.environ, PYTHONPATH=str(COLLECTIONS))
        python = [sys.executable, *([] if packages else ["-S"]), "-c", code]
        command = ["ip", "netns", "exec", self.namespace, *python, *map(str, arguments)]
        pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)
        self.processes.append(process)
        return process

    def serve(self, port=PORT):
        server = self.python(SERVER, port)
        assert server.stdout.readline() == "ready\n"
        return server

    def take_over(self, *addresses):
        """Add the addresses and announce them, as a VRRP router does when it becomes Active."""
        for address in addresses:
            self.ip("addr", "add", address, "dev", "eth0", *(["nodad"] if ":" in address else []))
            self.announce(address)

    def announce(self, address, mac=""):
        """Tell all hosts that an address is at this one, or at another hardware address."""
        mac = bytes.fromhex((mac or self.mac).replace(":", ""))
        with inside(self.namespace), announce.open_packet_socket() as sock:
            announce.Announcer(lambda: sock).announcing(netlink.Link(0, "eth0", True, mac), address)()

    def has(self, *addresses):
        """Return whether these and no others are its global addresses at the link."""
        shown = json.loads(self.output("ip", "-json", "addr", "show", "dev", "eth0", "scope", "global"))
        return {known["local"] for link in shown for known in link.get("addr_info", []) if known} == {*addresses}

    def release(self, *addresses):
        for address in addresses:
            self.ip("addr", "del", f"{address}/{128 if ':' in address else 32}", "dev", "eth0")

    def end_programs(self):
        """End what ``python`` has started."""
        for process in self.processes:
            # The whole process group, because a killed parent leaves its children behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
        self.processes = []

    def stop(self):
        self.end_programs()
        subprocess.run(["ip", "netns", "del", self.namespace], check=False, capture_output=True)


class Link:
    def __init__(self, members=2):
        self.prefix = f"{leaks.prefix()}-{os.getpid()}-{next(_serial)}"
        self.bridge = f"{self.prefix}-br"
        names = [f"lb{number}" for number in range(1, members + 1)]
        self.nodes = [Node(self, name, number) for number, name in enumerate([*names, "client"], 1)]
        *self.members, self.client = self.nodes
        self.lb1, self.lb2 = self.members[:2]

    def start(self):
        sh("ip", "netns", "add", self.bridge)
        for node in self.nodes:
            node.create()
        ports = [f"link add {node.port} type veth peer eth0 netns {node.namespace}" for node in self.nodes]
        ports += [f"link set {node.port} master br0 up" for node in self.nodes]
        batch(self.bridge, "link add br0 type bridge mcast_snooping 0", "link set br0 up", *ports)
        for node in self.nodes:
            node.connect()
        for node in self.nodes:
            until(node.has_link_local, f"{node.name} has no link-local address")

    def stop(self):
        for node in self.nodes:
            node.stop()
        subprocess.run(["ip", "netns", "del", self.bridge], check=False, capture_output=True)


def skip_reason(*programs):
    """Return why this machine cannot run tests that need network namespaces and these programs; empty if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [name for name in ("ip", *programs) if not shutil.which(name)]
    return f"not installed: {', '.join(missing)}" if missing else ""


@contextlib.contextmanager
def temporary_link(members: int = 2):
    """Yield a link, and remove it afterwards. Skip the test if this machine cannot have one."""
    if skip_reason():
        pytest.skip(skip_reason())
    link = Link(members)
    try:
        link.start()
        yield link
    finally:
        link.stop()
