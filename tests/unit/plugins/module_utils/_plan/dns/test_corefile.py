# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Corefile, as text: CoreDNS is not here."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import layouts

CLUSTER = {
    "layout": "cluster",
    "name": "lab",
    "domain": "example.com",
    "api_vips": ["192.0.2.10", "2001:db8::10"],
    "ingress_vips": ["192.0.2.20", "192.0.2.21"],
    "nodes": {"master-0": "192.0.2.31"},
    "etcd": ["192.0.2.31"],
}
TEXT = layouts.describe({**CLUSTER, "nodes": {"w": "192.0.2.41"}})["corefile"]
MATCH = re.compile(r'match "\(\?i\)(.*)"')


def expression(name):
    """Return the expression of a template with a name in it."""
    return next(found for found in MATCH.findall(TEXT) if name in found)


@pytest.mark.parametrize(
    "name, matches",
    [
        ("console.apps.lab.example.com.", True),
        ("a.b.apps.lab.example.com.", True),
        ("apps.lab.example.com.", False),
        ("xapps.lab.example.com.", False),
        ("x.apps.lab.example.com.evil.net.", False),
        ("x.appsalab.example.com.", False),
        ("x.apps.lab.example.com", False),
    ],
)
def test_an_expression_matches_whole_names_below_the_wildcard_and_no_others(name, matches):
    assert bool(re.search(expression("apps"), name)) is matches


def test_an_expression_of_one_name_matches_no_longer_ones():
    own = "_etcd-server-ssl._tcp.lab.example.com."
    assert re.search(expression("_tcp"), own) and not re.search(expression("_tcp"), f"x{own}")


def test_what_a_template_does_not_match_is_for_the_next_one():
    assert TEXT.count("        fallthrough\n") == TEXT.count("template ") + 1


def test_a_wildcard_has_all_of_its_addresses_and_nothing_of_the_other_family():
    parts = [part.split("}")[0] for part in re.split(r"template ", TEXT) if "apps" in part]
    assert TEXT.count('answer "{{ .Name }} 30 IN A 192.0.2.2') == 2
    assert [part.split(" {")[0] for part in parts] == ["IN A", "ANY ANY"]
    assert "rcode NOERROR" in parts[1] and "answer" not in parts[1]


def test_other_names_are_in_the_hosts_block_which_passes_on_what_it_does_not_know():
    block = TEXT.split("hosts {")[1].split("}")[0].split("\n")
    assert [line.strip() for line in block if line.strip()] == [
        "192.0.2.10 api.lab.example.com api-int.lab.example.com",
        "2001:db8::10 api.lab.example.com api-int.lab.example.com",
        "192.0.2.31 etcd-0.lab.example.com",
        "192.0.2.41 w.lab.example.com",
        "ttl 30",
        "fallthrough",
    ]


def test_the_upstreams_are_asked_one_after_the_other():
    assert "forward . /etc/resolv.conf {\n        policy sequential\n    }" in TEXT


def test_its_braces_are_in_pairs_and_it_ends_with_a_line():
    assert TEXT.count("{") == TEXT.count("}") and TEXT.endswith("}\n")


def test_an_srv_is_a_template():
    assert 'answer "{{ .Name }} 30 IN SRV 0 10 2380 etcd-0.lab.example.com."' in TEXT


def test_with_faults_there_is_none():
    assert layouts.describe({**CLUSTER, "domain": ""})["corefile"] == ""
