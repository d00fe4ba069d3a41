# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable of a component role is judged before Ansible validates it, and before a host is read."""

from __future__ import annotations

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components
from support import paths
from support.variable_tables import options

ROLES = list(components.COMPONENTS)
# What no variable of a type may be.
WRONG = {
    "dict": [5, "text", ["a"]],
    "bool": ["vielleicht", 2, [], {"a": 1}],
    "float": ["soon", -1, True, "1e3", [], {"a": 1}],
    "int": ["many", -1, 1.5, True, "5_1", "\u0665", [], {"a": 1}],
    "list": [5, {"a": 1}, [5], [["a"]]],
    "path": [5, "relative", "/a b", [], {"a": 1}],
    "raw": [5, "a\nb", [], {"a": 1}],
    "str": [5, "a\nb", [], {"a": 1}],
}
ROLE_OF = {name: role for role in ROLES for name in options(role)}
NAMES = list(ROLE_OF)
ROWS = [
    pytest.param(name, value, id=f"{name}: {value!r}")
    for role in ROLES
    for name, option in options(role).items()
    for value in WRONG[option["type"]]
    if (name, value) != ("drill_send", "a\nb")  # what a client sends may have lines
]


def place(fault):
    """Return the variable that a sentence begins with."""
    return fault.split(" ")[0].partition("[")[0]


@pytest.mark.parametrize("name, value", ROWS)
def test_a_wrong_value_is_refused_with_the_variables_name(name, value):
    found = components.faults({name: value})
    assert found and {place(fault) for fault in found} == {name}


@pytest.mark.parametrize("name", NAMES)
def test_it_is_refused_beside_the_lists_that_a_layout_computes_too(name):
    role = ROLE_OF[name]
    value = WRONG[options(role)[name]["type"]][0]
    computed = {f"{role}_{key}": [] for key in components.COMPONENTS[role].computed}
    found = components.faults({**computed, name: value})
    assert found and {place(fault) for fault in found} == {name}


@pytest.mark.parametrize("role", ROLES)
def test_the_judge_knows_every_variable_and_takes_its_default(role):
    known = {name for name in options(role) if components.knows(name)}
    assert known == set(options(role))
    assert (
        components.faults({name: option["default"] for name, option in options(role).items() if "default" in option})
        == []
    )


SAMPLES = [
    *(0, 1, 3, 5, 0.5, -1, 70000, True, "", "1", "yes", "text", "5s", "/run/file", "a,b", "127.0.0.1", "haproxy"),
    *([], ["text"], ["haproxy"], [5], {}, {"a": 1}, None),
]


@pytest.mark.parametrize("name", NAMES)
def test_ansible_has_nothing_left_to_refuse(name):
    """So that its own words are never read: they are those of the argument specs."""
    spec = {name: options(ROLE_OF[name])[name]}
    accepted = [value for value in SAMPLES if not components.faults({name: value})]
    refused = [value for value in accepted if ArgumentSpecValidator(spec).validate({name: value}).error_messages]
    assert refused == []


SECRETS = ["haproxy_stats_password", "keepalived_auth_pass", "agent_auth_pass", "agent_stats_password"]


@pytest.mark.parametrize("name", SECRETS)
def test_a_wrong_secret_is_not_shown(name):
    (fault,) = components.faults({name: 27182818})
    assert fault.startswith(f"{name} is a secret (a number): ")


SERVICE = {"name": "web", "port": 80, "servers": ["192.0.2.31"]}
INSTANCE = {"name": "front", "interface": "eth0", "vrid": 0, "addresses": ["192.0.2.10"], "peers": ["192.0.2.2"]}


def test_a_role_that_is_used_alone_has_all_its_variables_judged_together():
    assert components.faults({"keepalived_instances": [INSTANCE]}) == [
        "keepalived_instances[0] (front).vrid is 0: a VRID from 1 to 255 is required."
    ]
    monitor = {"name": "ready", "port": 8080, "at_least": {"other": 1}}
    assert components.faults({"haproxy_services": [SERVICE], "haproxy_monitors": [monitor]}) == [
        "haproxy_monitors[0] (ready).at_least has 'other', and there is no such service: known are web."
    ]


