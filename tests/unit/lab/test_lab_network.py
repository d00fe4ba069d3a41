"""The network is free, stays the same, and gives every host the address its number says."""

from __future__ import annotations

import ipaddress

import pytest

from lab import network


def choose(*taken, ipv6=True, lab_id="abcdef-default"):
    return network.choose(lab_id, network.parse(taken), ipv6)


def test_the_same_lab_gets_the_same_network():
    assert choose() == choose()


def test_two_labs_get_different_networks():
    assert choose(lab_id="abcdef-default") != choose(lab_id="abcdef-ipi")


def test_a_taken_network_is_passed_over():
    first = choose()
    second = choose(str(first.subnet))
    assert not second.subnet.overlaps(first.subnet)


def test_a_single_address_takes_the_network_around_it():
    first = choose()
    assert choose(first.address(7)).subnet != first.subnet


def test_a_taken_ipv6_network_is_passed_over():
    first = choose()
    assert choose(str(first.subnet6)).subnet6 != first.subnet6


def test_where_a_vpn_claims_all_of_ten_another_range_serves():
    assert choose("10.0.0.0/8").subnet.subnet_of(ipaddress.IPv4Network("172.16.0.0/12"))


def test_default_routes_claim_nothing_not_even_in_halves():
    assert choose("default", "0.0.0.0/1", "128.0.0.0/1", "::/0") == choose()


def test_when_everything_is_taken_it_says_so():
    with pytest.raises(ValueError, match="no private /24 is free"):
        choose("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")


def test_a_host_reads_the_same_in_both_families():
    net = network.Network(ipaddress.IPv4Network("10.1.2.0/24"), ipaddress.IPv6Network("fd00:1::/64"))
    assert (net.address(11), net.address6(11)) == ("10.1.2.11", "fd00:1::11")


def test_without_ipv6_there_is_no_ipv6_address():
    net = choose(ipv6=False)
    assert net.subnet6 is None
    assert net.address6(11) is None
    assert "--ipv6" not in net.podman_options()


def test_only_a_network_that_does_not_lead_out_is_without_podmans_rules():
    assert "--internal" in choose().podman_options(leads_out=False)
    assert "--internal" not in choose().podman_options()


@pytest.mark.parametrize("number", [11, 12, 21, 31, network.VIP, network.VIP2])
def test_podman_leases_no_address_that_is_ours(number):
    net = choose()
    options = net.podman_options()
    ranges = [ipaddress.ip_network(options[i + 1]) for i, word in enumerate(options) if word == "--ip-range"]
    assert len(ranges) == 2
    assert ranges[0].subnet_of(net.subnet)
    assert ranges[1].subnet_of(net.subnet6)
    assert ipaddress.ip_address(net.address(number)) not in ranges[0]
    assert ipaddress.ip_address(net.address6(number)) not in ranges[1]
