# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The redirect of a master, with real nft and a real kernel: which program answers at the VIP and at other addresses.

Each of two masters has a "kube-apiserver" on 6443 and a "haproxy" on 9445, which answer with their names.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import rulesets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import Server
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.rulesets import Service
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import redirect as nft_redirect
from support.netns.links import PORT, VIP, VIP6, sh, skip_reason, temporary_link
from support.waiting import LIMIT_S

API, LB = 6443, 9445
OWN = {VIP: "192.0.2.{}", VIP6: "2001:db8::{}"}
POD = {
    VIP: ("198.51.100.0/24", "198.51.100.1", "198.51.100.2"),
    VIP6: ("2001:db8:1::/64", "2001:db8:1::1", "2001:db8:1::2"),
}

# Answers each line with its name, the address of its end of the connection, and the line's number.
SERVER = """
import socketserver, socket, sys
class Server(socketserver.ThreadingTCPServer):
    address_family, allow_reuse_address, daemon_threads, request_queue_size = socket.AF_INET6, True, True, 512
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        asked = self.request.getsockname()[0].replace("::ffff:", "")
        for number, _line in enumerate(self.rfile, 1):
            self.wfile.write(f"{sys.argv[1]} at {asked} {number}\\n".encode())
server = Server(("::", int(sys.argv[2])), Answer)
print("ready", flush=True)
server.serve_forever()
"""

# Sends a line over one connection for each line of its input, and prints the answers.
ASK = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 90) as connection:
        answers = connection.makefile()
        for _line in sys.stdin:
            connection.sendall(b"who?\\n")
            print(answers.readline().strip(), flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
"""

# Opens one connection after the other until its input ends, and prints the distinct answers.
HAMMER = """
import select, socket, sys
seen, number = set(), 0
while not select.select([sys.stdin], [], [], 0)[0] or number < 300:
    try:
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), 90) as connection:
            connection.sendall(b"who?\\n")
            seen.add(connection.makefile().readline().split(" at ")[0])
    except OSError as error:
        seen.add(type(error).__name__)
    number += 1
    if number == 1:
        print("running", flush=True)
print(sorted(seen), flush=True)
"""

both_families = pytest.mark.parametrize("vip", [VIP, VIP6], ids=["IPv4", "IPv6"])


def inside(node, code, *arguments):
    return ["ip", "netns", "exec", node.namespace, sys.executable, "-c", code, *map(str, arguments)]


def run(node, code, *arguments):
    """Start Python code with pipes."""
    return node.python(code, *arguments, stdin=subprocess.PIPE)


def ask(node, address, port=API):
    """Return which program answers a node, and at which address."""
    command = inside(node, ASK, address, port)
    answer = subprocess.run(
        command, input="who?\n", stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True
    ).stdout
    return answer.strip().removesuffix(" 1")


class Connection:
    """A connection that stays open."""

    def __init__(self, node, address, port=API):
        self.process = run(node, ASK, address, port)

    def ask(self):
        self.process.stdin.write("who?\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


def own(node, vip):
    return OWN[vip].format(node.number)


def listing(node):
    return node.output("nft", "list", "ruleset")


@pytest.fixture
def redirect(tmp_path):
    """Return a function that loads the redirect's file on a node."""

    def load(node, *vips, text="", **more):
        path = tmp_path / f"{node.name}.nft"
        path.write_text(text or nft_redirect.ruleset(vips or (VIP, VIP6), {API: LB}, **more))
        node.output("nft", "--file", str(path))

    return load


def remove(node):
    node.output("nft", nft_redirect.DELETE)


@pytest.fixture(scope="module")
def link():
    """One link for all tests here, because a new one takes two seconds. Each test leaves it as it was."""
    if skip_reason("nft"):
        pytest.skip(skip_reason("nft"))
    with temporary_link() as link:
        for node in link.members:
            for name, port in (("api", API), ("haproxy", LB)):
                serve(node, name, port)
        yield link


