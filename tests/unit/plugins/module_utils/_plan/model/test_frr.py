# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role frr may be given, what of it is refused, and that one peer or VIP decides no line of another."""

from __future__ import annotations

import random

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import frr
from support.rendering import render

OWN = ["127.0.0.1", "::1", "192.0.2.11", "2001:db8::11", "198.51.100.10"]
PEER = {"address": "192.0.2.1", "asn": 64601}
PEER6 = {"address": "2001:db8::1", "asn": 64601}
VIP, VIP6 = "198.51.100.10", "2001:db8:1::10"
GIVEN = {"asn": 64512, "peers": [PEER, PEER6], "prefixes": [VIP, VIP6]}
PLACE = "frr_peers[0] (192.0.2.1)"


def model(own=tuple(OWN), peer=None, **settings):
    peers = {"peers": [{**PEER, **peer}, PEER6]} if peer is not None else {}
    return frr.model({**GIVEN, **peers, **settings}, own)


def text(**settings):
    found = frr.model({**GIVEN, **settings}, OWN)
    assert found["faults"] == []
    return render("frr", "frr.conf.j2", model=found)


def test_usual_settings_have_no_fault_and_the_router_id_is_no_vip():
    found = model()
    assert (found["faults"], found["router_id"]) == ([], "192.0.2.11")
    assert model(own=[VIP, "192.0.2.12"])["router_id"] == "192.0.2.12"
    assert model(router_id="192.0.2.99")["router_id"] == "192.0.2.99"
    assert frr.model({}, [])["faults"] == []


RESERVED = "this AS number {}: name the one of that router."
FOUR_BYTES, RFC_7300 = "stands for AS numbers of four bytes (RFC 6793)", "is reserved (RFC 7300)"
OF_A_PEER = [
    ({"asn": 0}, "frr_peers[0].asn is 0: an AS number from 1 to 4294967295 is required."),
    ({"asn": 23456}, f"frr_peers[0].asn is 23456: {RESERVED.format(FOUR_BYTES)}"),
    ({"asn": 65535}, f"frr_peers[0].asn is 65535: {RESERVED.format(RFC_7300)}"),
    ({"asn": 4294967295}, f"frr_peers[0].asn is 4294967295: {RESERVED.format(RFC_7300)}"),
    ({"asn": 4294967296}, "frr_peers[0].asn is 4294967296: an AS number from 1 to 4294967295 is required."),
    ({"address": "192.0.2.11"}, "frr_peers[0] (192.0.2.11) is an address of this host: name that of its router."),
    (
        {"address": VIP},
        f"frr_peers[0] ({VIP}) is one of frr_prefixes: name the address of the router itself.",
    ),
    ({"address": "2001:db8:0::1"}, "frr_peers has 2001:db8::1 twice: leave one out."),
    (
        {"address": "fe80::1"},
        "frr_peers[0].address is 'fe80::1': a link-local address is not enough to reach a router: name its global or "
        "its unique local one.",
    ),
    (
        {"address": "127.0.0.2"},
        "frr_peers[0].address is '127.0.0.2': the address of one host on the network is required.",
    ),
    (
        {"address": "224.0.0.5"},
        "frr_peers[0].address is '224.0.0.5': the address of one host on the network is required.",
    ),
    ({"hold_time": 0}, "frr_peers[0].hold_time is 0: seconds from 3 to 65535 is required."),
    ({"hold_time": 2}, "frr_peers[0].hold_time is 2: seconds from 3 to 65535 is required."),
    (
        {"hold_time": 9, "keepalive_time": 4},
        f"{PLACE}.keepalive_time is 4, and a third of the hold_time is 3 at most.",
    ),
    (
        {"password": "x" * 81},
        "frr_peers[0].password is a secret (text): it has more than 80 characters, which is all that the kernel "
        "takes: shorten it.",
    ),
    (
        {"password": "two words"},
        "frr_peers[0].password is a secret (text): frr.conf can have only letters, digits and signs of ASCII in "
        "it, and no blank.",
    ),
    (
        {"ttl_security": 1, "multihop": 2},
        f"{PLACE} has ttl_security and multihop, which exclude each other: leave one out.",
    ),
    ({"multihop": 255}, "frr_peers[0].multihop is 255: a number of hops from 0 to 254 is required."),
    ({"asn": 64512, "multihop": 2}, f"{PLACE}.multihop is for another AS: within one AS leave it out."),
    (
        {"families": ["ipv4", "ipv6"]},
        f"{PLACE}.families has ipv6, and its address is of ipv4: add a peer of ipv6.",
    ),
    (
        {"local_address": "2001:db8::11"},
        f"{PLACE}.local_address is 2001:db8::11, and the peer is of ipv4: name an address of ipv4.",
    ),
    (
        {"local_address": "192.0.2.77"},
        f"{PLACE}.local_address is 192.0.2.77, which this host does not have: name one of its own.",
    ),
    (
        {"local_address": VIP},
        f"{PLACE}.local_address is one of frr_prefixes, which other hosts have too: name its own.",
    ),
    (
        {"communities": ["64512:65536"]},
        "frr_peers[0].communities is ['64512:65536']: in it '64512:65536' is wrong: a community such as 64512:100 or "
        "64512:1:100, or one of graceful-shutdown, blackhole, no-export, no-advertise, local-AS, no-peer is required.",
    ),
]


@pytest.mark.parametrize("peer, fault", OF_A_PEER, ids=[str(peer) for peer, _fault in OF_A_PEER])
def test_a_peer_that_cannot_be_is_refused_in_one_sentence(peer, fault):
    assert model(peer=peer)["faults"] == [fault]


