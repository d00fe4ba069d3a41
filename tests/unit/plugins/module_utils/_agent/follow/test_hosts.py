# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of nodes as a resolver reads them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.hosts import MARK, hosts, local

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
        "server=/a.lab.example.com/a/",
        "server=/b.lab.example.com/b/",
    ]


def test_a_node_of_another_domain_keeps_its_only_name():
    assert "192.0.2.1 a.example.net\n" in hosts({"a.example.net": ["192.0.2.1"]}, DOMAIN)


@pytest.mark.parametrize("name", ["api", "api-int.lab.example.com", "x.apps.lab.example.com", "apps"])
def test_a_node_cannot_take_a_name_of_the_cluster(name):
    """Whoever may add a node would get the connections to the API."""
    assert hosts({name: ["192.0.2.66"]}, DOMAIN) == local({name: ["192.0.2.66"]}, DOMAIN) == f"{MARK}\n"


def test_no_node_is_called_localhost():
    assert hosts({"localhost": ["192.0.2.1"]}, DOMAIN).splitlines() == [MARK]


def test_a_node_without_an_address_has_no_name():
    assert local({"a": []}, DOMAIN) == f"{MARK}\n"