def serve(node, name, port):
    assert node.python(SERVER, f"{node.name} {name}", port).stdout.readline() == "ready\n"


@pytest.fixture
def masters(link):
    """Two masters that serve, of which lb1 holds the VIPs. There is no redirect yet."""
    before = {node.name: list(node.processes) for node in link.nodes}
    try:
        link.lb1.take_over(VIP, VIP6)
        yield link
    finally:
        for node in link.nodes:
            for process in node.processes:
                if process not in before[node.name]:
                    end(process)
            node.processes[:] = before[node.name]
            node.output("nft", "flush ruleset")
            node.ip("-4", "addr", "flush", "dev", "eth0", "to", f"{VIP}/31")
            node.ip("-6", "addr", "flush", "dev", "eth0", "to", VIP6)


def end(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(AttributeError, BrokenPipeError):
            pipe.close()


class Pod:
    """A namespace behind a node, which routes for it, as a container network does."""

    def __init__(self, node, neighbours=()):
        """:param neighbours: nodes with a route to it"""
        self.node, self.neighbours, self.namespace = node, neighbours, f"{node.namespace}-pod"

    def __enter__(self):
        sh("ip", "netns", "add", self.namespace)
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self):
        peer = ("peer", "eth0", "netns", self.namespace)
        self.node.ip("link", "add", "pod0", "type", "veth", *peer)
        self.node.ip("link", "set", "pod0", "up")
        sh("ip", "-n", self.namespace, "link", "set", "eth0", "up")
        for vip, (network, gateway, address) in POD.items():
            no_dad = ["nodad"] if ":" in network else []
            prefix = network.partition("/")[2]
            self.node.ip("addr", "add", f"{gateway}/{prefix}", "dev", "pod0", *no_dad)
            sh("ip", "-n", self.namespace, "addr", "add", f"{address}/{prefix}", "dev", "eth0", *no_dad)
            sh("ip", "-n", self.namespace, "route", "add", "default", "via", gateway)
            for node in self.neighbours:
                node.ip("route", "add", network, "via", own(self.node, vip))
        self.node.set_forwarding(True)

    def __exit__(self, *_exception):
        self.node.set_forwarding(False)
        for network, *_addresses in POD.values():
            for node in self.neighbours:
                subprocess.run(["ip", "-n", node.namespace, "route", "del", network], check=False, capture_output=True)
        sh("ip", "netns", "del", self.namespace)
        # The namespace, and the peer of pod0 in it, may exist a little longer than its name.
        subprocess.run(["ip", "-n", self.node.namespace, "link", "del", "pod0"], check=False, capture_output=True)


@both_families
def test_the_holders_haproxy_answers_clients_at_the_vip(masters, redirect, vip):
    redirect(masters.lb1)
    assert ask(masters.client, vip) == f"lb1 haproxy at {vip}"


@both_families
def test_the_holder_itself_reaches_its_own_haproxy_at_the_vip(masters, redirect, vip):
    redirect(masters.lb1)
    assert ask(masters.lb1, vip) == f"lb1 haproxy at {vip}"


@both_families
def test_another_master_reaches_the_holders_haproxy_at_the_vip(masters, redirect, vip):
    redirect(masters.lb1)
    redirect(masters.lb2)
    assert ask(masters.lb2, vip) == f"lb1 haproxy at {vip}"


@both_families
def test_the_redirect_of_another_master_does_not_change_what_answers_at_the_vip(masters, redirect, vip):
    """The holder's haproxy may be dead, and then connections must not go to its port."""
    redirect(masters.lb2)
    assert ask(masters.lb2, vip) == f"lb1 api at {vip}"


