# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VIP moves within one broadcast domain: members whose interfaces share no subnet are refused, whatever is named."""

from __future__ import annotations

import ipaddress
import itertools
import random

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans import clusters, pairs

RULE = "A VIP moves within one broadcast domain"
PAIR_MEND = "name members of one subnet, or correct pair_interface"


def on(member, *addresses, interface="eth0"):
    """Give a member these addresses, each with its prefix length, on one interface."""
    mac = f"02:00:00:00:01:{member['name'][-1]:0>2}"
    found = [ipaddress.ip_interface(each) for each in addresses]
    member["host"]["addresses"] = [
        {"interface": interface, "address": str(each.ip), "prefix": each.network.prefixlen, "mac": mac}
        for each in found
    ]
    return member


def pair_of(*places, **settings):
    """Return a pair whose interface is named: lbN has the Nth of these addresses, or lists of them."""
    settings = {"interface": "eth0", **settings}
    return [on(pairs.member(at, **settings), *place.split()) for at, place in enumerate(places, 1)]


def faults(members):
    return _pair.plan(members).faults


APART = {
    "IPv4": (("192.0.2.1/24", "198.51.100.2/24"), "192.0.2.10", "192.0.2.0/24", "198.51.100.0/24"),
    "halves of a subnet": (("192.0.2.1/25", "192.0.2.130/25"), "192.0.2.10", "192.0.2.0/25", "192.0.2.128/25"),
    "IPv6": (
        ("2001:db8:1::1/64 fe80::1/64", "2001:db8:2::2/64 fe80::2/64"),
        "2001:db8:1::10",
        "2001:db8:1::/64",
        "2001:db8:2::/64",
    ),
    "a VIP that is in neither": (
        ("192.0.2.1/24", "198.51.100.2/24"),
        "203.0.113.10",
        "192.0.2.0/24",
        "198.51.100.0/24",
    ),
}


@pytest.mark.parametrize("places, vip, one, other", APART.values(), ids=APART)
def test_members_in_two_subnets_are_refused_with_both_and_what_to_do(places, vip, one, other):
    refused = f"VIP {vip}: lb1 (eth0 in {one}) and lb2 (eth0 in {other}) share no subnet. {RULE}: {PAIR_MEND}."
    assert refused in faults(pair_of(*places, vips=[vip]))


TOGETHER = {
    "one subnet": ("192.0.2.1/24", "192.0.2.2/24"),
    "one of several": ("192.0.2.1/24", "198.51.100.2/24 192.0.2.2/24"),
    "through a third": ("192.0.2.1/24", "192.0.2.2/24 198.51.100.2/24", "198.51.100.3/24"),
    "another length": ("192.0.2.1/24", "192.0.2.130/25"),
    "the other family's": ("192.0.2.1/24 2001:db8::1/64", "198.51.100.2/24 2001:db8::2/64"),
}


@pytest.mark.parametrize("places", TOGETHER.values(), ids=TOGETHER)
def test_any_shared_subnet_is_enough(places):
    assert faults(pair_of(*places)) == []


@pytest.mark.parametrize("shared", ["fe80::1/64 fe80::2/64", "2001:db8::1/128 2001:db8::2/128"])
def test_a_link_local_address_and_a_host_route_are_no_shared_subnet(shared):
    one, two = shared.split()
    found = faults(pair_of(f"192.0.2.1/24 {one}", f"198.51.100.2/24 {two}"))
    assert any("share no subnet" in fault for fault in found)


def test_what_a_vip_brings_is_no_shared_subnet():
    """A member that holds a VIP as /24 has its subnet for as long; so it is with the VIPs of its other routers."""
    members = pair_of("192.0.2.1/24", "198.51.100.2/24 192.0.2.10/24 192.0.2.77/24", vips=["192.0.2.10/24"])
    members[1]["host"]["instances"] = [pairs.running(addresses=["192.0.2.10/24", "192.0.2.77/24"])]
    assert any("share no subnet" in fault for fault in faults(members))


