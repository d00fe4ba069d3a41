# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup reads a member's variables, with their templates evaluated, and says what is wrong with their names."""

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleLookupError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.onprem.lb.plugins.lookup import layout_member

INVENTORY = """
inventory_hostname: lb1
group_names: [pair, dc1]
groups: {all: [lb1, lb2, web], pair: [lb1, lb2]}
pair_members: "{{ groups['pair'] }}"
pair_vips: ["{{ prefix }}.10"]
pair_services: [{name: web, port: 443, servers: [{address: 192.0.2.31}]}]
pair_auth_pass: ""
prefix: 192.0.2
"""
KNOWN = {"pair": ["members", "vips", "services", "auth_pass"], "ipi": ["masters", "workers"]}


@pytest.fixture
def read(tmp_path):
    """Return what the lookup returns of a host, with more variables in YAML."""

    def reading(text="", layout="pair"):
        file = tmp_path / "vars.yml"
        file.write_text(INVENTORY + text)
        loader = DataLoader()
        given = loader.load_from_file(str(file), trusted_as_template=True)
        lookup = layout_member.LookupModule(loader=loader, templar=Templar(loader=loader, variables=given))
        known = [f"{layout}_{key}" for key in KNOWN[layout]]
        (member,) = lookup.run([layout], variables=given, known=known)
        return {**member, **{key: json.loads(member[key]) for key in ("settings", "options")}}

    return reading


def test_templates_are_evaluated_and_the_rest_stays_as_it_is(read):
    assert read() == {
        "name": "lb1",
        "address": "lb1",
        "groups": ["pair", "dc1"],
        "members": ["lb1", "lb2"],
        "outside_limit": False,
        "settings": {
            "members": ["lb1", "lb2"],
            "vips": ["192.0.2.10"],
            "services": [{"name": "web", "port": 443, "servers": [{"address": "192.0.2.31"}]}],
            "auth_pass": "",
        },
        "options": {"members": ["lb1", "lb2"], "vips": ["192.0.2.10"], "auth_pass": ""},
        "role_variables": [],
        "timeouts": {},
        "resolver_listen": [],
        "faults": [],
        "name_faults": [],
        "host": None,
    }


def test_the_timeouts_on_which_the_forecast_counts_are_read_too(read):
    found = read('haproxy_timeout_connect: 3s\nagent_timeout_check: "{{ 2 }}s"\nhaproxy_timeout_client: 9s')["timeouts"]
    assert found == {"haproxy_timeout_connect": "3s", "agent_timeout_check": "2s"}


def test_the_variables_of_component_roles_that_are_set_are_named_and_not_evaluated(read):
    found = read('haproxy_maxconn: "{{ nowhere }}"\nagent_workers: 2\nhaproxies: 3')["role_variables"]
    assert sorted(found) == ["agent_workers", "haproxy_maxconn"]


def test_the_address_may_be_a_template(read):
    assert read('ansible_host: "{{ prefix }}.1"')["address"] == "192.0.2.1"


def test_a_date_of_yaml_stays_readable(read):
    assert read("pair_vips: [2026-01-31]")["settings"]["vips"] == ["2026-01-31"]


@pytest.mark.parametrize(
    "text, members",
    [
        ("ipi_masters: [lb1, lb2]\nipi_workers: [web]", ["lb1", "lb2", "web"]),
        ("ipi_masters: lb1\nipi_workers: []", ["lb1"]),
    ],
)
def test_a_cluster_has_its_masters_first(read, text, members):
    assert read(text, "ipi")["members"] == members


@pytest.mark.parametrize(
    "text, fault",
    [
        ("pair_members: [lb1, lb3]", "pair_members: lb3 is not a host in the inventory: correct the name."),
        (
            "pair_members: [lb2]",
            "pair_members does not name lb1, which this run is for: add it, or take it out of the group, "
            "or of the play's hosts where they are more than the members.",
        ),
    ],
)
def test_wrong_members_are_named(read, text, fault):
    assert read(text)["name_faults"] == [fault]


def test_a_misspelt_variable_is_a_fault_and_a_doubtful_one_a_warning(read, monkeypatch):
    warned = []
    monkeypatch.setattr(layout_member.DISPLAY, "warning", warned.append)
    assert read("pair_vip: 1\npair_vibps_: 1")["faults"] == [
        "pair_vip is not a variable of the role: did you mean pair_vips?"
    ]
    assert warned == ["pair_vibps_ is not a variable of the role: did you mean pair_vips?"]


def test_a_variable_that_the_layout_sets_is_a_fault(read):
    given = "haproxy_services: []\nhaproxy_maxconn: 5"
    assert read(given)["faults"] == ["haproxy_services has no effect here: set pair_services instead."]


@pytest.mark.parametrize(
    "options, sentence",
    [({}, "no variables to read are named"), ({"known": ["pair_vips"]}, "pair_vips is not set here")],
)
def test_what_it_cannot_read_is_a_sentence(options, sentence):
    loader = DataLoader()
    lookup = layout_member.LookupModule(loader=loader, templar=Templar(loader=loader, variables={}))
    with pytest.raises(AnsibleLookupError, match=sentence):
        lookup.run(["pair"], variables={}, **options)