DIRECT = {"name": "api", "bind": "192.0.2.100", "port": 6443, "servers": ["192.0.2.1", "192.0.2.2"]}


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"resolver_listen": ["192.0.2.1"], "resolver_address": "192.0.2.9"}, "resolver_address is 192.0.2.9, which "),
        ({"direct_server_services": [{**DIRECT, "servers": ["192.0.2.1"]}]}, "direct_server_services[0] (api).servers"),
        ({"direct_server_services": [{**DIRECT, "bind": "*"}]}, "direct_server_services[0] (api).bind is '*': "),
        ({"direct_server_services": [DIRECT, DIRECT]}, "direct_server_services has the name 'api' twice"),
    ],
)
def test_the_resolver_and_direct_servers_are_judged_before_a_host_is_read(given, sentence):
    assert components.faults({"direct_server_services": [DIRECT]}) == []
    assert components.faults(given)[0].startswith(sentence)


def test_every_role_with_variables_of_a_user_has_them_judged():
    """By whatever runs it: a layout, a playbook of ours, or one of the user's own."""
    described = {file.parts[-3] for file in paths.ROLES.glob("*/meta/argument_specs.yml")} - {"layout"}
    assert described - {"pair", "ipi"} == {*ROLES}
    of_roles = {role: yaml.safe_load((paths.ROLES / role / "meta" / "main.yml").read_text()) for role in described}
    depends = {role: [each["role"] for each in found["dependencies"]] for role, found in of_roles.items()}
    assert depends == dict.fromkeys(described, ["onprem.lb.variables"])


def test_what_refers_to_a_layouts_services_and_instances_is_judged_by_itself():
    monitor = {"name": "ready", "port": 8080, "at_least": {"of-the-layout": 1}}
    group = {"name": "both", "instances": ["of-the-layout"]}
    assert components.faults({"haproxy_monitors": [monitor], "keepalived_sync_groups": [group]}) == []
    assert components.faults({"haproxy_monitors": [{**monitor, "port": 0}]}) == [
        "haproxy_monitors[0] (ready).port is 0: a port from 1 to 65535 is required."
    ]


@pytest.mark.parametrize("name", NAMES)
def test_null_is_no_value_of_a_variable(name):
    (fault,) = components.faults({name: None})
    assert fault.startswith(f"{name} is null: ") and " required" in fault


@pytest.mark.parametrize(
    "budgets, fault",
    [
        ({"host_cut": 3500, "haproxy_killed": 0}, None),
        ({"host_cut": "soon"}, "drill_budgets.host_cut is 'soon': a number from 0 to 60000 ms is required."),
        ({"hostcut": 5}, "drill_budgets has 'hostcut': there are haproxy_killed, "),
    ],
)
def test_a_budget_of_a_drill_is_of_an_event_and_in_milliseconds(budgets, fault):
    found = components.faults({"drill_budgets": budgets})
    assert len(found) == bool(fault) and all(each.startswith(fault) for each in found)


def test_an_event_of_a_drill_is_known_or_has_commands():
    commands = {"api_failing": {"inject": "systemctl stop api", "revert": "systemctl start api"}}
    assert components.faults({"drill_events": ["haproxy_killed", "api_failing"], "drill_commands": commands}) == []
    (unknown,) = components.faults({"drill_events": ["api_failing"]})
    assert unknown.startswith("drill_events has 'api_failing': there are haproxy_killed, ")
    assert components.faults({"drill_commands": {"api_failing": {"revert": "true"}}}) == [
        "drill_commands.api_failing lacks 'inject': add it."
    ]


GOING = [{"keepalived_state": "absent"}, {"pair_state": "absent"}, {"ipi_state": "absent"}]


@pytest.mark.parametrize("state", GOING, ids=str)
def test_a_removal_needs_only_what_its_tasks_read(state):
    wrong = {"keepalived_startup_delay": "x", "keepalived_instances": 5, "keepalived_packages": 5}
    assert components.faults({**wrong, **state}) == ["keepalived_packages is 5: a list is required."]
    assert len(components.faults({**wrong, "pair_state": "present"})) == 3


def test_variables_of_other_projects_are_not_judged():
    assert components.faults({"haproxy_user": 5, "keepalived_scripts_packages": 5, "pair_vips": 5, "agent": 5}) == []


@pytest.mark.parametrize(
    "path", ["/dev/zero", "/dev/shm/x", "/proc/1/mem", "/sys/x", "/run/../x", "x", "/etc//x", "/etc/x/"]
)
@pytest.mark.parametrize(
    "name", ["haproxy_config_path", "keepalived_config_path", "haproxy_down_file", "agent_down_file"]
)
def test_a_path_that_is_written_is_that_of_an_ordinary_file(name, path):
    (fault,) = components.faults({name: path})
    assert fault.startswith(f"{name} is {path!r}: ")