def test_a_member_without_a_subnet_is_warned_of_and_not_refused():
    plan = _pair.plan(pair_of("192.0.2.1/24", "192.0.2.2/32"))
    assert plan.faults == []
    sentence = "lb2's eth0 has no subnet, only an address: nobody has checked that it is in the broadcast domain of "
    assert f"{sentence}192.0.2.10. {RULE}." in plan.warnings


def test_a_member_that_was_not_read_is_neither_refused_nor_warned_of():
    members = pairs.pair(interface="eth0")
    unread = [{**one, "host": None, "address": where} for one, where in zip(members, ("192.0.2.1", "198.51.100.2"))]
    plan = _pair.plan(unread)
    assert not any("broadcast domain" in each for each in [*plan.faults, *plan.warnings])


def test_each_vip_is_judged_by_its_own_interface():
    """Both are on the first link; the second one's interfaces are apart."""
    members = pairs.pair(vips=["192.0.2.10", "203.0.113.10"])
    for at, member in enumerate(members, 1):
        subnet = "203.0.113.1/24" if at == 1 else "203.0.113.130/26"
        ip = ipaddress.ip_interface(subnet)
        where = {"interface": "eth1", "address": str(ip.ip), "prefix": ip.network.prefixlen}
        member["host"]["addresses"].append({**where, "mac": f"02:00:00:00:02:0{at}"})
    assert not any("share no subnet" in fault for fault in faults(members))


INGRESS_MEND = "leave out worker-0: name the other nodes in ipi_ingress_members, or in the VIP's own members"


def remote(node):
    return on(node, "10.9.0.51/24", interface="ens192")


def test_another_subnets_worker_is_left_out_of_the_ingress_members():
    nodes = clusters.cluster(interface="ens192")
    found = _ipi.plan([*nodes[:3], remote(nodes[3])]).faults
    assert [each for each in found if "share no subnet" in each] == [
        "VIP 10.0.0.201: master-0, master-2, master-1 (ens192 in 10.0.0.0/24, 2001:db8::/64) and "
        f"worker-0 (ens192 in 10.9.0.0/24) share no subnet. {RULE}: {INGRESS_MEND}."
    ]
    nodes = clusters.cluster(interface="ens192", ingress_members=[*clusters.SETTINGS["masters"]])
    assert _ipi.plan([*nodes[:3], remote(nodes[3])]).faults == []


@pytest.mark.parametrize("settings", [{}, {"verify": False}, {"bootstrap": "10.0.0.20", "verify": False}])
def test_a_master_in_another_subnet_is_refused_whatever_the_run_verifies(settings):
    nodes = clusters.cluster(interface="ens192", ingress_members=["master-0", "master-2"], **settings)
    on(nodes[2], "10.9.0.99/24", interface="ens192")
    found = [fault for fault in _ipi.plan(nodes).faults if "share no subnet" in fault]
    assert len(found) == 1
    assert found[0].startswith("VIP 10.0.0.200: master-0, master-2 (ens192 in ")
    assert found[0].endswith(f"{RULE}: give master-1 an address there, or correct ipi_interface.")


def test_members_are_refused_exactly_if_no_chain_of_shared_subnets_joins_them():
    chosen = random.Random(48)
    for _round in range(60):
        links = [[chosen.randrange(4) for _each in range(chosen.choice((1, 1, 2)))] for _member in range(3)]
        places = [" ".join(f"10.0.{net}.{at}/24" for net in dict.fromkeys(on)) for at, on in enumerate(links, 1)]
        joined = set(links[0])
        for _step, on_links in itertools.product(range(3), links):
            joined |= set(on_links) if joined & set(on_links) else set()
        is_one = all(joined & set(on_links) for on_links in links)
        refused = any("share no subnet" in fault for fault in faults(pair_of(*places, vips=["10.0.0.200"])))
        assert refused != is_one, places
