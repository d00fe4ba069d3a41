"""What a user writes about BGP, in the words of this collection and in those of OpenShift's API."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import settings as reach
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair

PEER = {"address": "10.0.1.1", "asn": 64601}
OWN = {"asn": 64512, "peers": [PEER]}


def read(bgp, **settings):
    faults = []
    return reach.read_bgp({"bgp": bgp, **settings}, "pair", faults), faults


def peer(**changes):
    found, faults = read({**OWN, "peers": [{**PEER, **changes}]})
    return found["peers"][0] if found["peers"] else None, faults


def test_the_defaults_of_a_peer():
    found, faults = read(OWN)
    assert faults == []
    assert found["peers"] == [
        {
            **PEER,
            "port": 179,
            "bfd": False,
            "families": ["ipv4"],
            "password": "",
            "hold_time": 9,
            "keepalive_time": 3,
            "connect_time": 1,
            "communities": None,
            "local_address": "",
            "multihop": 0,
            "ttl_security": 0,
            "route_reflector": False,
        }
    ]
    assert found["bfd"] == {"interval": 50, "multiplier": 3, "router_interval": 10}


def test_a_peer_has_what_all_have_unless_it_says_something_else():
    own = {"hold_time": 30, "password": "of-all", "bfd": {"interval": 100}, "local_address": "10.0.1.11"}
    found, faults = read({**OWN, **own, "peers": [PEER, {**PEER, "hold_time": 6, "bfd": False, "password": "its"}]})
    assert faults == [] and found["bfd"] == {"interval": 100, "multiplier": 3, "router_interval": 10}
    assert [(one["hold_time"], one["keepalive_time"], one["bfd"], one["password"]) for one in found["peers"]] == [
        (30, 10, True, "of-all"),
        (6, 2, False, "its"),
    ]
    assert {one["local_address"] for one in found["peers"]} == {"10.0.1.11"}


def test_communities_of_all_are_not_repeated_at_each_peer():
    found, _faults = read({**OWN, "communities": ["64512:1"], "peers": [{**PEER, "communities": ["64512:1:2"]}, PEER]})
    assert found["communities"] == ["64512:1"]
    assert [one["communities"] for one in found["peers"]] == [["64512:1:2"], None]


def test_the_peers_of_one_member_take_the_place_of_those_of_all():
    other = {"address": "10.0.2.1", "asn": 64602}
    assert [one["address"] for one in read(OWN, bgp_peers=[other])[0]["peers"]] == ["10.0.2.1"]


def test_the_keys_of_openshifts_api_mean_the_same():
    theirs = {
        "localASN": 64512,
        "communities": ["64512:1"],
        "peers": [
            {
                "peerAddress": "10.0.1.1",
                "peerASN": 64601,
                "password": "secret",
                "port": 1179,
                "bfdEnabled": True,
                "ebgpMultiHop": True,
                "holdTime": "90s",
                "keepaliveTime": "30s",
            }
        ],
    }
    ours = {
        "asn": 64512,
        "communities": ["64512:1"],
        "peers": [
            {
                **PEER,
                "password": "secret",
                "port": 1179,
                "bfd": True,
                "multihop": True,
                "hold_time": 90,
                "keepalive_time": 30,
            }
        ],
    }
    assert read(theirs) == read(ours) and read(ours)[1] == []
    of_resource = {**theirs, "defaultPeers": theirs["peers"]}
    del of_resource["peers"]
    assert read(of_resource) == read(ours)
    assert read({}, bgp_peers=theirs["peers"])[0]["peers"] == read({}, bgp_peers=ours["peers"])[0]["peers"]


def test_each_key_of_theirs_is_one_of_ours():
    assert {*reach.OPENSHIFT.values()} <= {*reach.WHOLE} and {*reach.OPENSHIFT_PEER.values()} <= {*reach.PEER}


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"asn": 0}, "an AS number from 1 to 4294967295 is required"),
        ({"asn": 4294967295}, "this AS number is reserved (RFC 7300)"),
        ({"asn": 23456}, "this AS number stands for AS numbers of four bytes"),
        ({"asn": 65535}, "this AS number is reserved (RFC 7300)"),
        ({"asn": True}, "an AS number"),
        ({"address": "router1"}, "an IPv4 or IPv6 address is required"),
        ({"address": "fe80::1"}, "a link-local address is not enough to reach a router"),
        ({"address": None}, "lacks 'address'"),
        ({"password": "with a blank"}, "no blank"),
        ({"hold_time": 0}, "a time in seconds from 3 to 65535"),
        ({"hold_time": "2s"}, "a time in seconds from 3 to 65535"),
        ({"hold_time": "soon"}, "a time in seconds from 3 to 65535"),
        ({"hold_time": 9, "keepalive_time": 4}, "one lost message may end the session: lower it to 3"),
        ({"connect_time": 0}, "a time in seconds"),
        ({"port": 0}, "a port from 1 to 65535"),
        ({"families": []}, "a list of 1 or more"),
        ({"families": ["ipv5"]}, "one of ipv4, ipv6"),
        ({"families": ["ipv4", "ipv6"]}, "add a peer with an address of ipv6"),
        ({"communities": ["65535:0"]}, "routers avoid the member for good"),
        ({"communities": ["graceful-shutdown"]}, "routers avoid the member for good"),
        ({"communities": ["all"]}, "a community such as 64512:100"),
        ({"communities": [f"64512:{at}" for at in range(33)]}, "32 at most"),
        ({"multihop": True, "ttl_security": True}, "exclude each other"),
        ({"multihop": 255}, "true, false, or a number of hops"),
        ({"bdf": True}, "did you mean 'bfd'?"),
        ({"peerASN": 64601}, "both asn and peerASN"),
        ({"peerASN": 64602}, "both asn and peerASN"),
    ],
)
def test_a_peer_that_cannot_be_is_a_sentence(changes, words):
    _found, faults = peer(**changes)
    assert len(faults) == 1 and words in faults[0] and faults[0].startswith("pair_bgp.peers[0]")


@pytest.mark.parametrize(
    "bgp, words",
    [
        ({"peers": [PEER]}, "pair_bgp lacks 'asn'"),
        ({**OWN, "router_id": "2001:db8::1"}, "four numbers"),
        ({**OWN, "router_id": "0.0.0.0"}, "four numbers"),
        ({**OWN, "bfd": "fast"}, "pair_bgp.bfd is 'fast'"),
        ({**OWN, "bfd": {"interval": 1}}, "pair_bgp.bfd.interval is 1"),
        ({**OWN, "bfd": {"multiplier": 1}}, "pair_bgp.bfd.multiplier is 1"),
        ({**OWN, "peers": "10.0.1.1"}, "pair_bgp.peers is no list"),
        ({**OWN, "peers": [PEER] * 17}, "16 at most"),
        ("yes", "a mapping with the keys"),
        ({**OWN, "peerASN": 1}, "unknown key 'peerASN'"),
    ],
)
def test_whatever_else_cannot_be_is_a_sentence(bgp, words):
    assert any(words in fault for fault in read(bgp)[1])


@pytest.mark.parametrize("wrong", [{"password": ["hunter2"]}, {"peers": [{**PEER, "password": {"a": "hunter2"}}]}])
def test_no_sentence_shows_a_password(wrong):
    faults = read({**OWN, **wrong})[1]
    assert faults and not any("hunter2" in fault for fault in faults)


@pytest.mark.parametrize("key", [key for key in reach.OF_VRRP if key in _pair.SETTINGS])
def test_a_variable_that_only_vrrp_has_is_said_and_counts_for_nothing(key):
    usual = {name: field.default for name, field in _pair.SETTINGS.items()}
    given = {**usual, "reach": "bgp", key: "something else"}
    said = reach.without_effect(given, _pair.SETTINGS, ["vips"], "pair")
    assert said == [f"pair_{key} has no effect with pair_reach bgp: leave it out."]
    assert reach.without_vrrp(given, _pair.SETTINGS) == {**usual, "reach": "bgp"}
    of_vrrp = {**given, "reach": "vrrp"}
    assert reach.without_vrrp(of_vrrp, _pair.SETTINGS) == of_vrrp


def test_so_is_what_vrrp_alone_has_at_a_vip_and_bgp_with_vrrp():
    usual = {name: field.default for name, field in _pair.SETTINGS.items()}
    vips = [{"address": "203.0.113.10", "vrid": 7}, "203.0.113.11", {"address": "203.0.113.12", "first": "lb1"}]
    assert reach.without_effect({**usual, "vips": vips, "reach": "bgp"}, _pair.SETTINGS, ["vips"], "pair") == [
        "pair_vips[0].vrid has no effect with pair_reach bgp: leave it out.",
        "pair_vips[2].first has no effect with pair_reach bgp: leave it out.",
    ]
    assert reach.without_effect({**usual, "bgp": OWN}, _pair.SETTINGS, ["vips"], "pair") == [
        "pair_bgp has no effect with pair_reach vrrp: set pair_reach to bgp."
    ]
