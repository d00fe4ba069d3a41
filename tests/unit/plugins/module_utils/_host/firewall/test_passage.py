# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a ruleset refuses for certain: never what an administrator may have opened in another way."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall import core, passage, ruleset
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.model import MARK, apply, wanted_openings
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.passage import Packet
from support.firewalls import BANNED, DPORT, INPUT, LO, SADDR, STATE, FakeNft, accepting, base, dropping, match

VIP, PEER = "192.0.2.10", "192.0.2.2"
CLIENT, ROUTER = Packet(VIP, 443, "", "eth0"), Packet("192.0.2.1", 0, PEER, "eth0")
ACCEPT, DROP = {"accept": None}, {"drop": None}
XT = {"xt": {"type": "match", "name": "multiport"}}
TCP = match({"meta": {"key": "l4proto"}}, "tcp")
DNAT = match({"ct": {"key": "status"}}, "dnat", "in")
STATES = {"key": {"ct": {"key": "state"}}, "data": {"set": [["invalid", DROP], ["established", ACCEPT]]}}
BY_FIELD = {"payload": {"protocol": "ip", "field": "protocol"}}
LINK = {"meta": {"key": "iifname"}}


def rules_of(host):
    return ruleset.parse(host.run(["nft", "-j", "-t", "list", "ruleset"])[1])


def refused(host, packet=CLIENT):
    return passage.refusing(rules_of(host), packet) is not None


@pytest.mark.parametrize("vrrp", ["vrrp", 112])
def test_what_a_run_opens_is_let_in_and_is_refused_once_its_rules_are_gone(vrrp):
    host = dropping(vrrp=vrrp)
    apply(core.plan(host, "auto", wanted_openings([443], [PEER])).actions, host)
    assert [refused(host, packet) for packet in (CLIENT, ROUTER)] == [False, False]
    _policy, rules = host.chains[INPUT]
    rules[:] = [rule for rule in rules if rule.get("comment") != MARK]
    assert passage.refusing(rules_of(host), CLIENT) == passage.refusing(rules_of(host), ROUTER) == INPUT


@pytest.mark.parametrize(
    "rules",
    [
        [[match(DPORT, 443), ACCEPT]],
        [[match(DPORT, {"set": [80, {"range": [440, 450]}]}), ACCEPT]],
        [[match(DPORT, 22, "!="), ACCEPT]],
        [[match(DPORT, "@web"), ACCEPT]],
        [[match(SADDR, "@friends"), ACCEPT]],
        [[match(SADDR, {"prefix": {"addr": "10.0.0.0", "len": 8}}), ACCEPT]],
        [[match(LINK, "eth*"), ACCEPT]],
        [[match(LINK, {"set": ["wg0", "eth0"]}), ACCEPT]],
        [[{"limit": {"rate": 9, "per": "second"}}, ACCEPT]],
        [[TCP, XT, {"counter": {}}, ACCEPT]],
        [[XT, {"counter": {}}]],
        [[{"xt": None}]],
        [[match({"meta": {"key": "mark"}}, 7), ACCEPT]],
        [[{"vmap": {"key": {"payload": DPORT["payload"]}, "data": "@ports"}}]],
        [[{"vmap": {"key": {"payload": DPORT["payload"]}, "data": {"set": [[443, ACCEPT]]}}}]],
        [[match(STATE, ["new", "established"], "in"), ACCEPT]],
        [[{"jump": {"target": "nowhere"}}]],
        [BANNED, [match({"payload": {"protocol": "ip", "field": "daddr"}}, VIP), ACCEPT]],
    ],
)
def test_a_port_is_not_called_closed_where_a_rule_may_accept_it(rules):
    assert not refused(base(*rules))


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [LO and [LO, ACCEPT], BANNED],
        [[{"vmap": STATES}]],
        [[match(STATE, ["established", "related"], "in"), ACCEPT]],
        [[match(DPORT, {"set": [22, 80]}), ACCEPT]],
        [[match(DPORT, 443, "!="), ACCEPT]],
        [[match(BY_FIELD, "icmp"), ACCEPT]],
        [[match({"payload": {"protocol": "udp", "field": "dport"}}, 443), ACCEPT]],
        [[match({"payload": {"protocol": "udp", "field": "dport"}}, 53, "!="), ACCEPT]],
        [[match(LINK, {"set": ["eth1", "wg*"]}), ACCEPT]],
        [[match({"payload": {"protocol": "ip6", "field": "saddr"}}, "::1", "!="), ACCEPT]],
        [[match({"payload": {"protocol": "ip", "field": "daddr"}}, "192.0.2.11"), ACCEPT]],
        [[DNAT, ACCEPT]],
        [[{"reject": None}], [match(DPORT, 443), ACCEPT]],
        [[{"return": None}], [match(DPORT, 443), ACCEPT]],
    ],
)
def test_a_port_that_no_rule_accepts_is_closed(rules):
    assert refused(base(*rules))