OF_ALL = [
    ({"asn": 0}, "frr_asn is not set: set the AS number of this host."),
    (
        {"prefixes": [VIP], "peers": [PEER6]},
        f"frr_prefixes has {VIP}, and no peer is of ipv4: add one to frr_peers, or leave it out.",
    ),
    ({"prefixes": [VIP, f"{VIP}/32"]}, f"frr_prefixes has {VIP} twice: leave one out."),
    (
        {"prefixes": [f"{VIP}/24"]},
        f"frr_prefixes[0] is '{VIP}/24': only single addresses are announced: write {VIP}/32.",
    ),
    (
        {"prefixes": [f"{VIP6}/64"]},
        f"frr_prefixes[0] is '{VIP6}/64': only single addresses are announced: write {VIP6}/128.",
    ),
    (
        {"prefixes": ["0.0.0.0/0"]},
        "frr_prefixes[0] is '0.0.0.0/0': the address of one host on the network is required.",
    ),
    (
        {"prefixes": ["fe80::1"]},
        "frr_prefixes[0] is 'fe80::1': no router passes a link-local address on: name a global or a unique local one.",
    ),
    ({"router_id": VIP}, f"frr_router_id is {VIP}, one of frr_prefixes, which other hosts have too: set another one."),
    (
        {"router_id": "2001:db8::1"},
        "frr_router_id is '2001:db8::1': four numbers like an IPv4 address of this host are required.",
    ),
    ({"bfd": {"interval": 9}}, "frr_bfd is a mapping: its interval is 9: milliseconds from 10 to 60000 is required."),
    (
        {"extra_lines": ["route-map onprem-in permit 5"]},
        "frr_extra_lines is ['route-map ...']: line 1 names a list or a map of this role: give it another name than "
        "onprem.",
    ),
    (
        {"extra_lines": ["router bgp 1", " bgp graceful-restart"]},
        "frr_extra_lines is ['router ...', 'bgp ...']: with line 2 routers would keep the paths of a host that is "
        "dead: leave it out.",
    ),
]


@pytest.mark.parametrize("settings, fault", OF_ALL, ids=[str(settings) for settings, _fault in OF_ALL])
def test_settings_that_cannot_be_are_refused_in_one_sentence(settings, fault):
    assert model(**settings)["faults"] == [fault]


def test_a_host_without_ipv4_needs_a_router_id():
    own, only6 = ["2001:db8::11"], {"peers": [PEER6], "prefixes": [VIP6]}
    assert model(own, **only6)["faults"] == [
        "frr_router_id is not set, and this host has no IPv4 address: set one that no other router has."
    ]
    assert model(own, router_id="10.0.0.1", **only6)["faults"] == []


def test_passwords_are_secrets_and_shown_nowhere():
    found = model(peer={"password": "correct-horse"})
    assert found["secrets"] == ["correct-horse"]
    assert "correct-horse" not in str(model(peer={"password": "correct-horse", "asn": 0})["faults"])


def test_a_peer_has_the_families_and_times_that_follow():
    peer = model(peer={"hold_time": 10})["peers"][0]
    assert (peer["families"], peer["keepalive_time"], model()["bfd"]) == (
        ["ipv4"],
        3,
        {"interval": 50, "multiplier": 3, "router_interval": 10},
    )


def test_communities_are_in_the_order_in_which_frr_shows_them():
    peer = model(communities=["no-export", "64512:100", "65535:0", "64512:50", "64512:2:3", "64512:100"])["peers"][0]
    assert peer["communities"] == ["64512:50", "64512:100", "graceful-shutdown", "no-export"]
    assert peer["large_communities"] == ["64512:2:3"]
    assert model(communities=["1:1"], peer={"communities": []})["peers"][0]["communities"] == []


def lines(**settings):
    return set(text(**settings).splitlines())


def vips(seed):
    draw = random.Random(seed)
    return [
        *(f"198.51.100.{last}" for last in draw.sample(range(1, 255), 20)),
        *(f"2001:db8:1::{last:x}" for last in draw.sample(range(1, 60000), 20)),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_no_vip_and_no_peer_changes_a_line_of_another(seed):
    """frr-reload deletes a line before it adds another, which would withdraw a VIP that stays."""
    every = vips(seed)
    peers = [PEER, PEER6, {"address": "192.0.2.2", "asn": 64602, "communities": ["64512:7"]}]
    whole = lines(prefixes=every, peers=peers)
    assert lines(prefixes=every[::-1], peers=peers[::-1]) == whole
    for at in (0, 10, 39):
        fewer = lines(prefixes=every[:at] + every[at + 1 :], peers=peers)
        assert fewer < whole and all(every[at] in line for line in whole - fewer)
    fewer = lines(prefixes=every, peers=peers[:2])
    assert fewer < whole and {line for line in whole - fewer if "192.0.2.2" not in line} == {" set community 64512:7"}


def test_vips_with_the_same_number_get_others(monkeypatch):
    monkeypatch.setattr(frr.zlib, "crc32", lambda _text: frr.SEQUENCES)
    found = frr.model({**GIVEN, "prefixes": ["2001:db8:1::1", "2001:db8:1::2"]}, OWN)["families"]["ipv6"]
    assert [number for number, _vip in found] == [1, 2]


def test_without_vips_nothing_is_announced():
    assert {"ip prefix-list onprem-vips seq 5 deny any", "ipv6 prefix-list onprem-vips seq 5 deny any"} <= lines(
        prefixes=[]
    )
