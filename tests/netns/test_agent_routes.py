# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Addresses on other interfaces, excluded ones, and routes: the agent and keepalived do the same with them."""

from __future__ import annotations

import json

import pytest
from support.netns.agents import TRACKED, Agent, Keepalived
from support.netns.links import VIP, VIP6
from support.netns.stages import instance
from support.waiting import until

ELSEWHERE = "203.0.113.10"
ROUTES = [
    "10.99.0.0/16 via 203.0.113.1 dev eth1 metric 50",
    "198.18.0.0/15 dev eth1 src 203.0.113.10 table 7",
    "2001:db8:99::/48 via 2001:db8::9 dev eth0",
]
HELD = {("eth0", VIP, 32), ("eth0", VIP6, 128), ("eth1", ELSEWHERE, 24)}
KINDS = pytest.mark.parametrize("kind", [Agent, Keepalived], ids=["agent", "keepalived"])


def configuration(node):
    return {
        **instance(node, addresses=[f"{VIP}/32", f"{ELSEWHERE}/24 dev eth1"]),
        "excluded_addresses": [f"{VIP6}/128"],
        "virtual_routes": ROUTES,
        "track": [TRACKED],
    }


@pytest.fixture
def node(link):
    node = link.lb1
    node.ip("link", "add", "eth1", "type", "veth", "peer", "eth1-peer")
    node.ip("link", "set", "eth1-peer", "up")
    node.ip("link", "set", "eth1", "up")
    return node


@pytest.fixture
def start(node, tmp_path):
    """A function that starts a router of a kind, and returns it when it has become Active."""
    running = []

    def started(kind):
        running.append(kind(node, tmp_path / str(len(running)), [configuration(node)]))
        running[-1].start()
        wait_for(node, running[-1], HELD, ROUTES)
        return running[-1]

    yield started
    for router in running:
        router.close()


def held(node):
    """Return which of the virtual addresses are where, each with its prefix length."""
    links = json.loads(node.output("ip", "-json", "addr", "show"))
    present = {
        (link["ifname"], each["local"], each["prefixlen"]) for link in links for each in link.get("addr_info", ())
    }
    return {each for each in present if each[1] in (VIP, VIP6, ELSEWHERE)}


def routes(node):
    """Return the routes of VRRP routers, with what the kernel has made of them."""
    found = []
    for family in ("-4", "-6"):
        text = node.output("ip", family, "-json", "route", "show", "table", "all", "proto", "keepalived")
        found += json.loads(text or "[]")
    keys = ("dst", "gateway", "dev", "prefsrc", "metric", "table", "scope", "type")
    return sorted([{key: each[key] for key in keys if key in each} for each in found], key=lambda each: each["dst"])


def wait_for(node, router, addresses, ways):
    until(
        lambda: held(node) == addresses and len(routes(node)) == len(ways),
        lambda: f"{held(node)}\n{routes(node)}\n{router.log()}",
    )


@KINDS
def test_they_come_and_go_with_the_router(node, start, kind):
    router = start(kind)
    assert routes(node) == [
        {"dst": "10.99.0.0/16", "gateway": "203.0.113.1", "dev": "eth1", "metric": 50},
        {"dst": "198.18.0.0/15", "dev": "eth1", "prefsrc": ELSEWHERE, "table": "7"},
        {"dst": "2001:db8:99::/48", "gateway": "2001:db8::9", "dev": "eth0", "metric": 1024},
    ]
    router.fail_tracking()
    wait_for(node, router, set(), [])
    router.recover_tracking()
    wait_for(node, router, HELD, ROUTES)
    router.stop()
    assert (held(node), routes(node)) == (set(), [])


@KINDS
def test_a_route_that_another_program_removes_comes_back(node, start, kind):
    router = start(kind)
    node.ip("route", "del", "10.99.0.0/16")
    wait_for(node, router, HELD, ROUTES)


@KINDS
def test_another_interface_that_carries_an_address_is_tracked(node, start, kind):
    router = start(kind)
    node.ip("link", "set", "eth1", "down")
    wait_for(node, router, set(), [])
    node.ip("link", "set", "eth1", "up")
    wait_for(node, router, HELD, ROUTES)


@KINDS
def test_what_a_crash_leaves_is_removed_by_the_agent_at_the_end(node, start, kind):
    start(kind).kill()
    assert (held(node), len(routes(node))) == (HELD, len(ROUTES))
    start(Agent).stop()
    assert (held(node), routes(node)) == (set(), [])


def test_an_older_way_to_the_network_of_a_route_is_removed(node, start):
    node.ip("route", "add", "10.99.0.0/16", "via", "192.0.2.9", "metric", "50", "proto", "keepalived")
    node.ip("route", "add", "10.99.0.0/16", "via", "192.0.2.9", "metric", "60", "proto", "static")
    router = start(Agent)
    assert "an older route to 10.99.0.0/16 is removed" in router.log()
    router.stop()
    assert "proto static metric 60" in node.output("ip", "route", "show", "10.99.0.0/16")


def test_a_route_that_the_kernel_refuses_is_a_fault(node, stage):
    unreachable = "10.99.0.0/16 via 198.51.100.1 dev eth0"
    agent = stage.agent(node, instance(node, virtual_routes=[unreachable]))
    until(lambda: agent.instance()["state"] == "Fault", agent.log)
    assert agent.instance()["reason"] == "the kernel refuses the virtual routes"
    assert f"front: the route {unreachable} cannot be added: Network is unreachable" in agent.log()
    assert held(node) == set()