def test_chains_are_followed_as_the_kernel_does():
    jumps = [[{"jump": {"target": "zone"}}], [match(DPORT, 443), ACCEPT]]
    assert not refused(base(*jumps, zone=[[match(DPORT, 22), ACCEPT], [{"return": None}]]))
    assert refused(base(*jumps, zone=[[match(DPORT, 22), ACCEPT], [{"reject": None}]]))
    goes = [[{"goto": {"target": "zone"}}], [match(DPORT, 443), ACCEPT]]
    assert refused(base(*goes, zone=[[match(DPORT, 22), ACCEPT]]))
    assert refused(base([{"drop": None}], policy="accept")) and not refused(base(policy="accept"))


def test_a_packet_passes_every_chain_of_its_family_and_no_other():
    v4 = FakeNft({("ip", "a"): {"input": ("accept", [])}, ("ip", "b"): {"input": ("drop", [])}})
    assert refused(v4) and not refused(v4, CLIENT._replace(target="2001:db8::10"))


def test_after_a_redirect_of_our_own_nobody_says_that_the_other_port_is_closed():
    host = base([DNAT, ACCEPT])
    host.chains["ip", "onprem_lb_api", "prerouting"] = (None, [{"expr": [{"redirect": {"port": 9445}}], "handle": 1}])
    assert passage.redirects(rules_of(host)) and not passage.redirects(rules_of(base([DNAT, ACCEPT])))
    assert not refused(host, CLIENT._replace(redirected=True))


def test_rules_of_iptables_are_not_known_and_those_of_a_named_set_are_no_riddle():
    iptables = [[TCP, XT, {"counter": {}}, ACCEPT], [{"xt": {"type": "target", "name": "REJECT"}}]]
    assert passage.is_unknown(rules_of(base(*iptables, policy="accept")), CLIENT)
    assert not passage.is_unknown(rules_of(accepting(BANNED)), CLIENT)
    assert refused(base(*iptables[1:], policy="accept"))


def test_vrrp_is_let_in_from_one_peer_and_not_from_another():
    host = base([match(SADDR, PEER), match({"meta": {"key": "l4proto"}}, "vrrp"), ACCEPT])
    assert not refused(host, ROUTER) and refused(host, ROUTER._replace(source="192.0.2.3"))
    assert not refused(host, Packet("224.0.0.18", 0, "", "eth0"))


def test_a_ruleset_that_another_tool_has_written_never_ends_in_a_crash():
    odd = [{"match": {"op": "==", "left": "x", "right": {"&": [1, 2]}}}, {"match": {"op": "<", "left": {}, "right": 5}}]
    for left in ({"concat": []}, {"meta": {"key": "x"}}, {"payload": {"base": "th", "offset": 1}}, {"&": [1, 2]}):
        odd.append(match(left, {"set": [{"concat": [1]}, {"elem": {"val": 3}}]}))
    assert not refused(base(*[[each, ACCEPT] for each in odd])), json.dumps(odd)
