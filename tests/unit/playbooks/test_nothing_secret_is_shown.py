# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each text that may be secret is a mark of its own, and a run shows none of them, whatever the verbosity.

That is: no result of a task that Ansible shows, no argument of one of Ansible's modules, which log it on the host, no
message and no fault. What the collection's own modules log is in `modules/test_what_is_logged.py`.
"""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.filter import plan as plan_filters
from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import ARGUMENTS
from support.certificates import certificate_text
from support.recorded_hosts import (
    CLUSTER,
    CLUSTER_VARIABLES,
    PAIR,
    PAIR_VARIABLES,
    deployment,
    fresh_then_running,
    running,
)
from support.recorded_plays import run
from support.scope import FULL

MARK = re.compile(r"Mark\w+")
PASSWORDS = {"pair_auth_pass": "MarkPas"}
COMMANDS = {
    "pair_notify": "/usr/local/bin/tell MarkNotify",
    "pair_checks": [
        {"script": "/usr/local/bin/storage --token MarkScript"},
        {"url": "http://192.0.2.99/health?token=MarkUrl", "weight": -50},
    ],
}
WEB = {
    "name": "web",
    "port": 443,
    "servers": ["192.0.2.31"],
    "check": {"type": "http", "path": "/health?token=MarkPath"},
}
RAW = {
    "haproxy_global_lines": ["setenv KEY MarkGlobal"],
    "haproxy_defaults_lines": ["http-check send hdr X-Key MarkDefaults"],
    "haproxy_extra_lines": ["userlist users", "  user ops insecure-password 'MarkExtra it'"],
    "haproxy_stats_user": "ops",
    "haproxy_stats_password": "MarkStats'\\\"",
    "haproxy_start_commands": ["/bin/true MarkStart"],
    "haproxy_stop_commands": ["/bin/true MarkStop"],
    "keepalived_global_lines": ["smtp_server MarkKeepalived"],
    "keepalived_extra_lines": ["vrrp_script own {", '  script "/bin/x MarkLines"', "}"],
}
RAW_WEB = {
    **WEB,
    "mode": "http",
    "tls": {"content": f"MarkPem\n{certificate_text()}"},
    "servers": [{"name": "a", "address": "192.0.2.31", "options": ["cookie MarkOption"]}],
    "frontend_lines": ["http-request set-header X-Key 'MarkFrontend it'"],
    "backend_lines": ["http-request set-header Authorization MarkBackend"],
    "routes": [{"name": "shop", "paths": ["/shop"], "servers": ["192.0.2.32"], "backend_lines": ["id MarkShop"]}],
}
NATIVE = {**PAIR_VARIABLES, **PASSWORDS, **COMMANDS, **RAW, "pair_services": [RAW_WEB]}
AGENT = {
    **PAIR_VARIABLES,
    **PASSWORDS,
    **COMMANDS,
    "pair_services": [WEB],
    "pair_engine": "agent",
    "agent_python": "/usr/bin/python3",
}
KEEPALIVED = {name: value for name, value in RAW.items() if not name.endswith("_commands")}
IPI = {
    **CLUSTER_VARIABLES,
    **KEEPALIVED,
    "ipi_auth_pass": "MarkIpi",
    "ipi_checks": [{"script": "/usr/local/bin/storage --token MarkScript"}],
}
AGENT_HAS = {
    "raw": {"rc": 0},
    "nft_tables": {"changed": True, "not_in_force": []},
    "agent": {"changed": True, "steps": []},
    "agent_info": {
        "vrrp": {"instances": [{"state": "Backup"}]},
        "proxy": {"state": "serving", "config_fault": ""},
        "listeners": [],
        "addresses": [],
        "problems": [],
    },
}
INVENTORIES = {
    "pair-native": ("pair", PAIR, NATIVE),
    "pair-agent": ("pair", PAIR, AGENT),
    "ipi-native": ("ipi", CLUSTER, IPI),
    "ipi-agent": ("ipi", CLUSTER, {**CLUSTER_VARIABLES, "ipi_auth_pass": "MarkIpi", "ipi_engine": "agent"}),
}


def played(name, answers=None, check=False, **variables):
    playbook, hosts, given = INVENTORIES[name]
    fresh = {"host_info": fresh_then_running(missing_packages=["haproxy"] if "native" in name else [])}
    answered = deployment(**{**fresh, **AGENT_HAS, **(answers or {})})
    return run(playbook, hosts, answered, check=check, **{**given, **variables})


def kept(play):
    """Return the marks that the log of a host, the console or a callback has, each with where it was found."""
    texts = [*play.shown, *map(str, play.said), *(str(failure.message) for failure in play.failures)]
    texts += [str(call) for call in play.calls if not call.hidden]
    return sorted({(mark, text[:80]) for text in texts for mark in MARK.findall(text)})


@pytest.mark.parametrize("name", INVENTORIES)
def test_a_run_shows_nothing_that_may_be_secret_and_each_module_knows_what_to_mask(name):
    """Where a secret is not named to a module, a difference shows it."""
    play = played(name)
    assert play.faults() == [] and kept(play) == []
    given = str([call.given for call in play.calls])
    engine = "config_files" if "native" in name else "agent"
    assert play.of(engine) and "Mark" in given
    for call in play.of("config_files", "agent"):
        found = set(MARK.findall(str({**call.given, "secrets": []})))
        named = set(MARK.findall(str(call.given.get("secrets", []))))
        assert found - named == set(), call.task


@pytest.mark.parametrize("name", INVENTORIES if FULL else ["ipi-agent"])
def test_a_dry_run_shows_nothing_that_may_be_secret(name):
    play = played(name, check=True)
    assert play.faults() == [] and kept(play) == []
    assert play.of("config_files" if "native" in name else "agent")


def test_the_marks_stand_for_all_keys_whose_texts_may_be_secret():
    def keys(value):
        if isinstance(value, dict):
            return {key for name, each in value.items() for key in (name, *keys(each))}
        return {key for each in value for key in keys(each)} if isinstance(value, list) else set()

    names = keys([NATIVE, AGENT, IPI])
    names |= {re.sub("^(haproxy|keepalived|pair)_", "", name) for name in names}
    # A layout makes the last two of the ones above; the first is that of an instance, for the role keepalived alone.
    assert {*ARGUMENTS} - names == {"lines", "command", "any_of"}


@pytest.mark.parametrize("name", ["pair-native", "pair-agent"] if FULL else ["pair-native"])
def test_the_second_run_shows_no_more_than_the_first(name):
    play = played(name, {"host_info": running})
    assert kept(play) == []


def test_a_start_command_that_fails_is_said_without_its_arguments():
    def command(call):
        fails = "MarkStart" in str(call.given)
        return {"rc": 1, "failed": True, "stdout": "MarkStart", "msg": "MarkStart"} if fails else {"rc": 0}

    play = played("pair-native", {"command": command})
    assert "/bin/true, of haproxy_start_commands, fails: run it on this host to see why." in str(play.faults())
    assert kept(play) == []


@pytest.mark.parametrize("crash", [KeyError("MarkKey"), ValueError("MarkValue")], ids=["key", "value"])
def test_a_plan_that_crashes_is_a_fault_that_names_the_place_and_no_value(monkeypatch, crash):
    def crashes(*_given, **_others):
        raise crash

    monkeypatch.setattr(plan_filters.several, "draw", crashes)
    found = plan_filters.FilterModule().filters()["layout_plans"]([], "pair")
    assert found["faults"][0].startswith(f"This is a bug in the collection: {type(crash).__name__} in test_nothing_")
    assert "Mark" not in str(found)


WRONG = {
    "haproxy_extra_lines": ["password 'MarkOpen"],
    "haproxy_global_lines": ["frontend MarkSection"],
    "keepalived_extra_lines": ["script MarkBrace }"],
    "haproxy_start_commands": ["/bin/true 'MarkCommand"],
    "pair_notify": "tell MarkTell",
    "pair_checks": [{"script": "storage MarkNoPath"}],
    "pair_auth_pass": ["MarkList"],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_text_is_refused_without_what_may_be_secret_in_it(name):
    play = played("pair-native", **{name: WRONG[name]})
    assert play.code != 0 and re.search(rf"{name}.* is ", str(play.faults()))
    assert kept(play) == []
