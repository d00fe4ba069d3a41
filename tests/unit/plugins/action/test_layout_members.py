# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each member is recorded as a task of its own would see it, and what is wrong with the members' names is said."""

from __future__ import annotations

import json

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.onprem.lb.plugins.action import layout_members
from ansible_collections.onprem.lb.plugins.plugin_utils import play_hosts
from support.playbooks import play

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
    """Return the record of a host, with more variables in YAML."""

    def reading(text="", layout="pair"):
        file = tmp_path / "vars.yml"
        file.write_text(INVENTORY + text)
        loader = DataLoader()
        given = loader.load_from_file(str(file), trusted_as_template=True)
        host = play_hosts.PlayHost(given, Templar(loader=loader, variables=given).template)
        member = layout_members.recorded(host, layout, [f"{layout}_{key}" for key in KNOWN[layout]])
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
    monkeypatch.setattr(layout_members.DISPLAY, "warning", warned.append)
    assert read("pair_vip: 1\npair_vibps_: 1")["faults"] == [
        "pair_vip is not a variable of the role: did you mean pair_vips?"
    ]
    assert warned == ["pair_vibps_ is not a variable of the role: did you mean pair_vips?"]


def test_a_variable_that_the_layout_sets_is_a_fault(read):
    given = "haproxy_services: []\nhaproxy_maxconn: 5"
    assert read(given)["faults"] == ["haproxy_services has no effect here: set pair_services instead."]


def test_a_host_of_which_nobody_can_say_where_it_is_has_a_sentence(tmp_path):
    (tmp_path / "vars.yml").write_text('ansible_host: "{{ nope }}"')
    loader = DataLoader()
    given = loader.load_from_file(str(tmp_path / "vars.yml"), trusted_as_template=True)
    host = play_hosts.PlayHost(given, Templar(loader=loader, variables=given).template)
    (fault,) = layout_members.unreadable(host)
    assert fault.startswith("ansible_host refers to nope, which is not set")
    assert layout_members.unreadable(host._replace(known={})) == []


def test_members_that_have_failed_are_named_with_the_command_for_the_others():
    records = {"worker1": {"members": ["m1", "m2", "m3", "worker1"]}}
    (sentence,) = layout_members.failed(records, ["m1", "m2", "client"])
    assert sentence.startswith("m1, m2 failed earlier") and sentence.endswith("--limit '!m1:!m2'.")
    assert layout_members.failed(records, ["client"]) == []


# Each variable comes from another place, and is another for each host.
OWN = """
[pair]
lb1 ansible_host=192.0.2.11 number=1
lb2 ansible_host=192.0.2.12 number=2

[spare]
lb3 ansible_host=192.0.2.13 number=3 pair_interface="eth{{ hostvars[inventory_hostname].number }}"

[pair:vars]
pair_members=["lb1", "lb2", "lb3"]
pair_vips=["192.0.2.10"]
pair_interface="eth{{ number }}"
pair_metrics_file="/{{ hostvars[inventory_hostname].number }}"
"""
FACTS = {
    "pair_notify": "/{{ ansible_host }}",
    "pair_priorities": "{{ [200 - number | int] }}",
    "pair_subdomain": "{{ 1 + 1 }}",
    "pair_down_file": "{{ '/' ~ inventory_hostname if inventory_hostname in groups['pair'] else '/no' }}",
}
ROLE = {"pair_vrid": "{{ 50 + number | int }}", "pair_answer_port": "{{ pair_vrid | int + 9000 }}"}
COMPARED = {
    "name": "compared",
    "ansible.builtin.assert": {
        "that": ["read == own", "(__layout_records.members.lb3.settings | from_json).interface == 'eth3'"],
        "fail_msg": "{{ read }} is not {{ own }}, or lb3 is wrong: {{ __layout_records.members.lb3 }}",
    },
    "vars": {
        "read": "{{ __layout_records.members[inventory_hostname].settings | from_json }}",
        "own": "{{ dict(names | map('regex_replace', '^pair_', '') | zip(query('ansible.builtin.vars', *names))) }}",
        "names": "{{ 'pair' | onprem.lb.role_options }}",
    },
}


def test_each_host_is_recorded_as_a_task_of_its_own_sees_it(tmp_path):
    """With the variables of the play, of the role, of blocks and facts, with its defaults, and with -e.

    lb3 is outside --limit.
    """
    role = {"name": "onprem.lb.layout", "tasks_from": "members.yml"}
    definition = {"layout_definition": {"prefix": "pair", "hosts": [], "members": []}}
    tasks = [
        {"ansible.builtin.set_fact": {"pair_listen": "{{ 1.5 + number | int }}"}},
        {
            "vars": ROLE,
            "block": [
                {"ansible.builtin.import_role": {"name": "onprem.lb.pair"}, "when": False},
                {"ansible.builtin.import_role": role, "vars": {**definition, "pair_auth_pass": "p{{ number }}"}},
                {**COMPARED, "vars": {**COMPARED["vars"], "pair_auth_pass": "p{{ number }}"}},
            ],
        },
    ]
    own = {"hosts": "pair", "gather_facts": False, "become": False, "vars": FACTS, "tasks": tasks}
    (tmp_path / "own.yml").write_text(json.dumps([own]))
    code, said = play(tmp_path, OWN, str(tmp_path / "own.yml"), "-e", "pair_peers_port={{ 10000 + number | int }}")
    assert code == 0 and said.count('"msg": "All assertions passed"') == 2, said


def test_the_variables_of_each_host_are_judged_in_one_task_and_a_fault_names_those_that_have_it(tmp_path):
    lb4 = 'lb4 number=4 pair_domain="{{ nope }}" pair_notify="{{ [ }}"'
    lb5 = 'lb5 number=5 pair_domain="{{ nope }}"'
    code, said = play(tmp_path, OWN.replace("[spare]", f"{lb4}\n{lb5}\n[spare]"), "onprem.lb.forecast")
    assert code == 2 and said.count("fatal:") == 1
    assert "lb4, lb5: pair_domain refers to nope, which is not set" in said
    assert "lb4: pair_notify has braces that are not a Jinja template" in said and "lb5: pair_notify" not in said
