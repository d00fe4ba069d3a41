"""The three places that speak of a role's variables say the same: argument specs, defaults, and the plan's schemas."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils import _haproxy, _instances, _ipi_sketch, _pair, _services

ROLES = Path(__file__).resolve().parents[3] / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir())


def options(role):
    return yaml.safe_load((ROLES / role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"][
        "options"
    ]


def defaults(role):
    return yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())


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
        assert bool(option.get("no_log")) == name.endswith(("_pass", "_password")), name


@pytest.mark.parametrize(
    "option, schema",
    [
        (options("haproxy")["haproxy_services"], _services.SERVICE),
        (options("pair")["pair_services"], _services.SERVICE),
        (options("haproxy")["haproxy_services"]["options"]["check"], _services.CHECK),
        (options("keepalived")["keepalived_instances"], _instances.INSTANCE),
        (options("keepalived")["keepalived_scripts"], _instances.SCRIPT),
        (options("keepalived")["keepalived_track_files"], _instances.TRACK_FILE),
        (options("keepalived")["keepalived_sync_groups"], _instances.SYNC_GROUP),
    ],
    ids=["services", "pair services", "check", "instances", "scripts", "track files", "groups"],
)
def test_nested_options_are_the_keys_of_the_schema_with_its_defaults(option, schema):
    nested = option["options"]
    assert list(nested) == list(schema)
    for key, field in schema.items():
        assert bool(nested[key].get("required")) == field.required or key == "servers", key
        if not field.required and nested[key]["type"] != "dict" and key != "servers":
            assert nested[key].get("default") == field.default, key


def test_the_model_is_spelled_alike_in_every_role_that_takes_it():
    assert options("haproxy")["haproxy_services"]["options"] == options("pair")["pair_services"]["options"]


def test_the_plan_reads_every_variable_of_the_pair():
    handled_by_tasks = {"state", "members", "firewall", "listen"}
    assert {name[5:] for name in options("pair")} == set(_pair.SETTINGS) | handled_by_tasks
    for key, field in _pair.SETTINGS.items():
        assert defaults("pair")[f"pair_{key}"] == field.default, key


def test_the_plan_reads_every_variable_of_the_cluster():
    handled_by_tasks = {"state", "masters", "workers", "listen", "firewall", "verify"}
    assert {name[4:] for name in options("ipi")} == set(_ipi_sketch.SETTINGS) | handled_by_tasks
    for key, field in _ipi_sketch.SETTINGS.items():
        assert defaults("ipi")[f"ipi_{key}"] == field.default, key


def test_the_statistics_have_one_default():
    found = defaults("haproxy")
    for key, field in _haproxy.STATS.items():
        name = "haproxy_metrics_path" if key == "metrics" else f"haproxy_stats_{key}"
        assert found[name] == field.default
