# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the forecast says of a drill's events is so: a balancer that hangs, Advertisements that are lost one way, a port
that goes down, a link that flaps. How long each of them may take is judged in tests/timing.

haproxy and keepalived, or the agent's two daemons, run with what the roles render for a plan. The balancer is suspended
with SIGSTOP, so that its process is still there, and the kernel still accepts connections for it. A balancer that only
has all of its connections keeps its VIP.

The plays run side by side, because they mostly wait. Each test reads the outcome of its own.
"""

from __future__ import annotations

import contextlib
import math
import select
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import backend, conntrack, faults, ports, stranger
from support.netns.links import sh, skip_reason
from support.netns.namespaces import inside
from support.netns.pairs import (
    CONNECTIONS,
    ENGINES,
    NEVER,
    PORT,
    VIP,
    Terse,
    failing,
    is_open,
    known_mac,
    read_port,
    running,
)
from support.waiting import LIMIT_S, MOMENT_S, pause, until

PROGRAMS = ("haproxy", "keepalived", "nft")
pytestmark = pytest.mark.skipif(bool(skip_reason(*PROGRAMS)), reason=str(skip_reason(*PROGRAMS)))
AT_ONCE = 8
SOME_ADVERTISEMENTS_S = 3
ABORTED = threading.Event()
OWN = {"lb1": "192.0.2.1", "lb2": "192.0.2.2"}
UNTRACKED = {"track_scripts": [], "track_files": []}  # a balancer that this machine stalls moves no VIP


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory):
    """The outcome of each play of this run's tests."""
    plays = [item.callspec.params["play"] for item in request.session.items if item.module is request.module]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            yield {play: pool.submit(play, tmp_path_factory.mktemp("play")) for play in plays}
        finally:
            ABORTED.set()


def play_on(*kinds, each=(), **settings):
    """Make a test of a play: a function that gets a running pair.

    :param kinds: the names of engines, or a class of pairs
    :param each: further arguments, one for each test
    :param settings: of the pair
    """

    def make_test(play):
        def run(kind, more, folder):
            with running(kind, folder, ABORTED, **settings) as cluster:
                if settings.get("preempt", True):
                    assert cluster.settle({VIP: "lb1"}, LIMIT_S), cluster.recorder.views(VIP)
                play(cluster, *more)

        params = [
            pytest.param(partial(run, kind, more), id="-".join(map(str, [getattr(kind, "__name__", kind), *more])))
            for kind in kinds
            for more in ([(one,) for one in each] or [()])
        ]

        @pytest.mark.parametrize("play", params)
        def test(outcomes, play):
            outcomes[play].result()

        return test

    return make_test


@contextlib.contextmanager
def session(cluster, member):
    """A connection through a member's balancer: the client's end, and the server's."""
    with contextlib.ExitStack() as ends:
        yield until(lambda: greeted(ends, OWN[member], cluster.server), "no server is up")


def greeted(ends, address, server):
    """Return both ends of a connection whose first bytes have reached the server, or nothing: it may still be down."""
    try:
        client = ends.enter_context(socket.create_connection((address, PORT), LIMIT_S))
        client.sendall(b"hello")
    except ConnectionError:  # the balancer has no server yet
        return None
    while select.select([server], [], [], MOMENT_S)[0]:
        connection = ends.enter_context(server.accept()[0])
        with contextlib.suppress(ConnectionResetError):  # a health check
            if connection.recv(5) == b"hello":
                return client, connection
    return None


@play_on(*ENGINES)
def test_a_balancer_that_hangs_loses_its_vip_and_gets_it_back(cluster):
    line = cluster.forecast("haproxy_hung")
    cluster.signal_balancer("lb1", signal.SIGSTOP)
    assert cluster.settle({VIP: line["after"]}, LIMIT_S)
    cluster.signal_balancer("lb1", signal.SIGCONT)
    assert cluster.settle({VIP: line["back"]}, LIMIT_S)


