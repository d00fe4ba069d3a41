"""Each member's routers: what is refused, from which address it speaks, and who is who."""

from __future__ import annotations

import ipaddress

import pytest
from support.plans.racks import ASN, ROUTER_ASN, VIP, VIP6, plan, racks, router, with_peer


def frr(planned, name="lb1"):
    assert planned.faults == []
    return planned.members[name].bgp["frr"]


def test_members_in_two_subnets_are_a_pair_each_with_its_own_router_and_address():
    planned = plan(racks())
    assert planned.warnings == []
    for number, name in enumerate(("lb1", "lb2"), 1):
        own = frr(planned, name)
        assert (own["asn"], own["router_id"], own["prefixes"]) == (ASN, f"10.0.{number}.11", [f"{VIP}/32"])
        assert [(each["address"], each["asn"], each["local_address"]) for each in own["peers"]] == [
            (router(number), ROUTER_ASN, f"10.0.{number}.11")
        ]


def test_nothing_is_announced_but_the_vips_that_a_member_has():
    both = racks(vips=[VIP, {"address": VIP6}])
    for number, each in enumerate(both, 1):
        each["settings"]["bgp"]["peers"].append({"address": f"2001:db8:{number}::1", "asn": ROUTER_ASN})
    assert frr(plan(both))["prefixes"] == [f"{VIP}/32", f"{VIP6}/128"]


def test_a_peer_of_the_other_family_is_reached_from_an_address_of_that_family():
    members = racks(vips=[VIP6])
    for number, each in enumerate(members, 1):
        each["settings"]["bgp"]["peers"] = [{"address": f"2001:db8:{number}::1", "asn": ROUTER_ASN}]
    own = frr(plan(members))
    assert own["peers"][0]["local_address"] == "2001:db8:1::11" and own["peers"][0]["families"] == ["ipv6"]
    assert own["router_id"] == "10.0.1.11"


def test_a_host_without_ipv4_has_a_router_id_that_stays_and_that_no_other_has():
    members = racks(vips=[VIP6])
    for number, each in enumerate(members, 1):
        each["settings"]["bgp"]["peers"] = [{"address": f"2001:db8:{number}::1", "asn": ROUTER_ASN}]
        each["address"] = each["name"]
        each["host"]["addresses"] = [info for info in each["host"]["addresses"] if ":" in info["address"]]
    ids = [frr(plan(members), name)["router_id"] for name in ("lb1", "lb2")]
    assert len({*ids}) == 2 and ids == [frr(plan(members), name)["router_id"] for name in ("lb1", "lb2")]
    assert all(0 < ipaddress.IPv4Address(each).packed[0] < 224 for each in ids)


def test_a_host_that_was_not_read_speaks_from_whichever_address_it_has():
    members = [{**each, "host": None} for each in racks()]
    planned = plan(members)
    assert planned.warnings == [] and frr(planned)["router_id"] == "10.0.1.11"
    assert "local_address" not in frr(planned)["peers"][0]


def changed(change, count=2, **settings):
    members = racks(count, **settings)
    change(members)
    return plan(members).faults


def peers_of_first(*peers):
    def change(members):
        members[0]["settings"]["bgp"]["peers"] = [*peers]

    return change


def one(**changes):
    return {"address": router(1), "asn": ROUTER_ASN, **changes}


