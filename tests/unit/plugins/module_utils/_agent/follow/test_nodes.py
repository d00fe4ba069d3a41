# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which address of a node is a server's."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import nodes
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import IPV4, IPV6, Nodes
from support.follow.nodes import LABEL, node

NET = ("10.0.0.0/24", "fd00::/64")
BOTH = ("10.0.0.34", "fd00::34")
CIDRS, ADDRESSES = nodes.ANNOTATIONS


def address(document, **about):
    return next(iter(nodes.candidates(nodes.read(document), Nodes(**about))), None)


@pytest.mark.parametrize(
    "families, expected",
    [((IPV4,), "10.0.0.34"), ((IPV6,), "fd00::34"), ((IPV6, IPV4), "fd00::34"), ((IPV4, IPV6), "10.0.0.34")],
)
def test_a_node_of_both_families_is_a_server_of_the_first_wanted_one(families, expected):
    assert address(node("a", *BOTH), families=families) == expected


def test_the_second_family_counts_for_a_node_that_has_no_address_of_the_first():
    assert address(node("a", "fd00::34"), families=(IPV4, IPV6)) == "fd00::34"


def test_a_node_of_the_wrong_family_has_no_address():
    assert address(node("a", "fd00::34"), families=(IPV4,), networks=NET) is None


def test_an_address_in_the_machine_network_is_preferred():
    assert address(node("a", "10.0.0.34", "192.0.2.34"), networks=NET) == "10.0.0.34"
    assert address(node("a", "192.0.2.34", "10.0.0.34"), networks=NET) == "10.0.0.34"


@pytest.mark.parametrize("of_several, expected", [("first", "10.0.0.34"), ("last", "10.0.0.35")])
def test_of_several_addresses_the_first_counts_as_in_kubernetes_or_the_last_as_in_openshift(of_several, expected):
    for networks in ((), NET):
        document = node("a", "fd00::34", "10.0.0.34", "10.0.0.35")
        assert address(document, networks=networks, of_several=of_several) == expected


def test_every_address_that_a_node_has_is_its_own_but_a_vip():
    document = node("a", "192.0.2.34", "fd00::34", "10.0.0.200", annotations={CIDRS: ["172.16.0.1/16"]})
    found = nodes.own(nodes.read(document), Nodes(networks=NET, vips=("10.0.0.200",)))
    assert found == ["192.0.2.34", "172.16.0.1", "fd00::34"]


def test_a_vip_outside_all_machine_networks_leaves_any_internal_address():
    assert address(node("a", "192.0.2.34"), networks=NET) == "192.0.2.34"


def test_a_vip_is_nobodys_address():
    assert address(node("a", "10.0.0.34", "10.0.0.200"), networks=NET, vips=("10.0.0.200",)) == "10.0.0.34"
    assert address(node("a", "10.0.0.200"), networks=NET, vips=("10.0.0.200",)) is None


@pytest.mark.parametrize(
    "annotations",
    [
        {CIDRS: ["172.16.0.1/16", "10.0.0.34/24", "10.0.0.200/24"]},
        {ADDRESSES: ["172.16.0.1", "10.0.0.34", "10.0.0.200"]},
        {CIDRS: ["10.0.0.34/24"], ADDRESSES: ["10.0.0.99"]},
    ],
)
def test_annotated_addresses_count_in_the_machine_network_only(annotations):
    document = node("a", "fd00::34", annotations=annotations)
    assert address(document, networks=NET, vips=("10.0.0.200",)) == "10.0.0.34"
    assert address(document) is None


LOCAL = ["127.0.0.1", "169.254.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "fe80::1", "::ffff:10.0.0.34"]


@pytest.mark.parametrize("local", [*LOCAL, "nonsense"])
def test_no_server_is_at_an_address_that_other_hosts_cannot_reach(local):
    assert address(node("a", local), families=(IPV4, IPV6)) is None


@pytest.mark.parametrize("zone", ["%1", "%1\n10.6.6.6 quay.io", "%1]:6443\n    server evil 10.6.6.6:6443 #"])
def test_what_follows_a_percent_sign_reaches_no_file(zone):
    found = nodes.read(node("a", f"fd00::66{zone}"))
    assert nodes.candidates(found, Nodes(families=(IPV6,))) == []
    assert nodes.addresses(found, Nodes()) == []


def test_no_node_takes_the_address_of_a_balancer():
    assert address(node("a", "10.0.0.34", "10.0.0.5"), balancers=("10.0.0.5",)) == "10.0.0.34"
    assert address(node("a", "10.0.0.5"), balancers=("10.0.0.5",)) is None


@pytest.mark.parametrize("annotation", ["{", "7", '{"a": 1}', "[7]", "[" * 100_000])
def test_an_annotation_that_makes_no_sense_is_none(annotation):
    document = node("a", "10.0.0.34")
    document["metadata"]["annotations"][CIDRS] = annotation
    assert nodes.read(document) == nodes.Node("a", ("10.0.0.34",), (), True, {LABEL: ""})


def test_a_label_that_is_no_text_is_none():
    document = node("a", "10.0.0.34")
    document["metadata"]["labels"]["role"] = {"a": 1}
    assert nodes.read(document).labels == {LABEL: ""}


@pytest.mark.parametrize(
    "document", [None, 7, {}, {"metadata": {"name": "a b"}}, {"metadata": {"name": "a\nserver b"}}]
)
def test_what_is_no_node_is_refused(document):
    with pytest.raises(nodes.Malformed):
        nodes.read(document)


def test_a_node_is_ready_by_its_condition_alone():
    assert nodes.read(node("a", ready=True)).ready
    assert not nodes.read(node("a", ready=False)).ready
    assert not nodes.read({"metadata": {"name": "a"}}).ready
