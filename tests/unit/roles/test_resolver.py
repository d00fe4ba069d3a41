# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role resolver does on a host, and when the layouts call it."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support.paths import ROLES
from support.recorded_hosts import host_info
from support.roles import calls, tasks, variables_of

SYSTEMD, FILES = "ansible.builtin.systemd_service", "onprem.lb.config_files"
INFO, RESOLV_CONF = "onprem.lb.component_info", "onprem.lb.resolv_conf"
UNIT, WATCH, KEEPER = "onprem-lb-resolver.service", "onprem-lb-resolver-nodes.path", "onprem-lb-resolver-keeper.service"
EVERY = [UNIT, WATCH, KEEPER]
RUNS = {"active_units": EVERY, "enabled_units": EVERY, "existing_units": EVERY}
NOTHING = {"active_units": [], "enabled_units": [], "existing_units": []}
RESOLVED = "/etc/systemd/resolved.conf.d/zz-onprem-lb.conf"
LAYOUT = {"layout": {}}


def known(**others):
    return {
        **variables_of("resolver"),
        "ansible_check_mode": False,
        "__resolver_settings": {"follows": False},
        "resolver_packages": [],
        "__resolver_files": ["config"],
        "__resolver_named_files": [],
        "__resolver_turns": [],
        "__resolver_turn": [],
        "__resolver_heartbeats": False,
        "inventory_hostname": "lb1",
        "__resolver_node_files": [],
        "__resolver_asked_files": ["upstreams"],
        "__resolver_corefile": [],
        "__resolver_plan": {
            "address": "192.0.2.1",
            "told": "resolv.conf",
            "upstreams": [],
            "answers": [],
            "supersedes": False,
        },
        "__resolver_host": {**NOTHING, "missing_packages": ["dnsmasq-base"], "own_packages": []},
        "__resolver_names": {"os_family": "Debian", "resolved": False, "networkmanager": False, "resolved_before": {}},
        "__resolver_named_written": {"changed": False},
        "__resolver_on_the_way": {"changed": True},
        "__resolver_nodes_written": {"changed": False},
        "__resolver_followed": {},
        "__resolver_told": {"paths": []},
        "__resolver_recorded": {"recorded_packages": ["haproxy"], "missing_packages": ["dnsmasq-base"]},
        **others,
    }


def test_the_host_asks_it_only_once_it_answers():
    names = [task["name"] for task in tasks("resolver", "apply.yml")]
    assert names == ["Install", "Configure", "Tell the host"]
    last = tasks("resolver", "configure.yml")[-1]
    assert (
        last["name"] == "Configure | Wait until it answers and forwards" and "wrong | length > 0" in last["failed_when"]
    )


@pytest.mark.parametrize("told, kept", [("resolv.conf", 1), ("NetworkManager", 0), ("systemd-resolved", 0)])
def test_its_name_servers_are_kept_and_written_before_it_starts(told, kept):
    """Without them it would forward nothing until it is started again (N1)."""
    plan = {**known()["__resolver_plan"], "told": told}
    variables = known(__resolver_plan=plan, __resolver_host=NOTHING, __resolver_written={"changed": True})
    found = calls("resolver", variables, RESOLV_CONF, FILES, SYSTEMD, tasks_from="configure.yml")
    starts = next(at for at, (_module, given) in enumerate(found) if given.get("units"))
    assert [module for module, _given in found[:starts] if module == RESOLV_CONF] == [RESOLV_CONF] * kept
    assert found[starts - 1][1]["files"] == ["upstreams"] and found[starts][1]["files"] == ["config"]


def test_a_removal_gives_the_host_its_names_back_before_the_resolver_stops():
    variables = {
        **known(__resolver_told={"paths": [RESOLVED]}),
        "__resolver_names": {"os_family": "Debian", "resolved": True, "networkmanager": True},
        "__resolver_before_removal": host_info("lb1"),
    }
    found = calls("resolver", variables, RESOLV_CONF, SYSTEMD, FILES, tasks_from="remove.yml")
    assert [found[0][1]["units"][0]["name"], found[1][0]] == [KEEPER, RESOLV_CONF]  # which would write it again
    told = [module for module, _given in found].index(SYSTEMD)
    (_keeper, stops) = [at for at, (_module, given) in enumerate(found) if given.get("units")]
    assert found[told][1]["name"] == "systemd-resolved.service" and told < stops
    assert [(unit["name"], unit["state"]) for unit in found[stops][1]["units"]] == [
        (WATCH, "stopped"),
        (UNIT, "stopped"),
    ]


def test_what_the_other_roles_have_recorded_meanwhile_stays_recorded():
    ((_module, given),) = calls("resolver", known(), FILES, tasks_from="install.yml")
    assert '"haproxy"' in given["files"][0]["content"] and '"dnsmasq-base"' in given["files"][0]["content"]


def test_a_layout_calls_it_once_there_is_nothing_to_return_to():
    """The resolver is no part of a state, so a return could not take it back. Until then it answers both VIPs."""
    stages = [task["name"].split()[0] for task in tasks("layout", "present.yml")[0]["block"]]
    assert stages.index("Arm") < stages.index("Configure") < stages.index("Confirm")
    assert stages.index("Confirm") < stages.index("Resolve") < stages.index("Outcome")


def on_the_way(host, **way):
    own = {**known()["__resolver_plan"], "on_the_way": way}
    variables = known(
        __resolver_host=host,
        __resolver_plan=own,
        __resolver_on_the_way_names=["names"],
        __resolver_on_the_way_files=["config"],
        __layout_undo={"run": "1"},
    )
    found = calls("resolver", variables, FILES, SYSTEMD, INFO, tasks_from="on_the_way.yml")
    return [given.get("files", given.get("resolver", given.get("state"))) for _module, given in found]


def test_on_the_way_it_reads_both_vips_again_and_is_asked_for_them():
    """What a run finds in force is not what a name leads to, so it is asked."""
    way = {"names": "both", "server": "192.0.2.1", "answers": [{"name": "api", "addresses": ["a", "b"]}]}
    asked = {"server": "192.0.2.1", "answers": way["answers"]}
    assert on_the_way(RUNS, **way) == [["names"], "reloaded", ["config"], asked]
    assert on_the_way(RUNS) == [] and on_the_way(NOTHING, **way) == []


@pytest.mark.parametrize(
    "resolver, check, expected", [({}, False, False), (LAYOUT, False, True), (LAYOUT, True, False)]
)
def test_the_vips_of_before_and_after_are_answered_before_anything_else_is_configured(resolver, check, expected):
    """On every member that resolves names, also on one without a router."""
    first = tasks("layout", "configure.yml")[0]
    assert first["ansible.builtin.include_role"] == {"name": "onprem.lb.resolver", "tasks_from": "on_the_way.yml"}
    variables = {"ansible_check_mode": check, "__layout_me": {"resolver": resolver}}
    templar = Templar(loader=DataLoader(), variables=variables)
    assert templar.evaluate_conditional(trust_as_template(first["when"])) is expected


def test_the_templates_have_the_marks_of_this_collection():
    for template in (ROLES / "resolver" / "templates").iterdir():
        assert template.read_text().startswith("# Managed by Ansible, onprem.lb.resolver.")
