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
    found = balancer(service(6443, FIRST, SECOND), service(443, FIRST, SECOND)).counters
    places = [("192.0.2.100", port, FIRST.address) for port in (6443, 443)]
    assert found["servers_0_192_0_2_1"] == places and len(found) == 2


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
    for number, other in (each.split(" : ") for each in listed.split(", ")):
        bucket = table([FIRST, SECOND], COUNT)[int(number)]
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
