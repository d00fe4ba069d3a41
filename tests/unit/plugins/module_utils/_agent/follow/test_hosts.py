# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of nodes as a resolver reads them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.hosts import (
    MARK,
    hosts,
    local,
    nameless,
    refusal,
)

DOMAIN = "lab.example.com"


def test_a_node_has_its_whole_name_and_its_short_one_in_a_stable_order():
    nodes = {"b.lab.example.com": ["192.0.2.2"], "a": ["192.0.2.1", "2001:db8::1"]}
    assert hosts(nodes, DOMAIN).splitlines() == [
        MARK,
        "192.0.2.1 a.lab.example.com a",
        "2001:db8::1 a.lab.example.com a",
        "192.0.2.2 b.lab.example.com b",
    ]
    assert local(nodes, DOMAIN).splitlines() == [
        MARK,
        "server=/a.lab.example.com/",
        "server=/b.lab.example.com/",
    ]


@pytest.mark.parametrize(
    "name, why",
    [
        ("lab.example.com", "it is the domain itself"),
        ("example.com", "it is not directly below lab.example.com"),
        ("a.example.net", "it is not directly below lab.example.com"),
        ("registry.k8s.io", "it is not directly below lab.example.com"),
        ("a.b.lab.example.com", "it is not directly below lab.example.com"),
        ("xlab.example.com", "it is not directly below lab.example.com"),
        ("api", "that name is another record's"),
        ("API.LAB.example.com", "that name is another record's"),
        ("localhost", "that name is another record's"),
        ("a" * 64, "its part before the domain is no label of DNS"),
        ("a_b.lab.example.com", "its part before the domain is no label of DNS"),
        ("", "its part before the domain is no label of DNS"),
    ],
)
def test_a_node_with_any_other_name_gets_none_and_the_reason_is_known(name, why):
    """Whoever may add a node would answer for that name on every node."""
    nodes = {name: ["192.0.2.66"]}
    assert refusal(name, DOMAIN) == why and nameless(nodes, DOMAIN) == {name: why}
    assert hosts(nodes, DOMAIN) == local(nodes, DOMAIN) == f"{MARK}\n"


@pytest.mark.parametrize("name", ["api", "api-int.lab.example.com", "x.apps.lab.example.com", "apps"])
def test_a_node_cannot_take_a_name_of_the_cluster(name):
    """Whoever may add a node would get the connections to the API."""
    assert hosts({name: ["192.0.2.66"]}, DOMAIN) == local({name: ["192.0.2.66"]}, DOMAIN) == f"{MARK}\n"


def test_no_node_is_called_localhost():
    assert hosts({"localhost": ["192.0.2.1"]}, DOMAIN).splitlines() == [MARK]


def test_a_node_without_an_address_has_no_name():
    assert local({"a": []}, DOMAIN) == f"{MARK}\n"
