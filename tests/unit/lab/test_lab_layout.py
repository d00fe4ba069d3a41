"""Layouts are sound as data: numbers and hardware addresses are unique, and each host has a way out."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from lab import image
from lab.layout import LAB, LAYOUTS, Lab

LABS = {scenario: Lab(Path("/c"), scenario) for scenario in ("default", *LAYOUTS)}
ROUTED = [scenario for scenario, lab in LABS.items() if lab.has_routers]
every = pytest.mark.parametrize("scenario", LABS)
routed = pytest.mark.parametrize("scenario", ROUTED)


@every
def test_no_two_hosts_of_a_network_share_a_number_or_a_hardware_address(scenario):
    for network in LABS[scenario].networks:
        inside = [host for host in LABS[scenario].hosts if network in host.networks]
        assert len({host.number for host in inside}) == len(inside)
        assert len({host.mac(host.networks.index(network)) for host in inside}) == len(inside)


@every
def test_each_variant_is_known_to_the_images(scenario):
    assert {host.variant for host in LABS[scenario].hosts} <= {"", *image.VARIANTS}


@every
def test_a_machine_has_one_cable(scenario):
    machines = [host for host in LABS[scenario].hosts if host.machine]
    assert bool(machines) == (scenario == "machines")
    assert not [host for host in machines if len(host.networks) > 1 or host.router or host.names]


@every
def test_each_host_has_a_way_out_of_its_first_network(scenario):
    lab = LABS[scenario]
    for host in lab.hosts:
        assert lab.leads_out(host.networks[0]) != bool(lab.routers_of(host))
        assert not host.router or lab.leads_out(host.networks[0])


@every
def test_only_routers_forward(scenario):
    lab = LABS[scenario]
    forward = {host.name for host in lab.hosts if "net.ipv4.ip_forward" in lab.sysctls_of(host)}
    assert forward == {host.name for host in lab.hosts if host.router}
    assert lab.has_routers or not [host for host in lab.hosts if lab.sysctls_of(host)]


def test_where_hosts_stand_in_one_network_the_vips_are_in_it():
    for scenario, lab in LABS.items():
        assert (lab.networks == (lab.vips,) == (LAB,)) == (scenario not in ROUTED)


@routed
def test_balancers_behind_routers_share_a_network_only_to_begin_with_vrrp_and_each_has_two_routers(scenario):
    lab = LABS[scenario]
    balancers = [host for host in lab.hosts if host.group == "pair"]
    pairs = [*itertools.combinations(balancers, 2)]
    shared = [one for one, other in pairs if {*one.networks} & {*other.networks}]
    assert len(shared) == (len(pairs) if scenario == "bgp-move" else 0)
    assert all(len(lab.routers_of(host)) == 2 for host in balancers)
