# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the files say; tests/netns/test_direct.py tries what they do."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.direct import rulesets
from ansible_collections.onprem.lb.plugins.module_utils._plan.direct.buckets import Server, table
from ansible_collections.onprem.lb.plugins.module_utils._plan.direct.rulesets import Service

COUNT, OWN = 4096, "02:00:00:00:00:99"
FIRST, SECOND, THIRD = (Server(f"192.0.2.{number}") for number in (1, 2, 3))
MACS = {server.address: f"02:00:00:00:00:0{number}" for number, server in enumerate((FIRST, SECOND, THIRD), 1)}


def service(port, *servers, vip="192.0.2.100"):
    return Service(vip, port, servers, COUNT)


def balancer(*services, macs=MACS):
    return rulesets.of_balancer(services, "eth0", macs, OWN)


def elements(text, kind):
    """Return what each map or set of a kind has, by its name."""
    found = re.findall(rf"(?:map|set) (\w+_{kind}) {{ type [^;]+; (?:elements = {{ (.*?) }}; )?}}", text)
    return {
        name: dict((each + " : ").split(" : ")[:2] for each in listed.split(", ") if each) for name, listed in found
    }


def test_services_of_the_same_servers_share_their_buckets():
    text = balancer(service(6443, FIRST, SECOND), service(443, SECOND, FIRST), service(9345, THIRD))
    assert list(elements(text, "macs")) == ["servers_0_macs", "servers_1_macs"]
    assert "ip daddr 192.0.2.100 tcp dport 443 goto servers_0" in text
    assert "ip daddr 192.0.2.100 tcp dport 9345 goto servers_1" in text


def test_a_bucket_has_the_mac_of_its_owner():
    found = elements(balancer(service(6443, FIRST, SECOND)), "macs")["servers_0_macs"]
    assert found == {str(number): MACS[bucket.owner] for number, bucket in enumerate(table([FIRST, SECOND], COUNT))}


def test_what_this_host_serves_itself_goes_up_its_own_network_stack():
    text = balancer(service(6443, FIRST, SECOND), macs={**MACS, FIRST.address: OWN})
    here, macs = elements(text, "here")["servers_0_here"], elements(text, "macs")["servers_0_macs"]
    assert here.keys().isdisjoint(macs) and len(here) + len(macs) == COUNT
    assert set(macs.values()) == {MACS[SECOND.address]}
    assert "ip dscp 0x3b accept" in text  # what another server has handed on would be hashed again
    assert "dscp" not in balancer(service(6443, FIRST, SECOND))


@pytest.mark.parametrize("server", [FIRST, THIRD])
def test_a_server_hands_on_to_the_owner_or_if_it_is_that_to_the_second(server):
    text = rulesets.of_server([service(6443, FIRST, SECOND)], "eth0", server.address)
    for number, other in elements(text, "others")["servers_0_others"].items():
        bucket = table([FIRST, SECOND], COUNT)[int(number)]
        assert other == (bucket.second if bucket.owner == server.address else bucket.owner)


def test_a_service_without_a_server_is_left_to_the_proxy():
    text = balancer(service(6443, FIRST._replace(drains=True)), service(443))
    assert "goto" not in text and "hook ingress" in text


def test_each_family_has_a_table_of_its_own():
    six = Service("2001:db8::100", 6443, [Server("2001:db8::1"), Server("2001:db8::2")], COUNT)
    text = rulesets.of_server([service(6443, FIRST, SECOND), six], "eth0", "2001:db8::1")
    assert text.count("delete table") == 2
    four, _separator, rest = text.partition("add table ip6 ")
    assert "ip daddr" in four and "ip6" not in four
    assert "ip6 daddr 2001:db8::100" in rest and "ip daddr" not in rest
