# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters that plan, without netaddr. What they plan: the tests of the layouts."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.onprem.lb.plugins.filter.plan import (
    FilterModule,
    layout_left_out,
    layout_outcome,
    layout_paths,
    layout_steps,
    progress_of,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import outcome_words
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import subnets


@pytest.mark.parametrize("name", ["layout_plans", "layout_forecast", "layout_faults"])
def test_without_netaddr_the_user_is_told_what_to_install_and_where(monkeypatch, name):
    monkeypatch.setattr(subnets, "NETADDR_MISSING", ImportError("netaddr"))
    refused = FilterModule().filters()[name]([], "pair")
    faults = refused if name == "layout_faults" else refused["faults"]
    assert faults == [f"The controller lacks the Python package netaddr: install it for {sys.executable}."]


def test_a_long_forecast_says_every_five_seconds_how_far_it_is():
    times, said = iter([0, 4, 5, 6, 11]), []
    progress = progress_of("The forecast of 40 members", clock=lambda: next(times), show=said.append)
    for done in range(4):
        progress(done, 20)
    assert said == [
        "The forecast of 40 members: 1 of 20 steps are done.",
        "The forecast of 40 members: 3 of 20 steps are done.",
    ]


def test_of_a_pair_that_is_left_out_its_members_vips_and_vrid_count():
    given = {"inventory_hostname": "lb5", "pair_members": ["lb5", "lb6"], "pair_vips": ["192.0.2.50"], "pair_vrid": 77}
    alone = {"inventory_hostname": "lb7"}
    assert layout_left_out([given, alone], ["lb1", "lb5"]) == [
        ["lb5", ["lb5", "lb6"], ["192.0.2.50"], 77],
        ["lb7", ["lb1", "lb5"], [], ""],
    ]


def test_the_configuration_files_are_those_of_the_user_or_the_usual_ones():
    assert layout_paths()["configs"]["haproxy"] == "/etc/haproxy/haproxy.cfg"
    assert layout_paths("/a.cfg", "/b.conf")["configs"] == {"haproxy": "/a.cfg", "keepalived": "/b.conf"}


READ = {
    "host": {
        "missing_packages": ["haproxy"],
        "static_pods": [{"manifest": "/m.yaml"}],
        "takeover": {"keepalived": {"restart": True}},
    },
    "native": True,
    "departed": [{"name": "lb9"}],
    "resolver": {"missing_packages": ["dnsmasq-base"], "own_packages": ["dnsmasq"]},
    **{name: {"own_packages": [name]} for name in ("haproxy", "keepalived")},
}


@pytest.mark.parametrize(
    "name, said",
    [
        ("__packages_installed", "install haproxy, dnsmasq-base"),
        ("__layout_departed_stopped", "stop the router of lb9"),
        ("__layout_static_pods_disabled", "disable /m.yaml"),
        ("__keepalived_reloaded", "restart"),
        ("__packages_removed", "remove haproxy, keepalived, dnsmasq"),
        ("__layout_direct_handed_over", "start the new version of onprem-lb-direct.service"),
    ],
)
def test_a_step_names_what_the_host_was_read_for(name, said):
    registered = [{"changed": each == name} for each in outcome_words.results("present")]
    assert layout_steps(registered, "present", **READ) == [said]


def test_a_member_with_the_agent_installs_the_packages_of_its_resolver_alone():
    registered = [{"changed": each == "__packages_would_install"} for each in outcome_words.results("present")]
    assert layout_steps(registered, "present", **{**READ, "native": False}) == ["install dnsmasq-base"]


def test_a_resolver_that_reads_its_names_again_is_said_to_reload():
    done = {"__resolver_reloaded": {"changed": True}}
    registered = [done.get(each, {}) for each in outcome_words.results("present")]
    assert layout_steps(registered, "present", **READ) == ["reload"]


def test_a_removal_reads_no_plan():
    host = {"host": {}, "resolver": {}, "haproxy": {}, "keepalived": {}}
    assert layout_steps([{}] * len(outcome_words.results("absent")), "absent", **host) == []


def test_a_member_that_does_not_answer_is_named_at_the_end():
    member = {"name": "lb1", "engine": "native", "vips": [], "held": [], "steps": [], "unserved": []}
    member.update(statistics=[], stats_port="")
    said = layout_outcome([member], [], False, [{"name": "lb1"}, {"name": "lb2", "silent": True}])
    assert any(line.startswith("Next: when lb2 answers") for line in said)


def test_members_outside_the_limit_whose_resolvers_have_the_names_of_before_are_named_at_the_end():
    layout = {"layout": "pair", "domain": "lab.example.com", "vips": ["192.0.2.10"], "members": {"lb1": "192.0.2.11"}}
    member = {"name": "lb1", "engine": "native", "vips": [], "held": [], "steps": [], "unserved": []}
    member.update(statistics=[], stats_port="", resolver={"layout": layout})
    old = {"name": "lb2", "host": {"named": {"haproxy.lab.example.com": ["192.0.2.9"]}}}
    said = layout_outcome([member], ["lb2"], False, [{**old, "name": "lb1"}, old])
    (line,) = [line for line in said if "resolver" in line]
    assert line.startswith("lb2: the resolver leads ")
    assert " haproxy.lab.example.com to 192.0.2.9, and not to 192.0.2.10;" in line
    for every, dry in (([{"name": "lb2", "host": None}], False), ([{"name": "lb2"}], False), ([old], True)):
        assert "resolver" not in str(layout_outcome([member], ["lb2"], dry, every))
    assert "resolver" not in str(layout_outcome([member], [], False, [old]))
