# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role resolver does on a host, and when the layouts call it."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support.paths import ROLES
from support.roles import calls, tasks, variables_of

SYSTEMD, COMMAND, FILES = "ansible.builtin.systemd_service", "ansible.builtin.command", "onprem.lb.config_files"
INFO = "onprem.lb.component_info"
RESOLV_CONF, APT, DNF = "onprem.lb.resolv_conf", "ansible.builtin.apt", "ansible.builtin.dnf"
UNIT, WATCH, KEEPER = "onprem-lb-resolver.service", "onprem-lb-resolver-nodes.path", "onprem-lb-resolver-keeper.service"
EVERY = [UNIT, WATCH, KEEPER]
RUNS = {"active_units": EVERY, "enabled_units": EVERY, "existing_units": EVERY}
NOTHING = {"active_units": [], "enabled_units": [], "existing_units": []}
RESOLVED = "/etc/systemd/resolved.conf.d/zz-onprem-lb.conf"
LAYOUT = {"layout": {}}
MANAGED = "/etc/NetworkManager/conf.d/90-onprem-lb.conf"


def known(**others):
    return {
        **variables_of("resolver"),
        "ansible_check_mode": False,
        "__resolver_settings": {"follows": False},
        "resolver_packages": [],
        "__resolver_files": [],
        "__resolver_node_files": [],
        "__resolver_asked_files": ["upstreams"],
        "__resolver_corefile": [],
        "__resolver_plan": {
            "address": "192.0.2.1",
            "told": "resolv.conf",
            "upstreams": [],
            "keeper": "",
            "answers": [],
            "in_force": True,
            "resolv_conf": "",
            "supersedes": False,
        },
        "__resolver_host": {**NOTHING, "missing_packages": ["dnsmasq-base"], "own_packages": []},
        "__resolver_names": {"os_family": "Debian", "resolved": False, "networkmanager": False, "resolved_before": {}},
        "__resolver_program": {"python": "/usr/bin/python3", "checksum": "0"},
        "__resolver_keeper_written": {"changed": False},
        "__resolver_written": {"changed": False},
        "__resolver_nodes_written": {"changed": False},
        "__resolver_followed": {},
        "__resolver_told": {"paths": []},
        "__resolver_recorded": {"recorded_packages": ["haproxy"], "missing_packages": ["dnsmasq-base"]},
        **others,
    }


def states(host, written=False, nodes=False, **others):
    """Return what becomes of the units."""
    given = {"__resolver_written": {"changed": written}, "__resolver_nodes_written": {"changed": nodes}, **others}
    found = calls("resolver", known(__resolver_host=host, **given), SYSTEMD, tasks_from="configure.yml")
    return {arguments["name"]: arguments["state"] for _module, arguments in found}


@pytest.mark.parametrize(
    "host, changed, expected",
    [
        (NOTHING, {"written": True, "nodes": True}, {UNIT: "restarted", WATCH: "restarted"}),
        (RUNS, {"written": True}, {UNIT: "restarted", WATCH: "restarted"}),
        (RUNS, {"nodes": True}, {UNIT: "reloaded"}),
        (RUNS, {}, {}),
        ({**RUNS, "active_units": [WATCH]}, {}, {UNIT: "started"}),
        ({**RUNS, "enabled_units": [UNIT]}, {}, {WATCH: "started"}),
        (NOTHING, {"written": True, "ansible_check_mode": True}, {}),
    ],
    ids=["first run", "new records", "new nodes", "second run", "stopped", "watch disabled", "check mode"],
)
def test_it_is_started_again_for_its_configuration_and_reloaded_for_the_nodes(host, changed, expected):
    assert states(host, **changed) == expected


@pytest.mark.parametrize("exists, written", [(True, 0), (False, 1)])
def test_what_follow_has_written_stays(exists, written):
    variables = known(
        __resolver_settings={"follows": True},
        __resolver_followed={"stat": {"exists": exists}},
        __resolver_files=["dnsmasq.conf"],
        __resolver_node_files=["hosts"],
        __resolver_corefile=["Corefile"],
    )
    found = calls("resolver", variables, FILES, tasks_from="configure.yml")
    assert [given["files"] for _module, given in found].count(["hosts"]) == written


def test_whom_it_asks_is_written_before_it_starts_and_restarts_nothing():
    written = {"__resolver_written": {"changed": False}, "__resolver_host": RUNS}
    found = calls("resolver", known(**written), FILES, SYSTEMD, tasks_from="configure.yml")
    assert [given["files"] for module, given in found if module == FILES][-1] == ["upstreams"]
    assert [module for module, _given in found if module == SYSTEMD] == []


def test_the_host_asks_it_only_once_it_answers():
    names = [task["name"] for task in tasks("resolver", "apply.yml")]
    assert names == ["Install", "Configure", "Tell the host"]
    last = tasks("resolver", "configure.yml")[-1]
    assert (
        last["name"] == "Configure | Wait until it answers and forwards" and "wrong | length > 0" in last["failed_when"]
    )


@pytest.mark.parametrize("told, kept", [("resolv.conf", 1), ("NetworkManager", 0), ("systemd-resolved", 0)])
def test_its_name_servers_are_kept_before_it_starts(told, kept):
    """Without them it would forward nothing until it is started again (N1)."""
    plan = {**known()["__resolver_plan"], "told": told}
    variables = known(__resolver_plan=plan, __resolver_host=NOTHING, __resolver_written={"changed": True})
    found = [
        module for module, _given in calls("resolver", variables, RESOLV_CONF, SYSTEMD, tasks_from="configure.yml")
    ]
    assert found[: kept + 1] == [RESOLV_CONF] * kept + [SYSTEMD]