@play_on(*ENGINES)
def test_a_full_table_of_connections_drops_new_ones_keeps_open_ones_and_moves_the_vip(cluster):
    """The client connects to the member's own address, which stays where it is."""
    line, lb1 = cluster.forecast("conntrack_full"), cluster.nodes["lb1"]
    with inside(cluster.link.client.namespace), session(cluster, "lb1") as (client, server):
        lb1.output("nft", conntrack.rules())
        assert not is_open(OWN["lb1"], PORT)
        server.sendall(b"still there")
        assert client.recv(100) == b"still there"
    assert cluster.settle({VIP: line["after"]}, LIMIT_S)
    lb1.output("nft", backend.DELETE_TABLE)
    assert cluster.settle({VIP: line["back"]}, LIMIT_S)


@play_on(*ENGINES, each=[0.2, 1.6])
def test_a_split_that_heals_when_the_kernel_has_asked_for_the_winners_mac_in_vain_leaves_no_client_behind(
    cluster, seconds
):
    """The winner announces its VIP once more for that: no later announcement is due in this test.

    lb2's kernel asks three times, and gives up two seconds after the third question.
    """
    line, lb2 = cluster.forecast("host_cut"), cluster.nodes["lb2"]
    lb2.output("sysctl", "net.ipv4.neigh.eth0.retrans_time_ms=2000")
    cluster.fail("host_cut", "lb1")
    lb2.output("ip", "neighbour", "flush", "all")  # a Backup sends nothing, so it knows nobody
    until(lambda: cluster.view(VIP).announcer == "lb2", "lb2 does not take over")
    third = "probes 6"  # the kernel counts three for the questions to a known MAC that it left out
    until(lambda: third in lb2.output("ip", "-statistics", "neighbour", "show", OWN["lb1"]), "lb2 does not ask")
    cluster.recorder.wait(lambda: False, seconds)
    cluster.revert("host_cut", "lb1")
    assert cluster.settle({VIP: line["back"]}, LIMIT_S), lb2.output("ip", "neighbour")


@play_on(Terse, changes=UNTRACKED)
def test_a_winner_that_has_asked_for_the_losers_mac_is_told_that_keepalived_has_yielded(cluster):
    """The last Advertisement was lost, but the loser's kernel knows the winner by the time that the hook looks."""
    line, lb1, lb2 = cluster.forecast("host_cut"), cluster.nodes["lb1"], cluster.nodes["lb2"]
    begin = cluster.folder / "begin"
    delay(cluster.hook, begin)
    known, server = [OWN["lb2"], "dev", "eth0"], f"192.0.2.{cluster.link.client.number}"
    for address, mac in ((OWN["lb2"], lb2.mac), (server, cluster.link.client.mac)):  # lb1 asks for nobody
        lb1.output("ip", "neighbour", "replace", address, "dev", "eth0", "lladdr", mac, "nud", "permanent")
    # lb2's kernel asks once, while the link is cut. What waits for the answer is discarded after lb2 has yielded.
    lb2.output("sysctl", f"net.ipv4.neigh.eth0.retrans_time_ms={NEVER * 1000}")
    cluster.fail("host_cut", "lb1")
    lb2.output("ip", "neighbour", "flush", "all")
    until(lambda: cluster.view(VIP).announcer == "lb2", "lb2 does not take over")
    until(lambda: "INCOMPLETE" in lb2.output("ip", "neighbour", "show", OWN["lb1"]), "lb2 does not ask")
    cluster.revert("host_cut", "lb1")
    until(lambda: cluster.view(VIP).holders == ["lb1"], "lb2 does not yield")
    lb2.output("ip", "neighbour", "replace", OWN["lb1"], "dev", "eth0", "nud", "failed")
    assert cluster.view(VIP).announcer == "lb2"
    lb1.output("ip", "neighbour", "delete", *known)
    until(lambda: known_mac(lb2, OWN["lb1"]) == lb1.mac, "lb1 does not ask")
    begin.touch()
    assert cluster.settle({VIP: line["back"]}, LIMIT_S), cluster.logs()


