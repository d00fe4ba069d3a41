# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the files say; tests/netns/test_direct.py tries what they do."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import rulesets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import Server, table
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.rulesets import Service, change, whole

COUNT, OWN = 4096, "02:00:00:00:00:99"
FIRST, SECOND, THIRD = (Server(f"192.0.2.{number}") for number in (1, 2, 3))
MACS = {server.address: f"02:00:00:00:00:0{number}" for number, server in enumerate((FIRST, SECOND, THIRD), 1)}


def service(port, *servers, vip="192.0.2.100", group=""):
    return Service(vip, port, servers, COUNT, group)


def balancer(*services, macs=MACS):
    return rulesets.of_balancer(services, "eth0", macs, OWN)


def drained(server):
    return server._replace(drains=True)


def commands(text):
    """Return the elements that a file adds and deletes: (verb, map or set, {key: value})."""
    found = re.findall(r"^(add|delete) element netdev \w+ (\w+) \{ (.*) \}$", text, re.MULTILINE)
    return [
        (verb, name, dict((each + " : ").split(" : ")[:2] for each in listed.split(", ")))
        for verb, name, listed in found
    ]


def filled(table):
    """Return the elements of the maps and sets that have any."""
    return {name: elements for name, elements in table.elements.items() if elements}


def test_services_of_the_same_servers_share_their_buckets():
    found = balancer(service(6443, FIRST, SECOND), service(443, SECOND, FIRST), service(9345, THIRD))
    assert [name for name in found.elements if "macs" in name] == ["servers_0_macs", "servers_1_macs"]
    assert "ip daddr 192.0.2.100 tcp dport 443 goto servers_0" in found.structure
    assert "ip daddr 192.0.2.100 tcp dport 9345 goto servers_1" in found.structure


def test_services_of_different_groups_do_not():
    """So one of them whose check finds a server down leaves the maps of the other as they are."""
    one, other = service(6443, FIRST, SECOND, group="api"), service(443, FIRST, SECOND, group="web")
    before, after = balancer(one, other), balancer(one, other._replace(servers=(FIRST, drained(SECOND))))
    assert {name for _verb, name, _elements in commands(change(before, after))} == {"servers_1_macs"}


def test_a_bucket_has_the_mac_of_its_owner():
    found = balancer(service(6443, FIRST, SECOND)).elements["servers_0_macs"]
    assert found == {str(number): MACS[bucket.owner] for number, bucket in enumerate(table([FIRST, SECOND], COUNT))}


def test_the_owners_of_a_service_are_its_servers_that_get_new_connections():
    found = balancer(service(6443, FIRST, drained(SECOND)), service(443, FIRST, SECOND)).owners
    assert found[("192.0.2.100", 6443)] == {FIRST.address}
    assert found[("192.0.2.100", 443)] == {FIRST.address, SECOND.address}


def test_the_whole_table_has_all_elements_in_one_file():
    found = balancer(service(6443, FIRST, SECOND))
    assert {name: elements for verb, name, elements in commands(whole(found))} == filled(found)
    assert whole(found).startswith("add table netdev onprem_lb_direct\ndelete table netdev onprem_lb_direct\n")


def test_what_this_host_serves_itself_goes_up_its_own_network_stack():
    found = balancer(service(6443, FIRST, SECOND), macs={**MACS, FIRST.address: OWN})
    here, macs = found.elements["servers_0_here"], found.elements["servers_0_macs"]
    assert here.keys().isdisjoint(macs) and len(here) + len(macs) == COUNT
    assert set(macs.values()) == {MACS[SECOND.address]}
    assert "ip dscp 0x3b accept" in found.structure  # what another server has handed on would be hashed again
    assert "dscp" not in balancer(service(6443, FIRST, SECOND)).structure