REFUSED = {
    "no peer": (peers_of_first(), "lb1 has no peer, so that no router would send it anything"),
    "ourselves": (peers_of_first(one(address="10.0.1.11")), "lb1: a peer is 10.0.1.11, lb1's own address"),
    "another member": (peers_of_first(one(address="10.0.2.11")), "lb1: a peer is 10.0.2.11, lb2's own address"),
    "a VIP": (peers_of_first(one(address=VIP)), f"lb1: a peer is {VIP}, a VIP of the pair"),
    "twice": (peers_of_first(one(), one()), "lb1: the peer 10.0.1.1 is named twice"),
    "iBGP": (peers_of_first(one(asn=ASN)), "lb1: the peer 10.0.1.1 has the same AS number 64512 (iBGP)"),
    "iBGP with multihop": (
        peers_of_first(one(asn=ASN, route_reflector=True, multihop=2)),
        "lb1: the peer 10.0.1.1 is of the same AS (iBGP), where multihop has no effect",
    ),
    "far away": (
        peers_of_first(one(address="10.9.9.1")),
        "lb1: the peer 10.9.9.1 is on no connected network (there are: eth0 10.0.1.11/24, eth0 2001:db8:1::11/64)",
    ),
    "a local address of nobody": (
        peers_of_first(one(local_address="10.0.1.99")),
        "lb1: the peer 10.0.1.1 has local_address 10.0.1.99, which this host does not have",
    ),
    "the other family": (
        peers_of_first({"address": "2001:db8:1::1", "asn": ROUTER_ASN}),
        f"lb1: no peer has the family ipv4 of {VIP}",
    ),
    "one router id": (
        lambda members: [each["settings"]["bgp"].update(router_id="192.0.2.1") for each in members],
        "lb1 and lb2 both have the router id 192.0.2.1",
    ),
    "an own address as VIP": (
        lambda members: members[0]["host"]["addresses"].append(
            {"interface": "eth0", "address": VIP, "prefix": 24, "mac": ""}
        ),
        f"lb1: VIP {VIP} is this host's own address on eth0",
    ),
    "a prefix length": (
        lambda members: [each["settings"].update(vips=[f"{VIP}/24"]) for each in members],
        f"VIP {VIP}/24 has a prefix length, and BGP announces the address alone: write {VIP}.",
    ),
    "a link-local VIP": (
        lambda members: [each["settings"].update(vips=["fe80::10"]) for each in members],
        "VIP fe80::10 is link-local, and no router passes it on",
    ),
    "an unknown distribution": (
        lambda members: members[1]["host"].update(os_family="alpine"),
        "lb2 is alpine, whose FRR packages the roles do not know: use pair_reach vrrp.",
    ),
    "no packages": (
        lambda members: members[1]["host"].update(
            os_family="Debian", missing_packages=["haproxy"], unobtainable="no repository answers"
        ),
        "lb2 cannot get FRR, because no repository answers: mend that, or use pair_reach vrrp.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_never_work_is_refused_in_one_sentence(case):
    change, words = REFUSED[case]
    found = changed(change)
    assert len(found) == 1 and found[0].startswith(words)


ACCEPTED = {
    "iBGP by a route reflector": peers_of_first(one(asn=ASN, route_reflector=True)),
    "far away by multihop": peers_of_first(one(address="10.9.9.1", multihop=2)),
    "its own family, spelt out": peers_of_first(one(families=["ipv4"])),
    "FRR is there, and no repository": lambda members: members[1]["host"].update(
        os_family="Debian",
        missing_packages=["haproxy"],
        unobtainable="no repository answers",
        existing_units=["frr.service"],
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_and_its_mend_is_accepted(case):
    assert changed(ACCEPTED[case]) == []


def test_a_vip_length_of_the_address_alone_says_nothing_new():
    assert frr(plan(racks(vips=[f"{VIP}/32"])))["prefixes"] == [f"{VIP}/32"]


@pytest.mark.parametrize(
    "vip, words",
    [
        ("10.0.1.200", "VIP 10.0.1.200 is inside 10.0.1.0/24, where clients look for it by ARP"),
        ("2001:db8:2::200", "VIP 2001:db8:2::200 is inside 2001:db8:2::/64, where clients look for it by Neighbor"),
    ],
)
def test_a_vip_on_a_members_own_link_is_said(vip, words):
    members = racks(vips=[vip])
    for number, each in enumerate(members, 1):
        each["settings"]["bgp"]["peers"].append({"address": f"2001:db8:{number}::1", "asn": ROUTER_ASN})
    planned = plan(members)
    assert planned.faults == [] and [said for said in planned.warnings if said.startswith(words)]


def test_bfd_that_a_busy_host_may_miss_is_said():
    fast = plan(racks(bgp={"bfd": {"interval": 10}})).warnings
    assert len(fast) == 1 and fast[0].startswith("lb1, lb2: pair_bgp.bfd ends a session after less than 150 ms")
    assert plan(with_peer(racks(bgp={"bfd": {"interval": 10}}), bfd=False)).warnings == []


def test_every_router_may_open_its_sessions_and_nobody_else():
    opened = plan(racks()).members["lb1"].firewall
    assert opened.vrrp_peers == [] and opened.interfaces == ["eth0"]
    assert opened.restricted_ports == [
        {"protocol": kind, "port": port, "networks": ["10.0.1.1"]}
        for kind, port in (("tcp", 179), ("udp", 3784), ("udp", 3785))
    ]
    far = plan(with_peer(racks(), multihop=2)).members["lb1"].firewall.restricted_ports
    assert [(each["protocol"], each["port"]) for each in far] == [("tcp", 179), ("udp", 4784)]
    inner = plan(with_peer(racks(), asn=ASN, route_reflector=True)).members["lb1"].firewall.restricted_ports
    assert [each["port"] for each in inner] == [179, 3784, 3785, 4784]
    without = plan(with_peer(racks(), bfd=False)).members["lb1"].firewall.restricted_ports
    assert [each["port"] for each in without] == [179]


def test_the_role_gets_no_key_that_says_nothing_and_none_that_is_for_the_plan_alone():
    keys = {*frr(plan(racks(bgp={"route_reflector": True})))["peers"][0]}
    assert not keys & {"password", "communities", "route_reflector"} and "local_address" in keys
    assert frr(plan(racks(bgp={"password": "secret"})))["peers"][0]["password"] == "secret"