@play_on(*ENGINES, preempt=False, advert_interval=4, changes=UNTRACKED)
def test_a_port_that_is_back_before_the_takeover_does_not_postpone_it_without_preemption(cluster):
    """A Backup that does not preempt takes any Advertisement for one of an Active router, and waits anew. So the
    member that is back sends none. The Backup takes over 13.6 s after the last Advertisement that it heard."""
    # For longer than an interval, so that each has heard the other.
    first = until(lambda: next((name for name in OWN if cluster.stays_settled({VIP: name}, 5)), None))
    other = "lb2" if first == "lb1" else "lb1"
    node = cluster.nodes[first]
    wait_for_advertisement(cluster, first)
    node.output("ip", "neighbour", "flush", "all")
    sh("ip", "-n", cluster.link.bridge, "link", "set", node.port, "down")
    down = time.time()
    pause(7)
    sh("ip", "-n", cluster.link.bridge, "link", "set", node.port, "up")
    assert cluster.settle({VIP: other}, LIMIT_S), cluster.recorder.views(VIP)
    assert next(sent.member for sent in cluster.recorder.advertisements if sent.at > down) == other


def wait_for_advertisement(cluster, member):
    def sent():
        return sum(one.member == member for one in list(cluster.recorder.advertisements))

    before = sent()
    until(lambda: sent() > before, f"{member} does not advertise")