def test_a_server_that_goes_moves_its_own_buckets_and_no_others():
    before = balancer(service(6443, FIRST, SECOND, THIRD))
    after = balancer(service(6443, FIRST, SECOND, drained(THIRD)))
    deleted, added = commands(change(before, after))
    lost = {key for key, mac in before.elements["servers_0_macs"].items() if mac == MACS[THIRD.address]}
    assert deleted[:2] == ("delete", "servers_0_macs") and set(deleted[2]) == lost
    assert added == ("add", "servers_0_macs", {key: after.elements["servers_0_macs"][key] for key in lost})


def test_a_mac_that_changes_moves_the_counter_too():
    new = "02:00:00:00:00:55"
    before = balancer(service(6443, FIRST, SECOND))
    after = balancer(service(6443, FIRST, SECOND), macs={**MACS, FIRST.address: new})
    moved = [(verb, elements) for verb, name, elements in commands(change(before, after)) if "packets" in name]
    assert moved == [("delete", {MACS[FIRST.address]: ""}), ("add", {new: '"servers_0_192_0_2_1"'})]


def test_the_same_table_needs_no_change_and_another_structure_the_whole_one():
    before = balancer(service(6443, FIRST, SECOND))
    assert change(before, balancer(service(6443, FIRST, SECOND))) == ""
    assert change(before, balancer(service(443, FIRST, SECOND))) is None
    assert change(before, balancer(service(6443, FIRST, SECOND), macs={**MACS, FIRST.address: OWN})) is None


def test_each_counter_is_of_a_server_of_each_of_the_services():
    found = balancer(service(6443, FIRST, SECOND), service(443, FIRST, SECOND))
    places = [("192.0.2.100", port, FIRST.address) for port in (6443, 443)]
    assert found.counters["servers_0_192_0_2_1"] == found.attempts["servers_0_192_0_2_1_attempts"] == places
    assert len(found.counters) == len(found.attempts) == 2
    for name in (*found.counters, *found.attempts):
        assert f"counter {name} {{ }}" in found.structure and f'"{name}"' in str(found.elements)


def test_of_two_servers_with_one_mac_the_first_one_counts():
    """As nft takes a key once only."""
    found = balancer(service(6443, FIRST, SECOND), macs=dict.fromkeys(MACS, "02:00:00:00:00:01"))
    assert found.elements["servers_0_packets"] == {"02:00:00:00:00:01": '"servers_0_192_0_2_1"'}


def test_a_server_whose_mac_is_not_known_is_no_fault_while_it_owns_nothing():
    found = balancer(service(6443, FIRST, drained(SECOND)), macs={FIRST.address: MACS[FIRST.address]})
    assert set(found.elements["servers_0_macs"].values()) == {MACS[FIRST.address]}


@pytest.mark.parametrize("server", [FIRST, THIRD])
def test_a_server_hands_on_to_the_owner_or_if_it_is_that_to_the_second(server):
    text = rulesets.of_server([service(6443, FIRST, SECOND)], "eth0", [server.address])
    listed = re.search(r"map servers_0_others \{ type [^;]+; elements = \{ (.*?) \}; \}", text).group(1)
    buckets = table([FIRST, SECOND], COUNT)
    for number, other in (each.split(" : ") for each in listed.split(", ")):
        bucket = buckets[int(number)]
        assert other == (bucket.second if bucket.owner == server.address else bucket.owner)


def test_a_service_without_a_server_is_left_to_the_proxy():
    found = balancer(service(6443, drained(FIRST)), service(443))
    assert "goto" not in found.structure and "hook ingress" in found.structure


def test_each_family_has_a_table_of_its_own():
    six = Service("2001:db8::100", 6443, [Server("2001:db8::1"), Server("2001:db8::2")], COUNT)
    text = rulesets.of_server([service(6443, FIRST, SECOND), six], "eth0", ["2001:db8::1"])
    assert text.count("delete table") == 2
    four, _separator, rest = text.partition("add table ip6 ")
    assert "ip daddr" in four and "ip6" not in four
    assert "ip6 daddr 2001:db8::100" in rest and "ip daddr" not in rest