@both_families
def test_the_redirect_moves_with_the_vip(masters, redirect, vip):
    redirect(masters.lb1)
    redirect(masters.lb2)
    masters.lb1.release(vip)
    masters.lb2.take_over(vip)
    assert ask(masters.client, vip) == f"lb2 haproxy at {vip}"
    assert ask(masters.lb2, vip) == f"lb2 haproxy at {vip}"
    assert ask(masters.lb1, vip) == f"lb2 haproxy at {vip}"


@both_families
def test_in_direct_return_clients_reach_the_api_server_and_a_master_and_its_pods_haproxy(masters, redirect, vip):
    """The pod's packets are for a socket of haproxy's port: a second chance would lead them to another master."""
    master = masters.lb1
    servers = [Server(own(node, vip)) for node in masters.members]
    redirect(master, direct_interface="eth0")
    redirect(master, text=rulesets.of_server([Service(vip, API, servers, 256)], "eth0", [own(master, vip)]))
    assert ask(masters.client, vip) == f"lb1 api at {vip}"
    assert ask(master, vip) == f"lb1 haproxy at {vip}"
    with Pod(master) as pod:
        assert ask(pod, vip) == f"lb1 haproxy at {vip}"


@both_families
def test_a_nodes_own_address_leads_to_its_api_server_for_clients_and_for_health_checks(masters, redirect, vip):
    redirect(masters.lb1)
    redirect(masters.lb2)
    for asking in masters.nodes:
        for asked in masters.members:
            assert ask(asking, own(asked, vip)) == f"{asked.name} api at {own(asked, vip)}"
    loopback = "::1" if ":" in vip else "127.0.0.1"
    assert ask(masters.lb1, loopback) == f"lb1 api at {loopback}"


@both_families
def test_another_port_of_the_vip_is_left_alone(masters, redirect, vip):
    redirect(masters.lb1)
    serve(masters.lb1, "router", PORT)
    assert ask(masters.client, vip, PORT) == f"lb1 router at {vip}"
    assert ask(masters.client, vip, LB) == f"lb1 haproxy at {vip}"


@both_families
def test_a_pod_on_the_holder_reaches_haproxy(masters, redirect, vip):
    redirect(masters.lb1)
    with Pod(masters.lb1) as pod:
        assert ask(pod, vip) == f"lb1 haproxy at {vip}"
        assert ask(pod, own(masters.lb1, vip)) == f"lb1 api at {own(masters.lb1, vip)}"


@both_families
def test_a_pod_on_another_master_reaches_what_the_holder_answers_with(masters, redirect, vip):
    redirect(masters.lb2)
    with Pod(masters.lb2, neighbours=[masters.lb1]) as pod:
        assert ask(pod, vip) == f"lb1 api at {vip}"
        redirect(masters.lb1)
        assert ask(pod, vip) == f"lb1 haproxy at {vip}"


@both_families
def test_without_the_redirect_the_local_api_server_answers_at_the_vip(masters, redirect, vip):
    redirect(masters.lb1)
    remove(masters.lb1)
    assert listing(masters.lb1) == ""
    assert ask(masters.client, vip) == f"lb1 api at {vip}"
    assert ask(masters.lb1, vip) == f"lb1 api at {vip}"


def test_removing_a_missing_redirect_succeeds_and_leaves_other_tables(masters, redirect):
    masters.lb1.output("nft", "add table inet filter")
    redirect(masters.lb1)
    remove(masters.lb1)
    remove(masters.lb1)
    assert listing(masters.lb1).split() == ["table", "inet", "filter", "{", "}"]


def test_a_changed_vip_replaces_the_rules_and_leaves_other_tables(masters, redirect):
    masters.lb1.output("nft", "add table inet filter")
    redirect(masters.lb1)
    masters.lb1.take_over("192.0.2.101")
    redirect(masters.lb1, "192.0.2.101")
    assert VIP not in listing(masters.lb1) and VIP6 not in listing(masters.lb1)
    assert "table inet filter" in listing(masters.lb1)
    assert ask(masters.client, "192.0.2.101") == "lb1 haproxy at 192.0.2.101"
    assert ask(masters.client, VIP) == f"lb1 api at {VIP}"


