"""The three places that speak of a role's variables say the same: argument specs, defaults, and the plan's schemas."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import config as direct
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import cluster as ipi_cluster
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import judged
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import (
    agent,
    agent_checks,
    bgp_values,
    frr,
    haproxy,
    instances,
    returns,
    services,
    stick,
    tls,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.paths import ROLES
from support.plans import pairs
from support.roles import defaults
from support.variable_tables import options

NAMES = sorted(path.name for path in ROLES.iterdir() if path.name not in ("packages", "variables"))  # internal


@pytest.mark.parametrize("role", NAMES)
def test_every_variable_is_specified_and_has_its_default(role):
    assert set(options(role)) == set(defaults(role))
    for name, option in options(role).items():
        value = defaults(role)[name]
        if not (isinstance(value, str) and "{{" in value):
            assert option.get("default") == value, name


@pytest.mark.parametrize("role", NAMES)
def test_every_variable_has_the_roles_prefix_and_secrets_are_not_logged(role):
    for name, option in options(role).items():
        assert name.startswith(f"{role}_")
        has_a_secret = name.endswith(("_pass", "_password", "_bgp", "_bgp_peers"))
        assert bool(option.get("no_log")) == has_a_secret, name


@pytest.mark.parametrize(
    "option, schema",
    [
        (options("haproxy")["haproxy_services"], services.SERVICE),
        (options("haproxy")["haproxy_services"]["options"]["check"], services.CHECK),
        (options("haproxy")["haproxy_services"]["options"]["check"]["options"]["steps"], config.STEP),
        (options("haproxy")["haproxy_services"]["options"]["check"]["options"]["agent"], agent_checks.AGENT),
        (options("haproxy")["haproxy_services"]["options"]["tls"], tls.TLS),
        (options("haproxy")["haproxy_services"]["options"]["routes"], services.ROUTE),
        (options("haproxy")["haproxy_services"]["options"]["sticky"], stick.STICKY),
        (options("haproxy")["haproxy_services"]["options"]["rate_limit"], stick.RATE_LIMIT),
        (options("haproxy")["haproxy_services"]["options"]["return"], returns.RETURN),
        (options("haproxy")["haproxy_monitors"], config.MONITOR),
        (options("keepalived")["keepalived_instances"], instances.INSTANCE),
        (options("keepalived")["keepalived_scripts"], instances.SCRIPT),
        (options("keepalived")["keepalived_track_files"], instances.TRACK_FILE),
        (options("keepalived")["keepalived_sync_groups"], instances.SYNC_GROUP),
        (options("direct_server")["direct_server_services"], direct.SERVICE),
        (options("frr")["frr_peers"], frr.PEER),
        (options("frr")["frr_bfd"], bgp_values.BFD),
    ],
    ids=[
        "services",
        "check",
        "steps",
        "agent",
        "tls",
        "routes",
        "sticky",
        "rate_limit",
        "return",
        "monitors",
        "instances",
        "scripts",
        "track files",
        "groups",
        "direct",
        "peers",
        "bfd",
    ],
)
def test_nested_options_are_the_keys_of_the_schema_with_its_defaults(option, schema):
    nested = option["options"]
    assert list(nested) == list(schema)
    for key, field in schema.items():
        assert bool(nested[key].get("required")) == field.required or key == "servers", key
        if not field.required and nested[key]["type"] != "dict" and key != "servers":
            assert nested[key].get("default") == field.default, key


DESCRIBED_ELSEWHERE = {
    "agent_services": "haproxy_services",
    "agent_monitors": "haproxy_monitors",
    "agent_instances": "keepalived_instances",
    "agent_scripts": "keepalived_scripts",
    "agent_track_files": "keepalived_track_files",
    "agent_sync_groups": "keepalived_sync_groups",
}


@pytest.mark.parametrize("name", DESCRIBED_ELSEWHERE)
def test_what_several_roles_take_is_described_once_and_the_others_point_there(name):
    option, there = options(name.partition("_")[0])[name], DESCRIBED_ELSEWHERE[name]
    assert (option["type"], option["elements"], "options" in option) == ("list", "dict", False)
    role = there.partition("_")[0]
    assert f"O(onprem.lb.{role}#role:main:{there})" in option["description"]
    assert options(role)[there]["options"]


SERVICE = {"name": "web", "port": 80, "servers": ["192.0.2.31"]}
MONITOR = {"name": "ready", "port": 9444}
INSTANCE = {"name": "front", "interface": "eth0", "vrid": 51, "addresses": ["192.0.2.10"], "peers": ["192.0.2.2"]}
SCRIPT = {"name": "alive", "command": "/bin/true"}
FILE = {"name": "down", "path": "/run/down"}
GROUP = {"name": "both", "instances": ["front"]}
EVERY_LIST = {
    "haproxy_services": SERVICE,
    "haproxy_monitors": MONITOR,
    "keepalived_instances": INSTANCE,
    "keepalived_scripts": SCRIPT,
    "keepalived_track_files": FILE,
    "keepalived_sync_groups": GROUP,
    "agent_services": SERVICE,
    "agent_monitors": MONITOR,
    "agent_instances": INSTANCE,
    "agent_scripts": SCRIPT,
    "agent_track_files": FILE,
    "agent_sync_groups": GROUP,
    "pair_services": SERVICE,
}
OF_NO_USE = {"int": "many", "float": "soon", "bool": "maybe", "list": {"a": 1}, "dict": "all"}


def faults_of(variable, item):
    """Return what a role says before it touches anything, if a list of it holds this item alone."""
    role, _underscore, key = variable.partition("_")
    if role == "agent":
        return agent.translate({"instances": [INSTANCE], key: [item]})["faults"]
    if role == "keepalived":
        lists = {"instances": [INSTANCE], "scripts": [], "track_files": [], "sync_groups": [], "auth_pass": ""}
        return instances.model({**lists, "daemon": {}, key: [item]})["faults"]
    if role == "haproxy":
        return haproxy.model({"services": [], "stats": {}, "tuning": {}, key: [item]}, [], "lb1")["faults"]
    return pair.plan(pairs.pair(**{key: [item]})).faults


def wrong_items(nested, good):
    """Yield items that a nested spec refuses, each with the part of it that is to be named."""
    yield {**good, "nmae": "x"}, " has the unknown key 'nmae'"
    for key, option in nested.items():
        if option.get("required"):
            yield {**good, key: None}, f" lacks '{key}'"
        if "choices" in option:
            yield {**good, key: "another"}, f".{key} is 'another'"
        if option["type"] in OF_NO_USE:
            yield {**good, key: OF_NO_USE[option["type"]]}, f".{key} is "
        if "options" in option:
            in_list = option["type"] == "list"
            for item, part in wrong_items(option["options"], {}):
                yield {**good, key: [item] if in_list else item}, f".{key}{'[0]' if in_list else ''}{part}"


@pytest.mark.parametrize("variable", EVERY_LIST)
def test_whatever_a_nested_spec_refuses_is_refused_with_its_place_by_every_role_that_takes_it(variable):
    elsewhere = {**DESCRIBED_ELSEWHERE, "pair_services": "haproxy_services"}
    good, described = EVERY_LIST[variable], elsewhere.get(variable, variable)
    assert faults_of(variable, good) == []
    nested = options(described.partition("_")[0])[described]["options"]
    for item, part in wrong_items(nested, good):
        found = faults_of(variable, item)
        assert any(fault.startswith(f"{variable}[0]") and part in fault for fault in found), (item, found)


AGENTS_OWN = {"workers", "stop_within", "checksum", "firewall", "python", "replace"}


def without_descriptions(option):
    """Return what an option takes, without what is said of it, there or elsewhere."""
    if not isinstance(option, dict):
        return option
    return {key: without_descriptions(option[key]) for key in option if key not in ("description", "options")}


def test_the_agent_takes_the_words_of_haproxy_and_keepalived_and_means_the_same():
    others = {
        name[len(role) + 1 :]: option for role in ("haproxy", "keepalived") for name, option in options(role).items()
    }
    own = {name[6:]: option for name, option in options("agent").items()}
    assert set(own) - set(others) == AGENTS_OWN
    for name in sorted(set(own) & set(others)):
        assert without_descriptions(own[name]) == without_descriptions(others[name]), name


def test_the_agent_takes_the_whole_model():
    """What it leaves out is HAProxy's and keepalived's own: their files, packages, raw lines, and HTTP."""
    own = {name[6:] for name in options("agent")}
    taken = (
        "services",
        "monitors",
        "maxconn",
        "hard_stop_after",
        "down_file",
        "stop_pause",
        "start_commands",
        "stop_commands",
    )
    assert own.issuperset(taken)
    assert own.issuperset(name[11:] for name, option in options("keepalived").items() if "options" in option)
    assert own.issuperset(["auth_pass", "script_user"])


def test_the_translation_reads_every_variable_of_the_agent():
    handled_by_tasks = {"state", "firewall", "python", "replace"}
    assert {name[6:] for name in options("agent")} - handled_by_tasks == set(agent.SETTINGS) - {"raw"}
    for key, field in agent.SETTINGS.items():
        if key != "raw":
            given = defaults("agent")[f"agent_{key}"]
            assert field.check(given) == (field.default, None), key


@pytest.mark.parametrize("role", ["pair", "ipi", "haproxy", "keepalived", "agent"])
def test_the_variables_are_judged_before_ansible_validates_them(role):
    """Which it does before the first task of the role itself. One task does it for all members of a layout."""
    once = {"run_once": True} if role in ("pair", "ipi") else {}
    found = yaml.safe_load((ROLES / role / "meta" / "main.yml").read_text())
    assert found["dependencies"] == [{"role": "onprem.lb.variables", **once}]


@pytest.mark.parametrize("role", ["pair", "ipi"])
def test_ansible_refuses_no_variable_of_a_layout_in_its_own_words(role):
    """The plan does, in the same words as in a forecast, which Ansible validates nothing for."""
    assert {option["type"] for option in options(role).values()} == {"raw"}
    assert not any("choices" in option or "elements" in option for option in options(role).values())


@pytest.mark.parametrize("role", ["pair", "ipi"])
def test_what_the_tasks_read_is_validated_with_its_default(role):
    for key, field in judged.TASKS.items():
        given = defaults(role).get(f"{role}_{key}", field.default)
        assert field.check(given) == (field.default, None), key


def test_the_plan_reads_every_variable_of_the_pair():
    handled_by_tasks = {"hosts", "members", *judged.TASKS} - {"verify"}
    assert {name[5:] for name in options("pair")} == set(pair.SETTINGS) | handled_by_tasks
    for key, field in pair.SETTINGS.items():
        assert defaults("pair")[f"pair_{key}"] == field.default, key


def test_the_plan_reads_every_variable_of_the_cluster():
    handled_by_tasks = {"hosts", "workers", *judged.TASKS}
    assert {name[4:] for name in options("ipi")} == set(ipi_cluster.SETTINGS) | handled_by_tasks
    for key, field in ipi_cluster.SETTINGS.items():
        if key != "masters":  # which is a group of the inventory
            assert defaults("ipi")[f"ipi_{key}"] == field.default, key


def test_the_statistics_have_one_default():
    found = defaults("haproxy")
    for key, field in haproxy.STATS.items():
        name = "haproxy_metrics_path" if key == "metrics" else f"haproxy_stats_{key}"
        assert found[name] == field.default
