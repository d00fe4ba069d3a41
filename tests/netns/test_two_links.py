# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two routers have one VRID on two links. Neither hears the other: each VIP goes where its own link wants it."""

from __future__ import annotations

import json

import pytest
from support.netns.agents import Agent, Keepalived
from support.netns.links import batch, skip_reason
from support.waiting import until

SECOND_LINK = {"lb1": "eth1", "lb2": "ens7"}  # the name of the interface
VIP, OTHER = "192.0.2.100", "198.51.100.100"  # the first is lb1's, the other one lb2's


def instances(node, multicast):
    first, second = f"192.0.2.{node.number}", f"198.51.100.{node.number}"
    routers = ((VIP, "eth0", first, node.number == 1), (OTHER, SECOND_LINK[node.name], second, node.number == 2))
    return [
        {
            "name": f"vip-{vip}",
            "interface": interface,
            "vrid": 51,
            "priority": 250 if is_best else 150,
            "multicast": multicast,
            "source": own,
            "peers": [] if multicast else [own.rpartition(".")[0] + f".{3 - node.number}"],
            "addresses": [f"{vip}/32"],
            "track": [],
        }
        for vip, interface, own, is_best in routers
    ]


def hold(link, **wanted):
    """Return whether each member has these VIPs, and no others."""
    for node in link.members:
        shown = json.loads(node.output("ip", "-json", "-4", "addr", "show"))
        own = {known["local"] for each in shown for known in each["addr_info"] if known["prefixlen"] == 32}
        if own != wanted[node.name]:
            return False
    return True


@pytest.fixture(params=[(Keepalived, Agent), (Agent, Keepalived)], ids=["keepalived first", "agent first"])
def kinds(request):
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    return request.param


@pytest.fixture
def both(link):
    """The link, with a second one between its members."""
    first, second = link.members
    names = SECOND_LINK[first.name], SECOND_LINK[second.name]
    batch(first.namespace, f"link add {names[0]} type veth peer name {names[1]} netns {second.namespace}")
    for node, name in zip(link.members, names):
        batch(node.namespace, f"link set {name} up", f"addr add 198.51.100.{node.number}/24 dev {name}")
    return link


@pytest.mark.parametrize("multicast", [True, False], ids=["multicast", "unicast"])
def test_two_routers_with_one_vrid_on_two_links_do_not_hear_each_other(kinds, both, multicast, tmp_path):
    lb1, lb2 = (kind(node, tmp_path / node.name, instances(node, multicast)) for kind, node in zip(kinds, both.members))

    def log():
        return lb1.log() + lb2.log()

    try:
        lb1.start()
        until(lambda: hold(both, lb1={VIP, OTHER}, lb2=set()), log)
        lb2.start()
        until(lambda: hold(both, lb1={VIP}, lb2={OTHER}), log)
        lb1.stop()
        until(lambda: hold(both, lb1=set(), lb2={VIP, OTHER}), log)
        lb1.start()
        until(lambda: hold(both, lb1={VIP}, lb2={OTHER}), log)
    finally:
        lb1.close()
        lb2.close()
