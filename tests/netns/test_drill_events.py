# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the forecast says of a drill's events is so: a balancer that hangs, Advertisements that are lost one way, a port
that goes down, a link that flaps.

haproxy and keepalived, or the agent's two daemons, run with what the roles render for a plan. The balancer is suspended
with SIGSTOP, so that its process is still there, and the kernel still accepts connections for it. A balancer that only
has all of its connections keeps its VIP.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import backend, conntrack, faults, ports, stranger
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.forecast import SWITCH_MS
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from support import rendering
from support.netns.keepaliveds import Cluster
from support.netns.links import sh, skip_reason
from support.netns.namespaces import inside
from support.paths import MODULE_UTILS
from support.plans.pairs import member
from support.waiting import until

PROGRAMS = ("haproxy", "keepalived", "nft")
pytestmark = [
    pytest.mark.timed,
    pytest.mark.skipif(bool(skip_reason(*PROGRAMS)), reason=str(skip_reason(*PROGRAMS))),
]
VIP, PORT, CONNECTIONS = "192.0.2.10", 8443, 20
SERVICES = [{"name": "web", "port": PORT, "servers": ["192.0.2.3"]}]  # the client's host
LIMIT = 60.0  # seconds
REFRESH = 5  # seconds between two announcements of the holder's addresses, a minute by default


def router(planned, folder):
    """The router's settings of a planned member, whose balancer writes its down file in a folder of the test."""
    instances = [{**each, "garp_refresh": REFRESH} for each in planned.router.instances]
    down = [{"name": pair.DOWN, "path": str(folder / "down")}]
    return {**planned.router._asdict(), "instances": instances, "track_files": down}


class Native(Cluster):
    """haproxy and keepalived on every member."""

    def _prepare(self, name):
        own, planned = self.folder / name, self.plan.members[name]
        own.mkdir(parents=True)
        port = planned.balancer.answer_port
        text = rendering.haproxy(SERVICES, haproxy_answer_port=port, haproxy_maxconn=CONNECTIONS)
        (own / "haproxy.cfg").write_text(text.replace("/run/haproxy/admin.sock", str(own / "admin.sock")))
        settings = router(planned, own)
        (own / "down").write_text("0\n")
        (own / "keepalived.conf").write_text(
            rendering.keepalived(
                {**settings, "auth_pass": "0f3a9c1e"},
                name,
                self.hook,
                keepalived_config_path=str(own / "keepalived.conf"),
            )
        )

    def start(self, name):
        own = self.folder / name
        command = ["ip", "netns", "exec", self.nodes[name].namespace, shutil.which("haproxy"), "-W", "-f"]
        with open(own / "haproxy.log", "w") as log:
            balancer = subprocess.Popen(
                [*command, str(own / "haproxy.cfg")], stdout=log, stderr=log, start_new_session=True
            )
        self.running[f"{name}'s balancer"] = balancer
        with inside(self.nodes[name].namespace):
            until(lambda: is_open("127.0.0.1", self.plan.members[name].balancer.answer_port), "haproxy does not answer")
        super().start(name)


class Terse(Native):
    """Its keepaliveds announce a VIP when they take it over and when they have to, and not once more later."""

    def _prepare(self, name):
        super()._prepare(name)
        path = self.folder / name / "keepalived.conf"
        terse = "garp_master_refresh 0\n    garp_master_delay 0"
        path.write_text(path.read_text().replace(f"garp_master_refresh {REFRESH}", terse))


