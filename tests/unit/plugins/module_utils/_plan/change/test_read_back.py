# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run reads back all that it has written: the next one, and its check mode, find nothing to change."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import config
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import instances
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from support.plans import pods
from support.plans.hosts import written
from support.plans.living import living
from support.plans.variables import CASES, VARIABLES, Case, draft
from support.scope import FULL
from support.variable_tables import options

OCP45 = {"preset": "ocp45"}
PODS = {"delivery": "pod", "pods": pods.OF_ROLE}
NOTHING = {
    **dict.fromkeys(("migration_order", "leaving", "joining", "waiting", "departed"), []),
    "sole_router": "",
    "routers_together": False,
}
NOTHING_OF_A_MEMBER = {"replaces": "", "moves_from": "", "unused": [], "checks": [], "interrupted": ""}


UNITS_ALONE = ("metrics_file", "plane")  # of the variables of a cluster
# What a run writes of an instance and none reads: no other router sees it, and nothing of the order depends on it.
UNREAD = {
    *("preempt_delay", "min_ttl", "virtual_routes", "garp_refresh", "notify", "notify_user"),
    "dont_track_primary",
}
UNREAD_OF_AGENT = {"track", "checksum"}
UNREAD_OF_KEEPALIVED = {"state", "track_scripts", "track_files", "track_interfaces", "lines"}


def deliveries(case):
    return [{}] if case.layout == "pair" or case.variable in UNITS_ALONE else [{}, PODS]


def runs(number, case):
    """Yield each way to run a case; in the quick scope one of them, another one with each case."""
    every = [
        pytest.param(case, {"engine": engine}, delivery, id=f"{case}-{engine}{'-pods' if delivery else ''}")
        for engine in ("native", "agent")
        for delivery in deliveries(case)
    ]
    return every if FULL else [every[number % len(every)]]


EVERY = [run for number, case in enumerate(CASES) for run in runs(number, case)]
# Found on hosts: with the agent and multicast each run took the members for unicast, and moved a VIP.
AGENTS = {"engine": "agent"}
FOUND = [
    pytest.param(Case("pair", "multicast", 0, {"multicast": True}), AGENTS, {}, id="found: multicast and agents"),
    pytest.param(Case("ipi", "preset", 0, OCP45), AGENTS, {}, id="found: ocp45 and agents"),
]


@pytest.mark.parametrize("layout", VARIABLES)
def test_each_variable_of_a_layout_has_another_value(layout):
    known = options(layout)
    assert {f"{layout}_{name}" for name in VARIABLES[layout]} == {*known}
    for name, values in VARIABLES[layout].items():
        for settings in values:
            assert settings[name] != known[f"{layout}_{name}"].get("default")


def test_each_key_of_an_instance_that_is_written_is_read_or_named_here():
    (native,) = conf.instances("vrrp_instance vip {\nvirtual_router_id 51\n}")
    (of_agent,) = facts.agent_instances('{"instances": [{"vrid": 51}]}')
    assert {*native} == {*of_agent}
    assert {*native} | UNREAD | UNREAD_OF_AGENT == {*config.INSTANCE}
    assert {*native} | UNREAD | UNREAD_OF_KEEPALIVED == {*instances.INSTANCE}
    assert not {*native} & (UNREAD | UNREAD_OF_AGENT | UNREAD_OF_KEEPALIVED)


@pytest.mark.parametrize("case, engine, delivery", [*EVERY, *FOUND])
def test_what_a_run_has_written_is_what_the_next_one_would_write(case, engine, delivery):
    settings = {**engine, **delivery, **case.settings}
    found = living(case.layout, settings, settings)
    plan, again = found.plan, draft(case.layout, found.members)
    assert again.warnings == plan.warnings and as_data(again.vips) == as_data(plan.vips)
    assert {key: getattr(again, key) for key in NOTHING} == NOTHING
    for name, member in again.members.items():
        assert written(again, name, found.auth_pass) == found.files[name]
        assert {key: getattr(member, key) for key in NOTHING_OF_A_MEMBER} == NOTHING_OF_A_MEMBER
        assert (member.expected.settle, member.expected.judged) == (0, 0)
        assert member.firewall == plan.members[name].firewall


@pytest.mark.parametrize("engine", ["native", "agent"])
@pytest.mark.parametrize("multicast", [True, False])
def test_a_change_between_multicast_and_unicast_is_one_that_splits(engine, multicast):
    before, planned = ({"engine": engine, "multicast": way} for way in (not multicast, multicast))
    assert draft("pair", living("pair", before, planned).members).sole_router == "lb1"
