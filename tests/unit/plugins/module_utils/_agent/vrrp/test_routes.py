# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Virtual routes: added after the addresses, removed before them, put back, refused, left by a crash."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.routing import Route as InKernel
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.notation import Route
from support.vrrp.fakes import DOWN_INTERVAL, FRONT, OTHER, VIP, Host

WAY = Route("10.0.0.0/8", "eth0", "192.0.2.254", metric=50)
OTHER_WAY = Route("198.18.0.0/15", "eth1", table=7)
THERE = InKernel("10.0.0.0/8", "192.0.2.254", 2, metric=50)
OTHER_THERE = InKernel("198.18.0.0/15", index=3, table=7)
ROUTING = FRONT._replace(virtual_routes=(WAY, OTHER_WAY))
ADD, DELETE = f"add {VIP}/32 to eth0", f"delete {VIP}/32 from eth0"
ADD_WAY, DELETE_WAY = "add route to 10.0.0.0/8", "delete route to 10.0.0.0/8"
ADD_OTHER, DELETE_OTHER = "add route to 198.18.0.0/15", "delete route to 198.18.0.0/15"


@pytest.fixture
def host():
    return Host()


def test_routes_come_after_the_addresses_and_go_before_them(host):
    host.start(ROUTING)
    host.done()
    host.let(DOWN_INTERVAL)
    assert host.acts()[1:5] == [ADD, ADD_WAY, ADD_OTHER, f"announce {VIP} on eth0 x5"]
    assert host.netlink.ways == {THERE, OTHER_THERE}
    host.hears(200)
    assert [line for line in host.acts() if line.startswith("delete")] == [DELETE_WAY, DELETE_OTHER, DELETE]


def test_a_route_that_another_program_removes_is_added_again_at_once(host):
    host.start(ROUTING).activate()
    host.netlink.drop_route(THERE)
    host.let()
    removed = "another program had removed it"
    assert host.done() == [ADD_WAY, f"says front: {WAY} added to the routes: {removed}"]


def test_a_route_that_goes_with_an_interface_is_found_missing_when_that_is_back(host):
    """The kernel reports no IPv4 route that it drops."""
    host.start(ROUTING._replace(dont_track_primary=True)).activate()
    host.netlink.ways.remove(THERE)
    for up in (False, True):
        host.netlink.link("eth0", 2, up=up)
    host.let()
    assert host.acts() == [ADD_WAY]


def test_only_an_active_router_adds_a_route_again(host):
    host.start(ROUTING).activate()
    host.hears(200)
    host.done()
    host.netlink.overrun()
    host.let()
    assert host.done() == []


def test_events_about_routes_are_followed_once_a_router_has_some(host):
    host.start().activate()
    assert not host.netlink.followed
    host.apply(ROUTING)
    assert host.netlink.followed


def test_a_route_that_the_kernel_refuses_is_a_fault_until_it_takes_it(host):
    host.netlink.refused[WAY.to] = errno.ENETUNREACH
    host.start(ROUTING)
    host.let(DOWN_INTERVAL)
    says = host.says()
    assert f"front: the route {WAY} cannot be added: Network is unreachable" in says
    assert "front: Active to Fault: the kernel refuses the virtual routes" in says
    assert (host.state, host.held, host.netlink.ways) == ("Fault", [], set())
    host.netlink.refused.clear()
    host.let(10 + DOWN_INTERVAL)
    assert f"front: the route {WAY} could be added" in host.says()
    assert (host.state, host.netlink.ways) == ("Active", {THERE, OTHER_THERE})


def test_a_router_that_cannot_add_a_route_again_is_in_fault(host):
    host.start(ROUTING).activate()
    host.netlink.refused[WAY.to] = errno.ENETUNREACH
    host.netlink.drop_route(THERE)
    host.let()
    assert (host.state, host.held) == ("Fault", [])


def test_a_route_that_cannot_be_removed_is_logged(host):
    host.start(ROUTING).activate()
    host.netlink.kept.add(WAY.to)
    host.hears(200)
    assert f"front: the route {WAY} cannot be removed: Operation not permitted" in host.says()


def test_a_reload_changes_the_routes_of_an_active_router_and_nothing_else(host):
    host.start(ROUTING).activate()
    another = WAY._replace(via="192.0.2.253")
    host.apply(ROUTING._replace(virtual_routes=(another, OTHER_WAY)))
    assert host.done() == [DELETE_WAY, ADD_WAY, f"says front: {another} added to the routes: new"]
    assert host.netlink.ways == {THERE._replace(via="192.0.2.253"), OTHER_THERE}


def test_a_reload_with_other_routes_tries_again_what_the_kernel_had_refused(host):
    host.netlink.refused[WAY.to] = errno.ENETUNREACH
    host.start(ROUTING)
    host.let(DOWN_INTERVAL)
    assert host.state == "Fault"
    host.apply(ROUTING._replace(virtual_routes=(OTHER_WAY,)))
    host.let(DOWN_INTERVAL)
    assert (host.state, host.netlink.ways) == ("Active", {OTHER_THERE})


def test_what_a_crash_left_is_removed_as_soon_as_another_router_is_active(host):
    host.netlink.put(f"{VIP}/32")
    host.netlink.ways.update((THERE, OTHER_THERE))
    host.start(ROUTING)
    assert host.acts() == []
    host.hears(200)
    assert host.acts() == [DELETE_WAY, DELETE_OTHER, DELETE]
    assert host.netlink.ways == set()


def test_a_route_that_a_crash_left_under_an_older_configuration_is_removed_at_the_start(host):
    stranger = InKernel("10.99.0.0/16", "192.0.2.254", 2)
    host.netlink.ways.update((THERE._replace(via="192.0.2.253"), OTHER_THERE, stranger))
    host.start(ROUTING)
    assert host.done()[-2:] == [DELETE_WAY, f"says front: an older route to 10.0.0.0/8 is removed: now it is {WAY}"]
    assert host.netlink.ways == {OTHER_THERE, stranger}


def test_the_interface_of_a_route_is_tracked(host):
    host.start(ROUTING).activate()
    host.netlink.link("eth1", 3, up=False)
    host.let()
    assert host.acts() == [f"send 0 to {OTHER}", DELETE_WAY, DELETE_OTHER, DELETE]
    assert host.report()["reason"] == "interface eth1 is down"


def test_the_routes_are_reported_as_they_are_written(host):
    host.start(ROUTING)
    routes = ["10.0.0.0/8 via 192.0.2.254 dev eth0 metric 50", "198.18.0.0/15 dev eth1 table 7"]
    assert host.report()["virtual_routes"] == routes