@pytest.mark.parametrize(
    "host, written, state", [(RUNS, True, "restarted"), (NOTHING, False, "started"), (RUNS, False, None)]
)
def test_the_keeper_runs_once_the_host_asks_the_resolver(host, written, state):
    variables = known(__resolver_host=host, __resolver_keeper_written={"changed": written})
    found = calls("resolver", variables, RESOLV_CONF, SYSTEMD, tasks_from="tell.yml")
    assert [given.get("state") for _module, given in found] == ["absent", *([state] if state else [])]


def test_a_run_that_has_made_an_answer_worse_fails():
    last = tasks("resolver", "tell.yml")[-1]
    assert (
        last["name"] == "Tell | Require that the host resolves as before"
        and "wrong | length > 0" in last["failed_when"]
    )


def told(**plan):
    names = {"os_family": "Debian", "resolved": True, "networkmanager": True, "resolved_before": {}}
    own = {**known()["__resolver_plan"], "resolved": "", "networkmanager": "", **plan.pop("plan", {})}
    variables = known(__resolver_names=names, __resolver_plan=own, __resolver_told=plan, __resolver_host=RUNS)
    return [
        given.get("name", given.get("cmd", given.get("state")))
        for _module, given in calls("resolver", variables, SYSTEMD, COMMAND, RESOLV_CONF, tasks_from="tell.yml")
    ]


def test_who_is_told_reads_it_and_resolv_conf_comes_last():
    assert told(paths=[RESOLVED]) == ["systemd-resolved.service", "absent"]
    assert told(paths=[MANAGED], plan={"resolv_conf": "x"}) == ["nmcli general reload conf", "present"]
    assert told(paths=[]) == ["absent"]


def test_a_drop_in_that_is_not_in_force_is_read():
    assert told(paths=[], plan={"in_force": False}) == ["systemd-resolved.service", "absent"]


def removal(family="Debian", paths=(), running=True, **host):
    names = {"os_family": family, "resolved": running, "networkmanager": running}
    seen = {**RUNS, "missing_packages": [], "own_packages": ["dnsmasq"], "recorded_packages": ["dnsmasq"], **host}
    seen.update(os_family=family, unremovable={})
    variables = {
        **known(__resolver_names=names, __resolver_before_removal=seen, __resolver_told={"paths": list(paths)}),
        "__packages_unused_before": {"stdout": ""},
    }
    return calls("resolver", variables, RESOLV_CONF, SYSTEMD, FILES, COMMAND, APT, DNF, tasks_from="remove.yml")


def test_a_removal_gives_the_host_its_names_back_before_the_resolver_stops():
    found = removal(paths=[RESOLVED])
    assert [found[0][1]["units"][0]["name"], found[1][0]] == [KEEPER, RESOLV_CONF]  # which would write it again
    told = [module for module, _given in found].index(SYSTEMD)
    (_keeper, stops) = [at for at, (_module, given) in enumerate(found) if given.get("units")]
    assert found[told][1]["name"] == "systemd-resolved.service" and told < stops
    assert [(unit["name"], unit["state"]) for unit in found[stops][1]["units"]] == [
        (WATCH, "stopped"),
        (UNIT, "stopped"),
    ]


def test_a_removal_takes_away_only_the_packages_that_it_has_installed():
    assert [module for module, _given in removal() if module in (APT, DNF)] == [APT]
    assert [module for module, _given in removal(family="RedHat") if module in (APT, DNF)] == [DNF]
    assert [module for module, _given in removal(own_packages=[]) if module in (APT, DNF)] == []


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
    variables = known(__resolver_host=host, __resolver_plan=own, __resolver_on_the_way_files=["both"])
    found = calls("resolver", variables, FILES, INFO, tasks_from="on_the_way.yml")
    return [given.get("files", given.get("resolver")) for _module, given in found]


def test_on_the_way_it_is_restarted_with_both_vips_and_asked_for_them():
    """What a run finds in force is not what a name leads to, so it is asked."""
    way = {"config": "both", "server": "192.0.2.1", "answers": [{"name": "api", "addresses": ["a", "b"]}]}
    assert on_the_way(RUNS, **way) == [["both"], {"server": "192.0.2.1", "answers": way["answers"]}]
    assert on_the_way(RUNS) == [] and on_the_way(NOTHING, **way) == []


@pytest.mark.parametrize(
    "resolver, check, expected", [({}, False, False), (LAYOUT, False, True), (LAYOUT, True, False)]
)
def test_the_vips_of_before_and_after_are_answered_before_anything_else_is_configured(resolver, check, expected):
    """On every member that resolves names, also on one without a router."""
    first = tasks("layout", "configure.yml")[0]
    assert first["ansible.builtin.include_role"] == {"name": "onprem.lb.resolver", "tasks_from": "on_the_way.yml"}
    variables = {"ansible_check_mode": check, "__layout_me": {"resolver": resolver}}
    conditions = (
        Templar(loader=DataLoader(), variables=variables).evaluate_conditional(trust_as_template(each))
        for each in first["when"]
    )
    assert all(conditions) is expected


def test_the_templates_have_the_marks_of_this_collection():
    for template in (ROLES / "resolver" / "templates").iterdir():
        assert template.read_text().startswith("# Managed by Ansible, onprem.lb.resolver.")
