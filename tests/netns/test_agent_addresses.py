# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's addresses on a real link: those that others left, added or have as well, and another MAC."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.network import Network
from support.netns.links import VIP, VIP6
from support.netns.namespaces import inside
from support.netns.stages import instance
from support.waiting import until

# Seconds between two Advertisements. A Backup waits for three times as long, so that none takes over while this machine
# stalls. A router with an address that it was left waits for one interval.
SLOW, SLOWER, OWNER = 3, 10, 255
OTHER_MAC = "02:00:00:00:77:01"
# An address, the prefix length that is configured, and the one with which it was left.
LEFT = pytest.mark.parametrize(
    "vip, configured, left", [(VIP, 24, 32), (VIP, 32, 24), (VIP6, 64, 128), (VIP6, 128, 64)]
)


def configuration(node, vip, prefix, **changes):
    six = {"multicast": True, "peers": []} if ":" in vip else {}
    return instance(node, addresses=[f"{vip}/{prefix}"], **six, **changes)


def start_holder(stage, vip, prefix):
    """Start an agent on the second member that becomes Active at once, and stays it."""
    node = stage.link.lb2
    stage.agent(node, configuration(node, vip, prefix, priority=OWNER, advert_interval=SLOW))
    stage.wait_for_holders("lb2", address=vip)


def prefixes(node, vip):
    """Return with which prefix lengths a member has an address."""
    (eth0,) = json.loads(node.output("ip", "-json", "addr", "show", "dev", "eth0"))
    return [each["prefixlen"] for each in eth0["addr_info"] if each["local"] == vip]


def add_by_hand(node, vip, prefix):
    node.ip("addr", "add", f"{vip}/{prefix}", "dev", "eth0", *(["nodad"] if ":" in vip else []))


@LEFT
def test_an_address_that_was_left_with_another_prefix_length_is_replaced_and_removed_at_the_end(
    stage, vip, configured, left
):
    node = stage.link.lb1
    add_by_hand(node, vip, left)
    agent = stage.agent(node, configuration(node, vip, configured))
    until(lambda: prefixes(node, vip) == [configured], lambda: f"{prefixes(node, vip)}\n{agent.log()}")
    assert agent.instance()["state"] == "Active"
    agent.stop()
    assert prefixes(node, vip) == []
    assert "The addresses are given up; goodbye." in agent.log()


@LEFT
def test_an_address_that_was_left_with_another_prefix_length_is_removed_when_another_router_has_it(
    stage, vip, configured, left
):
    link = stage.link
    start_holder(stage, vip, configured)
    add_by_hand(link.lb1, vip, left)
    stage.agent(link.lb1, configuration(link.lb1, vip, configured, priority=100, advert_interval=SLOWER))
    until(lambda: prefixes(link.lb1, vip) == [], "it has it still")
    stage.wait_for_holders("lb2", address=vip)


@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_an_address_that_is_added_to_a_backup_by_hand_is_removed(stage, vip):
    link, prefix = stage.link, 128 if ":" in vip else 32
    start_holder(stage, vip, prefix)
    backup = stage.agent(link.lb1, configuration(link.lb1, vip, prefix, priority=100, advert_interval=SLOWER))
    add_by_hand(link.lb1, vip, prefix)
    until(lambda: "another program had added it" in backup.log(), backup.log)
    until(lambda: prefixes(link.lb1, vip) == [], backup.log)


def test_another_mac_is_announced_at_once(stage):
    node, client = stage.link.lb1, stage.link.client
    agent = stage.agent(node, instance(node, garp_refresh=0))
    stage.wait_for_holders("lb1")
    stage.wait_for_announcement(0.0, times=10)  # both bursts; without another MAC there are no others
    client.ip("neigh", "replace", VIP, "lladdr", node.mac, "dev", "eth0", "nud", "stale")
    node.ip("link", "set", "eth0", "address", OTHER_MAC)
    until(lambda: OTHER_MAC in client.output("ip", "neigh", "show", "to", VIP), agent.log)


@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_another_host_that_has_an_address_answers_a_probe(link, vip):
    """Also the one that holds it itself can find that out."""
    family = 6 if ":" in vip else 4
    for node in (link.lb1, link.lb2):
        node.take_over(vip)
    with inside(link.lb1.namespace):
        network = Network()
        (eth0,) = [each for each in network.netlink.links() if each.name == "eth0"]
        prober = network.prober(eth0, family)
    claims = set()
    try:
        prober.probe(vip)
        until(lambda: claims.update(prober.replies()) or (vip, link.lb2.mac) in claims, "there is no answer")
    finally:
        prober.close()
        network.close()
    assert claims <= {(vip, link.lb1.mac), (vip, link.lb2.mac)}