def rules(text, chain):
    """Return the rules of a chain."""
    return [line.strip() for line in re.search(rf"chain {chain} \{{\n(.*?)\n    \}}", text, re.DOTALL)[1].splitlines()]


def left(*services, **more):
    return balancer(*(each._replace(left=True) for each in services), **more)


CONNECTION = "ip daddr . tcp dport . ip saddr . tcp sport"


@pytest.mark.parametrize("macs", [MACS, {**MACS, FIRST.address: OWN}], ids=["balancer", "balancer and server"])
def test_what_this_host_has_itself_is_looked_for_before_a_server_is(macs):
    found = rules(balancer(service(6443, FIRST, SECOND), macs=macs).structure, "servers_0")
    first = 2 if OWN in macs.values() else 0  # what another host has handed on stays anyway
    assert found[first : first + 3] == [
        "tcp flags & (fin | syn | rst | ack) == syn jump servers_0_new",
        "ip daddr . tcp dport @servers_0_settling accept",
        f"{CONNECTION} @servers_0_own goto servers_0_to_host",
    ]
    assert "jhash" in found[first + 3] and "accept" in "".join(found[:first] or ["accept"])


def test_a_port_that_a_client_uses_again_is_a_new_connection():
    first, second = rules(balancer(service(6443, FIRST, SECOND)).structure, "servers_0_new")
    assert f"delete @servers_0_own {{ {CONNECTION} }}" in first and "accept" not in first
    assert second.startswith("ip daddr . tcp dport @servers_0_left add @servers_0_own {") and second.endswith(" accept")


def test_who_gets_new_connections_is_a_change_of_elements():
    one, other = service(6443, FIRST, SECOND), service(443, FIRST, SECOND)
    stays, leaves = balancer(one, other), balancer(one, other._replace(left=True))
    assert (stays.leaves, leaves.leaves) == (False, True)
    assert commands(change(stays, leaves)) == [("add", "servers_0_left", {"192.0.2.100 . 443": ""})]
    assert commands(change(leaves, stays)) == [("delete", "servers_0_left", {"192.0.2.100 . 443": ""})]


def test_a_table_may_keep_what_is_noted():
    text = whole(left(service(6443, FIRST, SECOND)), keep=True)
    assert text.startswith("add table netdev onprem_lb_direct\nflush table netdev onprem_lb_direct\n")
    flushed = re.findall(r"^flush (\w+) netdev onprem_lb_direct servers_0_(\w+)$", text, re.MULTILINE)
    assert flushed == [
        *(("map", name) for name in ("macs", "packets", "attempts")),
        ("set", "left"),
        ("set", "settling"),
    ]
    assert "delete table" not in text and text.index("flush map") < text.index("add element")


def test_the_sockets_of_a_service_are_at_its_port_and_where_a_redirect_leads():
    found = balancer(service(6443, FIRST, SECOND)._replace(proxy_port=9445), service(443, THIRD))
    six, four = ("192.0.2.100", 6443), ("192.0.2.100", 443)
    assert found.sockets == {six: [six], ("192.0.2.100", 9445): [six], four: [four]}
    assert found.places == {six: "servers_0", four: "servers_1"}


def test_what_a_redirect_has_translated_gets_no_second_chance():
    redirected = service(6443, FIRST, SECOND)._replace(proxy_port=9445)
    text = rulesets.of_server([redirected], "eth0", [FIRST.address])
    four, _separator, six = text.partition("add table ip6 ")
    assert rules(four, "servers_0")[0] == "ct status dnat accept"
    assert "hook prerouting priority mangle;" in four
    assert "hook prerouting priority raw - 10;" in six, "conntrack is not needed there"


@pytest.mark.parametrize("proxy_port", [0, 6443])
def test_without_a_redirect_conntrack_is_not_needed(proxy_port):
    text = rulesets.of_server([service(6443, FIRST, SECOND)._replace(proxy_port=proxy_port)], "eth0", [FIRST.address])
    assert "ct " not in text and text.count("priority raw - 10;") == 2
