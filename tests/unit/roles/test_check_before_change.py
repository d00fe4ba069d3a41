# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every program accepts every new file before a layout changes a host."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.onprem.lb.plugins.filter import roles
from ansible_collections.onprem.lb.plugins.filter.plan import layout_components
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import handed
from ansible_collections.onprem.lb.plugins.module_utils._shared import paths
from support.recorded_layouts import MEMBER
from support.roles import tasks, variables_of

CONFIGURING = ("configure.yml", "direct.yml", "routers/wave.yml", "routers/start.yml")
CHECKING = ("check.yml", "check_more.yml")
TABLES = "onprem.lb.nft_tables"
CHANGES_NOTHING = ("plan.yml", "follow_check.yml", "check.yml")


def included(task):
    """Return the role and the file that a task includes."""
    include = task.get("ansible.builtin.include_role", {})
    return include.get("name", "").rpartition(".")[2], include.get("tasks_from")


def each_of(file):
    """Return the tasks of a file of the layout, those of its blocks included."""
    return [each for task in tasks("layout", file) for each in [task, *task.get("block", [])]]


def stages(role, file):
    """Return the files that a role's tasks include, in order, each with its conditions."""
    (block,) = [task["block"] for task in tasks(role, file) if "block" in task]
    keys = ("ansible.builtin.import_tasks", "ansible.builtin.include_tasks")
    return [(task[key], task.get("when")) for task in block for key in keys if key in task]


def test_a_layout_has_its_files_checked_before_the_first_change_or_right_after_the_installation():
    found = stages("layout", "present.yml")
    changing = [file for file, _when in found if file not in CHANGES_NOTHING]
    assert found.index(("check.yml", "__layout_has_programs")) < [file for file, _when in found].index(changing[0])
    at = found.index(("check.yml", ["not __layout_has_programs", "'install' in __layout_stages"]))
    assert [file for file, _when in found[at : at + 3]] == ["check.yml", "undo/arm.yml", "configure.yml"]
    (block,) = tasks("layout", "present.yml")
    names = [task["name"] for task in block["block"]]
    assert names[names.index("Check with the programs that were installed") - 1].startswith("Install | ")


def test_a_layout_configures_only_if_something_is_not_in_force_on_some_member():
    conditions = dict(stages("layout", "present.yml"))
    assert conditions["configure.yml"] == conditions["undo/arm.yml"]
    assert conditions["configure.yml"] == [
        "'configure' in __layout_stages",
        "__layout_every_host | rejectattr('__layout_compared.is_settled') | list | length > 0",
    ]


def test_what_a_layout_configures_is_what_it_has_checked():
    checked = {role for name in CHECKING for role, _file in map(included, each_of(name))} - {
        "",
        "{{ __layout_component }}",
    }
    configured = {role for name in CONFIGURING for role, _f in map(included, each_of(name))}
    configured -= {"", "resolver"}  # whose names on the way are checked as the first of all changes
    every = [*components(), *components(native=False, bgp=True)]
    assert checked.union(every) == configured == {*ALL, "ipi", "direct_server"}


ALL = ("haproxy", "keepalived", "frr", "agent")


def components(native=True, balancer=True, router=True, in_pods=False, bgp=False):
    """Return the roles whose preflight and check a layout includes for a member."""
    given = {"engine": "native" if native else "agent", "pods": {"x": 1} if in_pods else {}}
    given["balancer"] = {"services": '[{"name": "web"}]' if balancer else "[]"}
    given["bgp"] = {"frr": {}} if bgp else {}
    return layout_components({**given, "router": {"instances": [{"name": "vip"}] if router else []}})


def test_a_member_is_checked_for_what_it_runs():
    assert components() == ["haproxy", "keepalived"]
    assert components(balancer=False) == ["keepalived"]
    assert components(native=False) == components(native=False, balancer=False) == ["agent"]
    assert components(balancer=False, router=False) == components(native=False, router=False) == []
    assert components(native=False, in_pods=True) == [], "no role sets up what static pods bring"
    assert components(router=False, bgp=True) == ["haproxy", "frr"]
    assert components(native=False, router=False, bgp=True) == ["agent", "frr"]


@pytest.mark.parametrize(
    "of, file, others", [("present.yml", "preflight.yml", ["resolver"]), ("check.yml",) * 2 + ([],)]
)
def test_each_program_of_a_member_goes_through_its_preflight_and_its_check(of, file, others):
    (task,) = [task for task in each_of(of) if included(task) == ("{{ __layout_component }}", file)]
    assert "when" not in task
    known = {"__layout_components": ["haproxy"], "__layout_me": {"resolver": {"layout": {}}}}
    loop = trust_as_template(task["loop"])
    assert Templar(loader=DataLoader(), variables=known).template(loop) == ["haproxy", *others]