@play_on(*ENGINES)
def test_a_member_whose_link_is_back_knows_its_neighbours_when_it_takes_over(cluster):
    """The kernel asks for a neighbour once a second. Here it asks only once, so that who else asks shows."""
    line, lb1, client = cluster.forecast("port_down"), cluster.nodes["lb1"], cluster.link.client
    silent = "192.0.2.77"  # an address of the client's host that nothing else uses
    client.output("ip", "address", "add", f"{silent}/24", "dev", "eth0")
    lb1.output("sysctl", f"net.ipv4.neigh.eth0.retrans_time_ms={NEVER * 1000}")
    sh("ip", "-n", cluster.link.bridge, "link", "set", lb1.port, "down")
    until(lambda: cluster.view(VIP).announcer == "lb2", "lb2 does not take over")
    with inside(lb1.namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as question:
        question.sendto(b"", (silent, PORT))
    assert "INCOMPLETE" in lb1.output("ip", "neighbour", "show", silent)
    sh("ip", "-n", cluster.link.bridge, "link", "set", lb1.port, "up")
    assert cluster.settle({VIP: line["back"]}, LIMIT_S)
    until(lambda: known_mac(lb1, silent) == client.mac, "lb1 does not know the client")


def delay(hook, path):
    """Have a hook begin once a file is there, as on a host that is busy."""
    program = hook.rename(hook.with_name("program"))
    hook.write_text(f'#!/bin/sh\nuntil [ -e "{path}" ]; do sleep 0.01; done\nexec "{program}" "$@"\n')
    hook.chmod(0o755)


@play_on(*ENGINES, changes={"garp_refresh": 5})
def test_clients_believe_a_stranger_with_the_vip_until_the_holder_announces_it_again(cluster):
    lb1, client, recorder = cluster.nodes["lb1"], cluster.link.client, cluster.recorder

    def believed():
        return known_mac(client, VIP)

    # The takeover's two rounds are over.
    until(lambda: announcements(recorder) > 10, "the holder does not announce it again")
    with inside(client.namespace):
        until(lambda: is_open(VIP, PORT) and believed() == lb1.mac)
        with failing(lb1, stranger.arrives("eth0", VIP, "no-unit")[0]):
            asked = []
            until(lambda: asked.append(time.time()) or believed() == stranger.MAC.hex(":"), "it is not believed")
            opened, seen_by = is_open(VIP, PORT), time.time()
            assert not opened or recorder.wait(lambda: announcements(recorder, asked[-1], seen_by), LIMIT_S)
        until(lambda: believed() == lb1.mac, "the holder does not announce it again")
        assert recorder.wait(lambda: announcements(recorder, asked[-1]), LIMIT_S)
        until(lambda: is_open(VIP, PORT))
    assert cluster.settle({VIP: "lb1"}, LIMIT_S)


def announcements(recorder, begin=0.0, end=math.inf):
    return sum(event.kind == "announced" and begin <= event.at <= end for event in list(recorder.events))


@play_on(*ENGINES)
def test_lost_advertisements_make_two_holders_until_they_are_heard_again(cluster):
    line, lb1 = cluster.forecast("vrrp_lost"), cluster.nodes["lb1"]

    def both_hold_it():
        """Return whether both go on holding it for some of their Advertisements."""
        return not cluster.recorder.wait(lambda: cluster.view(VIP).holders != ["lb1", "lb2"], SOME_ADVERTISEMENTS_S)

    lb1.output("nft", faults.loss_rules("eth0"))
    until(both_hold_it, "lb2 does not take over")
    lb1.output("nft", faults.DELETE_TABLE)
    assert cluster.settle({VIP: line["back"]}, LIMIT_S)


@play_on(*ENGINES, each=["port_down", "link_flapping"])
def test_a_port_that_goes_down_moves_the_vip_as_forecast_and_comes_back_with_all_that_it_had(cluster, event):
    line, lb1 = cluster.forecast(event), cluster.nodes["lb1"]
    lb1.ip("route", "add", "198.51.100.0/24", "via", f"192.0.2.{cluster.link.client.number}")
    port = read_port(lb1)
    assert len(port.routes) == 1 and port.keeps == "0"
    script = ports.down(port) if event == "port_down" else ports.flapping(port, 1, "no-unit")
    with failing(lb1, script.inject):
        assert cluster.settle({VIP: line["after"]}, LIMIT_S)
    lb1.output("sh", "-c", ports.back(port))
    assert cluster.settle({VIP: line["back"]}, LIMIT_S)
    assert f"2001:db8::{lb1.number}/64" in lb1.output("ip", "-6", "address", "show", "dev", "eth0")
    assert read_port(lb1) == port


@play_on("agent", advert_interval=4)
def test_an_agent_without_a_link_does_not_look_for_its_peers(cluster):
    """No Advertisement is due while it learns that it has no link."""
    lb1 = cluster.nodes["lb1"]
    assert cluster.nodes["lb2"].mac in lb1.output("ip", "neighbour", "show", OWN["lb2"])
    wait_for_advertisement(cluster, "lb1")
    sh("ip", "-n", cluster.link.bridge, "link", "set", lb1.port, "down")
    assert cluster.settle({VIP: "lb2"}, LIMIT_S)
    assert lb1.output("ip", "neighbour", "show", OWN["lb2"]) == ""


# Connects as a user, and prints how many times the kernel has sent a packet again (tcpi_total_retrans in linux/tcp.h).
CONNECT = """
import os, socket, struct, sys
os.setuid(int(sys.argv[1]))
with socket.socket() as made:
    made.connect((sys.argv[2], int(sys.argv[3])))
    print(struct.unpack_from("=I", made.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)[0])
"""


@play_on("native")
def test_servers_are_slow_for_the_balancers_user_and_for_nobody_else(cluster):
    """Only a SYN that was lost is sent again. The process that connects has another user than those whose SYN is lost,
    and then the same one."""
    lb1, server = cluster.nodes["lb1"], f"192.0.2.{cluster.link.client.number}"

    def sent_again(uid):
        return int(lb1.output(sys.executable, "-c", CONNECT, str(uid), server, str(PORT)))

    lb1.output("nft", backend.rules([12345]))
    assert (sent_again(12346), sent_again(12345)) == (0, 1)
    lb1.output("nft", backend.DELETE_TABLE)
    assert sent_again(12345) == 0


@play_on(*ENGINES)
def test_a_balancer_with_all_of_its_connections_keeps_its_vip(cluster):
    """One that does not answer loses its VIP within three seconds, as long as it does not."""
    with contextlib.ExitStack() as held, inside(cluster.nodes["lb1"].namespace):
        # The rest waits until haproxy accepts it. Where its queue is full for a moment, TCP repeats the SYN later.
        for _number in range(CONNECTIONS + 5):
            held.enter_context(socket.create_connection((OWN["lb1"], PORT), LIMIT_S))
        until(lambda: cluster.stays_settled({VIP: "lb1"}, 5), "it loses its VIP")
