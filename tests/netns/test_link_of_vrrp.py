# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VRRP has a link of its own (pair_vrrp_interface), and the VIP is where the clients are, with both engines.

What each cut of one of the two links does is as the plan says it. A cable between two members loses its carrier at both
ends when one of them is off.
"""

from __future__ import annotations

import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.netns.links import Link, batch, sh, skip_reason
from support.netns.pairs import ENGINES, SERVICES, VIP
from support.plans.pairs import on_two_links
from support.waiting import LIMIT_S, stays, until

SOME_INTERVALS_S = 5
VIP6 = "2001:db8::10"
PROGRAMS = ("haproxy", "keepalived")
pytestmark = pytest.mark.skipif(bool(skip_reason(*PROGRAMS)), reason=str(skip_reason(*PROGRAMS)))


class TwoLinks(Link):
    """A link, and a cable between its two members; each has it as eth1."""

    def start(self):
        super().start()
        first, second = self.members
        batch(first.namespace, f"link add eth1 type veth peer eth1 netns {second.namespace}")
        self.address_the_cable()

    def address_the_cable(self):
        for node in self.members:
            own = f"198.51.100.{node.number}/24", f"2001:db8:0:1::{node.number}/64"
            batch(node.namespace, "link set eth1 up", *(f"addr replace {each} dev eth1 nodad" for each in own))


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture
def cluster(engine, tmp_path):
    with started(engine, tmp_path) as made:
        yield made


def started(engine, folder, **settings):
    own = {"engine": engine, "services": SERVICES, "vrrp_interface": "eth1", **settings}
    plan = pair.plan([on_two_links(number, **own) for number in (1, 2)])
    assert plan.faults == []
    made = ENGINES[engine](plan, folder / "pair", threading.Event())
    made.link = TwoLinks()
    made.nodes = {node.name: node for node in made.link.members}
    return made


def logs(cluster):
    return "\n".join(f"{path}:\n{path.read_text()}" for path in sorted(cluster.folder.glob("lb*/*log")))


def is_held(cluster, name, vip=VIP):
    assert cluster.settle({vip: name}), logs(cluster)


def both_hold(cluster):
    return cluster.view(VIP).holders == ["lb1", "lb2"]


def end(cluster, name):
    """Kill a keepalived, whose hook follows; stop an agent, of which no hook takes the addresses."""
    if isinstance(cluster, ENGINES["native"]):
        cluster.kill(name)
    else:
        process = cluster.running.pop(name)
        process.terminate()
        process.wait(LIMIT_S)


def set_cable(cluster, state):
    """Take the carrier from both ends of the cable, or give it back."""
    cluster.nodes["lb2"].ip("link", "set", "eth1", state)


def test_the_vip_is_on_the_clients_link_and_moves_with_the_router(cluster):
    is_held(cluster, "lb1")
    assert cluster.nodes["lb1"].has(*cluster.nodes["lb1"].addresses, VIP)
    end(cluster, "lb1")
    is_held(cluster, "lb2")
    cluster.start("lb1")
    is_held(cluster, "lb1")


def test_ipv6_is_the_same(engine, tmp_path):
    with started(engine, tmp_path, vips=[VIP6]) as cluster:
        is_held(cluster, "lb1", VIP6)
        sh("ip", "-n", cluster.link.bridge, "link", "set", cluster.nodes["lb1"].port, "down")
        is_held(cluster, "lb2", VIP6)


def test_a_member_whose_port_to_the_clients_is_down_gives_the_vip_up(cluster):
    is_held(cluster, "lb1")
    port = cluster.nodes["lb1"].port
    sh("ip", "-n", cluster.link.bridge, "link", "set", port, "down")
    is_held(cluster, "lb2")
    sh("ip", "-n", cluster.link.bridge, "link", "set", port, "up")
    is_held(cluster, "lb1")


def test_without_the_cable_each_member_holds_the_vip_and_one_of_them_afterwards(cluster):
    is_held(cluster, "lb1")
    set_cable(cluster, "down")
    until(lambda: both_hold(cluster), lambda: logs(cluster))
    # A host that manages its network may take the addresses away with the carrier.
    for node in cluster.link.members:
        node.ip("addr", "flush", "dev", "eth1")
    stays(lambda: both_hold(cluster), SOME_INTERVALS_S)
    set_cable(cluster, "up")
    cluster.link.address_the_cable()
    is_held(cluster, "lb1")


def test_a_member_that_starts_without_the_cable_serves(cluster):
    """It needs its address there, carrier or not."""
    is_held(cluster, "lb1")
    end(cluster, "lb2")
    end(cluster, "lb1")
    set_cable(cluster, "down")
    cluster.start("lb1")
    is_held(cluster, "lb1")


def test_what_fails_beyond_the_members_port_moves_no_vip(cluster):
    """As the plan warns: VRRP goes on. A gateway that is checked moves it."""
    is_held(cluster, "lb1")
    sh("ip", "-n", cluster.link.bridge, "link", "set", cluster.nodes["lb1"].port, "nomaster")
    stays(lambda: cluster.view(VIP).holders == ["lb1"], SOME_INTERVALS_S)