PATHS = [
    *(("haproxy", name) for name in ("__haproxy_unit_path", "__haproxy_sysctl_path")),
    *(("keepalived", name) for name in ("__keepalived_unit_path", "__keepalived_hook")),
]


@pytest.mark.parametrize("role, name", PATHS)
def test_a_layout_reads_each_file_that_a_role_compares(role, name):
    """One that it does not read counts as one that differs, and has every run configure."""
    read = [item["path"] for item in paths.of_programs(paths.DEFAULTS)]
    assert variables_of(role)[name] in read


@pytest.mark.parametrize(
    "role, file", [("haproxy", "check.yml"), ("keepalived", "check.yml"), ("ipi", "nftables_check.yml")]
)
def test_a_check_writes_nothing_and_sees_the_very_files_that_are_written(role, file):
    (task,) = [task for task in tasks(role, file) if "onprem.lb.config_files" in task]
    assert task["check_mode"] is True and task["diff"] is False
    writing = tasks(role, file.replace("nftables_check", "nftables").replace("check", "configure"))
    written = [each["onprem.lb.config_files"]["files"] for each in writing if "onprem.lb.config_files" in each]
    assert task["onprem.lb.config_files"]["files"] in written


def test_the_agent_is_checked_before_its_role_opens_the_firewall():
    found = [file for file, _when in stages("agent", "main.yml")]
    assert found == ["read.yml", "preflight.yml", "check.yml", "firewall.yml", "configure.yml", "verify.yml"]


def test_a_comparison_changes_nothing_and_asks_for_what_is_put_in_force():
    (task,) = [task for task in tasks("ipi", "nftables_check.yml") if TABLES in task]
    (setting,) = [task for task in tasks("ipi", "nftables_apply.yml") if TABLES in task]
    assert task["check_mode"] is True and task["changed_when"] is False and task["diff"] is False
    assert task[TABLES] == setting[TABLES]


def test_the_firewall_is_compared_by_the_task_that_opens_it():
    include = "ansible.builtin.include_tasks"
    checking = {"file": "openings.yml", "apply": {"check_mode": True, "diff": False}}
    (check,) = [task for task in tasks("layout", "check_more.yml") if task.get(include) == checking]
    (opening,) = [task for task in tasks("layout", "configure.yml") if task.get(include) == "openings.yml"]
    assert check["when"] == opening["when"] and check["vars"] == {"__layout_only_checks": True}


def test_a_cluster_whose_tables_are_not_in_force_has_something_to_configure():
    assert variables_of("ipi")["__ipi_not_in_force"].endswith("+ __ipi_tables_checked.not_in_force }}")
    assert "{{ __ipi_differs | default([]) }}" in variables_of("layout")["__layout_differing"]


def test_a_host_is_read_for_every_file_that_a_cluster_writes():
    found = variables_of("ipi")
    read = {item["path"]: item.get("unit") for item in found["__ipi_layout"]["read_files"]}
    assert read == {item["path"]: item.get("unit") for item in found["__ipi_files"]}


@pytest.mark.parametrize("role, name, more", [("haproxy", "haproxy_model", []), ("agent", "agent_config", [[]])])
def test_a_balancer_that_would_not_answer_a_check_of_its_host_is_refused_before_anything_changes(role, name, more):
    (block,) = [task for task in tasks("layout", "present.yml") if "block" in task]
    assert block["vars"][f"__{role}_handed"] == f"{{{{ __layout_handed.{role} }}}}"
    assert f"__{role}_handed" in variables_of(role)[f"__{role}_model"]
    asked = {"name": "mine", "address": "127.0.0.1", "port": 8081, "path": "/", "tls": False, "answered": True}
    about = handed.About("pair", {}, "", {}, waits=False, before=False)
    given = handed.to_components({**MEMBER, "asked": [asked]}, about)[role]
    settings = {"services": [{"name": "web", "port": 8080, "servers": ["192.0.2.41"]}]}
    host = {"listeners": [], "addresses": [], "resolved": {}}
    (fault,) = roles.FilterModule().filters()[name](settings, "lb1", host, given, *more)["faults"]
    assert ": the check mine asks http://127.0.0.1:8081, which the balancer would no longer answer" in fault