def test_loading_the_redirect_twice_changes_nothing(masters, redirect):
    redirect(masters.lb1)
    once = listing(masters.lb1)
    redirect(masters.lb1)
    assert listing(masters.lb1) == once
    assert ask(masters.client, VIP) == f"lb1 haproxy at {VIP}"


@both_families
def test_open_connections_survive_a_redirect_that_is_loaded_again(masters, redirect, vip):
    redirect(masters.lb1)
    connections = [Connection(masters.client, vip), Connection(masters.lb1, vip)]
    assert [connection.ask() for connection in connections] == [f"lb1 haproxy at {vip} 1"] * 2
    redirect(masters.lb1)
    redirect(masters.lb1, vip, "192.0.2.101")
    assert [connection.ask() for connection in connections] == [f"lb1 haproxy at {vip} 2"] * 2


@both_families
def test_connections_to_the_api_server_survive_the_redirects_coming_and_going(masters, redirect, vip):
    """They were opened while haproxy was dead; the kernel may not have tracked connections then."""
    connections = [Connection(masters.client, vip), Connection(masters.lb1, vip)]
    assert [connection.ask() for connection in connections] == [f"lb1 api at {vip} 1"] * 2
    redirect(masters.lb1)
    assert [connection.ask() for connection in connections] == [f"lb1 api at {vip} 2"] * 2
    remove(masters.lb1)
    assert [connection.ask() for connection in connections] == [f"lb1 api at {vip} 3"] * 2


@both_families
def test_the_redirect_works_at_any_time_while_it_is_loaded_again(masters, redirect, vip):
    redirect(masters.lb1)
    hammer = run(masters.client, HAMMER, vip, API)
    assert hammer.stdout.readline() == "running\n"
    for _time in range(20):
        redirect(masters.lb1)
    assert hammer.communicate(timeout=LIMIT_S)[0] == "['lb1 haproxy']\n"


def test_the_redirect_comes_before_other_nat_rules_for_local_addresses(masters, redirect):
    other = "chain HOOK { type nat hook HOOK priority -100; fib daddr type local tcp dport 6443 redirect to :1; };"
    chains = " ".join(other.replace("HOOK", hook) for hook in ("prerouting", "output"))
    masters.lb1.output("nft", f"table ip kube {{ {chains} }}")
    redirect(masters.lb1)
    assert ask(masters.client, VIP) == f"lb1 haproxy at {VIP}"
    assert ask(masters.lb1, VIP) == f"lb1 haproxy at {VIP}"


def check(node, path, content):
    """Have nft test a file, as the module config_files does."""

    def run_nft(command):
        command = ["ip", "netns", "exec", node.namespace, *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    file = {"path": str(path), "content": content, "mode": "0644", "state": "present", "check": "nft"}
    return files.replace_all(files.changes([file]), lambda name: name, run_nft, os.rename, dry=False)


def test_nft_accepts_the_file_without_loading_it(masters, tmp_path):
    assert check(masters.lb1, tmp_path / "redirect.nft", nft_redirect.ruleset([VIP, VIP6], {API: LB})) == ([], [])
    assert listing(masters.lb1) == ""


@pytest.mark.parametrize("wrong", ["typ nat hook prerouting", "type nat hook forward"], ids=["nft", "the kernel"])
def test_a_file_that_nft_or_the_kernel_refuses_does_not_reach_its_place(masters, tmp_path, wrong):
    text = nft_redirect.ruleset([VIP], {API: LB}).replace("type nat hook prerouting", wrong)
    path = tmp_path / "redirect.nft"
    with pytest.raises(files.Refused, match=f"nft refuses the new {path}, so nothing was changed. .* Error: "):
        check(masters.lb1, path, text)
    assert os.listdir(tmp_path) == []