class Agents(Cluster):
    """The agent's two daemons on every member."""

    def _prepare(self, name):
        own, planned = self.folder / name, self.plan.members[name]
        own.mkdir(parents=True)
        (own / "down").write_text("0\n")
        balancer = {"services": SERVICES, "answer_port": planned.balancer.answer_port, "maxconn": CONNECTIONS}
        found = agent.translate({**balancer, **router(planned, own), "auth_pass": "0f3a9c1e"})
        assert found["faults"] == []
        for daemon in ("proxy", "vrrp"):
            own_socket = {"status_socket": str(own / f"{daemon}.sock")}
            (own / f"{daemon}.json").write_text(json.dumps({**found[daemon], **own_socket}))

    def start(self, name):
        for daemon in ("proxy", "vrrp"):
            self._start(name, daemon)

    def _start(self, name, daemon):
        own = self.folder / name
        # The check by name looks for this program.
        program = ["bash", "-c", f'exec -a onprem-lb-{daemon} "$0" "$@"', sys.executable, "-m", "_agent.cli", daemon]
        command = ["ip", "netns", "exec", self.nodes[name].namespace, *program, "--config", str(own / f"{daemon}.json")]
        environment = {**os.environ, "PYTHONPATH": str(MODULE_UTILS)}
        with open(own / f"{daemon}.log", "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        self.running[f"{name}'s balancer" if daemon == "proxy" else name] = process


def is_open(address, port):
    with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
        return True
    return False


ENGINES = {"native": Native, "agent": Agents}


@contextlib.contextmanager
def running(engine, folder, made_by=None, **settings):
    """Run the members of a pair.

    :param made_by: a class, if it is not the engine's
    """
    plan = pair.plan([member(number, engine=engine, services=SERVICES, **settings) for number in (1, 2)])
    assert plan.faults == []
    with (made_by or ENGINES[engine])(plan, folder, threading.Event()) as made:
        yield made


@pytest.fixture(params=ENGINES)
def cluster(request, tmp_path):
    """The members of a pair, of which the first one holds the VIP."""
    with running(request.param, tmp_path) as made, contextlib.ExitStack() as servers:
        with inside(made.link.client.namespace):  # a server that keeps its connections
            made.server = servers.enter_context(socket.create_server(("", PORT), backlog=512))
        assert made.settle({VIP: "lb1"}, LIMIT), made.recorder.views(VIP)
        yield made


@contextlib.contextmanager
def session(cluster):
    """A connection through the balancer: the client's end, and the server's."""
    with contextlib.ExitStack() as ends:
        yield until(lambda: greeted(ends, cluster.server), "no server is up")


def greeted(ends, server):
    """Return both ends of a connection whose first bytes have reached the server, or nothing: it may still be down."""
    client = ends.enter_context(socket.create_connection((VIP, PORT), 1))
    client.sendall(b"hello")
    while select.select([server], [], [], 0.5)[0]:
        connection = ends.enter_context(server.accept()[0])
        with contextlib.suppress(ConnectionResetError):  # a health check
            if connection.recv(5) == b"hello":
                return client, connection
    return None


def signal_balancer(cluster, name, number):
    """Signal every process of a balancer, as `systemctl kill` does."""
    os.killpg(cluster.running[f"{name}'s balancer"].pid, number)


def forecast(cluster, event):
    return next(line for line in cluster.plan.outages if line["event"] == event)


def test_a_balancer_that_hangs_loses_its_vip_within_three_seconds_and_gets_it_back(cluster):
    line = forecast(cluster, "haproxy_hung")
    began = time.time()
    signal_balancer(cluster, "lb1", signal.SIGSTOP)
    assert cluster.settle({VIP: line["after"]}, LIMIT)
    moved = next(at for at, view in cluster.recorder.views(VIP) if at > began and view.announcer == "lb2")
    assert moved - began < line["outage_ms"] / 1000 < 3
    signal_balancer(cluster, "lb1", signal.SIGCONT)
    assert cluster.settle({VIP: line["back"]}, LIMIT)


def test_a_full_table_of_connections_drops_new_ones_keeps_open_ones_and_moves_the_vip(cluster):
    line, lb1 = forecast(cluster, "conntrack_full"), cluster.nodes["lb1"]
    with inside(cluster.link.client.namespace), session(cluster) as (client, server):
        lb1.output("nft", conntrack.rules())
        began = time.time()
        assert not is_open(VIP, PORT)
        server.sendall(b"still there")
        assert client.recv(100) == b"still there"
    assert cluster.settle({VIP: line["after"]}, LIMIT)
    moved = next(at for at, view in cluster.recorder.views(VIP) if at > began and view.announcer == "lb2")
    assert moved - began < line["outage_ms"] / 1000
    lb1.output("nft", backend.DELETE_TABLE)
    assert cluster.settle({VIP: line["back"]}, LIMIT)


@pytest.mark.parametrize("seconds", [2.1, 2.5])
def test_a_split_that_heals_when_the_kernel_has_asked_for_the_winners_mac_in_vain_leaves_no_client_behind(
    cluster, seconds
):
    line, lb2 = forecast(cluster, "host_cut"), cluster.nodes["lb2"]
    lb2.output("ip", "neighbour", "flush", "all")  # a Backup sends nothing, so it knows nobody
    cluster.fail("host_cut", "lb1")
    until(lambda: cluster.view(VIP).announcer == "lb2", "lb2 does not take over")
    cluster.recorder.wait(lambda: False, seconds)  # since the first of three questions, one in each second
    healed = cluster.revert("host_cut", "lb1")
    assert cluster.recorder.wait(lambda: cluster.is_settled({VIP: line["back"]}), REFRESH - 1), lb2.output("ip", "n")
    assert cluster.recorder.overlap(VIP, healed, time.time()) < line["two_holders_ms"]
    yielded = next(at for at, view in cluster.recorder.views(VIP) if at > healed and view.holders == ["lb1"])
    back = next(at for at, view in cluster.recorder.views(VIP) if at > healed and view.announcer == "lb1")
    assert (back - yielded) * 1000 <= line["back_ms"]


def test_a_winner_that_has_asked_for_the_losers_mac_is_told_that_keepalived_has_yielded(tmp_path):
    """The last Advertisement was lost, but the loser's kernel knows the winner by the time that the hook looks."""
    with running("native", tmp_path, Terse) as cluster:
        assert cluster.settle({VIP: "lb1"}, LIMIT), cluster.recorder.views(VIP)
        line, lb1, lb2 = forecast(cluster, "host_cut"), cluster.nodes["lb1"], cluster.nodes["lb2"]
        begin = tmp_path / "begin"
        delay(cluster.hook, begin)
        known = ["192.0.2.2", "dev", "eth0"]
        lb1.output("ip", "neighbour", "replace", *known, "lladdr", lb2.mac, "nud", "permanent")
        # lb2's kernel asks once, while the link is cut, and discards what waits for the answer after lb2 has yielded.
        for setting in ("mcast_solicit=1", "retrans_time_ms=4000"):
            lb2.output("sysctl", f"net.ipv4.neigh.eth0.{setting}")
        lb2.output("ip", "neighbour", "flush", "all")
        cluster.fail("host_cut", "lb1")
        until(lambda: cluster.view(VIP).announcer == "lb2", "lb2 does not take over")
        cluster.revert("host_cut", "lb1")
        until(lambda: "FAILED" in lb2.output("ip", "neighbour", "show", "192.0.2.1"), "lb2's kernel goes on asking")
        assert cluster.view(VIP).holders == ["lb1"] and cluster.view(VIP).announcer == "lb2"
        lb1.output("ip", "neighbour", "delete", *known)
        until(lambda: known_mac(lb2, "192.0.2.1") == lb1.mac, "lb1 does not ask")
        began = time.time()
        begin.touch()
        assert cluster.recorder.wait(lambda: cluster.is_settled({VIP: line["back"]}), LIMIT), cluster.logs()
        back = next(at for at, view in cluster.recorder.views(VIP) if at > began and view.announcer == "lb1")
        assert (back - began) * 1000 <= line["back_ms"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_port_that_is_back_before_the_takeover_does_not_postpone_it_without_preemption(engine, tmp_path):
    """A Backup that does not preempt takes any Advertisement for one of an Active router, and waits anew."""
    with running(engine, tmp_path, preempt=False) as made:
        assert made.recorder.wait(lambda: made.view(VIP).announcer, LIMIT)
        first = made.view(VIP).announcer
        other = "lb2" if first == "lb1" else "lb1"
        made.recorder.wait(lambda: False, 2)  # until each has heard the other's state
        node, began = made.nodes[first], time.time()
        node.output("ip", "neighbour", "flush", "all")
        sh("ip", "-n", made.link.bridge, "link", "set", node.port, "down")
        made.recorder.wait(lambda: False, 1.8)
        sh("ip", "-n", made.link.bridge, "link", "set", node.port, "up")
        assert made.settle({VIP: other}, LIMIT), made.recorder.views(VIP)
        line = next(each for each in made.plan.outages if each["event"] == "port_down")
        moved = next(at for at, view in made.recorder.views(VIP) if at > began and view.announcer == other)
        assert (moved - began) * 1000 < line["outage_ms"]


def test_a_member_whose_link_is_back_knows_its_neighbours_when_it_takes_over(cluster):
    """The kernel asks for a neighbour once a second. Here it is once in half a minute, so that who else asks shows."""
    line, lb1, client = forecast(cluster, "port_down"), cluster.nodes["lb1"], cluster.link.client
    silent = "192.0.2.77"  # an address of the client's host that nothing else uses
    client.output("ip", "address", "add", f"{silent}/24", "dev", "eth0")
    lb1.output("sysctl", "net.ipv4.neigh.eth0.retrans_time_ms=30000")
    sh("ip", "-n", cluster.link.bridge, "link", "set", lb1.port, "down")
    until(lambda: cluster.view(VIP).announcer == "lb2", "lb2 does not take over")
    with inside(lb1.namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as question:
        question.sendto(b"", (silent, PORT))
    assert "INCOMPLETE" in lb1.output("ip", "neighbour", "show", silent)
    sh("ip", "-n", cluster.link.bridge, "link", "set", lb1.port, "up")
    assert cluster.settle({VIP: line["back"]}, LIMIT)
    until(lambda: known_mac(lb1, silent) == client.mac, "lb1 does not know the client", 2.0)


def delay(hook, path):
    """Have a hook begin once a file is there, as on a host that is busy."""
    program = hook.rename(hook.with_name("program"))
    hook.write_text(f'#!/bin/sh\nuntil [ -e "{path}" ]; do sleep 0.01; done\nexec "{program}" "$@"\n')
    hook.chmod(0o755)


def known_mac(node, address):
    return node.output("ip", "neighbour", "show", address).partition("lladdr ")[2].partition(" ")[0]


def test_clients_believe_a_stranger_with_the_vip_until_the_holder_announces_it_again(cluster):
    lb1, client = cluster.nodes["lb1"], cluster.link.client

    def believed():
        return known_mac(client, VIP)

    with inside(client.namespace):
        until(lambda: is_open(VIP, PORT))
        assert believed() == lb1.mac
        began = time.monotonic()
        with failing(lb1, stranger.arrives("eth0", VIP, "no-unit")[0]):
            until(lambda: believed() == stranger.MAC.hex(":"), "the stranger is not believed")
            assert not is_open(VIP, PORT)
        until(lambda: believed() == lb1.mac, "the holder does not announce it again", 2 * REFRESH)
        assert time.monotonic() - began < REFRESH + 1 + SWITCH_MS / 1000
        assert is_open(VIP, PORT)
    assert cluster.view(VIP).holders == ["lb1"]


def test_lost_advertisements_make_two_holders_until_they_are_heard_again(cluster):
    line, lb1 = forecast(cluster, "vrrp_lost"), cluster.nodes["lb1"]
    began = time.time()
    lb1.output("nft", faults.loss_rules("eth0"))
    cluster.recorder.wait(lambda: False, line["lasts_ms"] / 1000)
    assert cluster.view(VIP).holders == ["lb1", "lb2"]
    lb1.output("nft", faults.DELETE_TABLE)
    lasted_ms = (time.time() - began) * 1000
    assert cluster.settle({VIP: line["back"]}, LIMIT)
    longer_ms = lasted_ms - line["lasts_ms"]
    assert 0 < cluster.recorder.overlap(VIP, began, time.time()) <= line["two_holders_ms"] + longer_ms


@contextlib.contextmanager
def failing(node, command):
    """Run a shell command in a namespace; what still runs at the end is ended."""
    process = subprocess.Popen(["ip", "netns", "exec", node.namespace, "sh", "-c", command], start_new_session=True)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read_port(node):
    with inside(node.namespace):
        return ports.read("eth0", lambda command: (0, node.output(*command), ""))


@pytest.mark.parametrize("event", ["port_down", "link_flapping"])
def test_a_port_that_goes_down_moves_the_vip_as_forecast_and_comes_back_with_all_that_it_had(cluster, event):
    line, lb1 = forecast(cluster, event), cluster.nodes["lb1"]
    lb1.ip("route", "add", "198.51.100.0/24", "via", f"192.0.2.{cluster.link.client.number}")
    port = read_port(lb1)
    assert len(port.routes) == 1 and port.keeps == "0"
    script = ports.down(port) if event == "port_down" else ports.flapping(port, 1, "no-unit")
    began = cluster.recorder.record("lb1", "cut")
    with failing(lb1, script.inject):
        assert cluster.settle({VIP: line["after"]}, LIMIT)
        assert 0 < cluster.outage(VIP, began, time.time()) <= line["outage_ms"]
    lb1.output("sh", "-c", ports.back(port))
    back = cluster.recorder.record("lb1", "joined")
    assert cluster.settle({VIP: line["back"]}, LIMIT)
    assert cluster.outage(VIP, back, time.time()) <= line["back_ms"]
    assert cluster.recorder.overlap(VIP, began, time.time()) <= SWITCH_MS
    assert f"2001:db8::{lb1.number}/64" in lb1.output("ip", "-6", "address", "show", "dev", "eth0")
    assert read_port(lb1) == port


@pytest.mark.parametrize("cluster", ["agent"], indirect=True)
def test_an_agent_without_a_link_does_not_look_for_its_peers(cluster):
    lb1 = cluster.nodes["lb1"]
    assert cluster.nodes["lb2"].mac in lb1.output("ip", "neighbour", "show", "192.0.2.2")
    sh("ip", "-n", cluster.link.bridge, "link", "set", lb1.port, "down")
    assert cluster.settle({VIP: "lb2"}, LIMIT)
    assert lb1.output("ip", "neighbour", "show", "192.0.2.2") == ""


def test_servers_are_slow_for_the_balancers_user_and_for_nobody_else(cluster):
    """The process that connects has another user than those whose SYN is lost, and then the same one."""
    lb1, server = cluster.nodes["lb1"], f"192.0.2.{cluster.link.client.number}"

    def takes(uid):
        program = "import os, socket, sys, time; os.setuid(int(sys.argv[1])); began = time.monotonic(); "
        program += "socket.socket().connect((sys.argv[2], int(sys.argv[3]))); print(time.monotonic() - began)"
        return float(lb1.output(sys.executable, "-c", program, str(uid), server, str(PORT)))

    lb1.output("nft", backend.rules([12345]))
    assert takes(12346) < 0.5 < 0.9 < takes(12345) < 2
    lb1.output("nft", backend.DELETE_TABLE)
    assert takes(12345) < 0.5


def test_a_balancer_with_all_of_its_connections_keeps_its_vip(cluster):
    with contextlib.ExitStack() as held, inside(cluster.nodes["lb1"].namespace):
        # The rest waits until haproxy accepts it. Where its queue is full for a moment, TCP repeats the SYN later.
        for _number in range(CONNECTIONS + 5):
            held.enter_context(socket.create_connection((VIP, PORT), LIMIT))
        assert cluster.stays_settled({VIP: "lb1"}, 5)
