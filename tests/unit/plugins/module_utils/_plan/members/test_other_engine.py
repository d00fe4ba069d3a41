# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable that has no effect with the engine of all members is said, with the one that has."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import other_engine
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import AGENT, NATIVE
from support.plans.pairs import member
from support.variable_tables import options

EVERY = sorted(f"{role}_{key}" for role, keys in other_engine.KEYS.items() for key in keys)


def said(*names, used=(AGENT,)):
    return other_engine.sentences([{"role_variables": [name]} for name in names], used)


@pytest.mark.parametrize("name", EVERY)
def test_each_variable_is_said_where_no_member_has_its_engine_and_nowhere_else(name):
    own, other = (AGENT, NATIVE) if name.startswith("agent_") else (NATIVE, AGENT)
    is_for_either = name.partition("_")[2] in other_engine.EITHER
    assert len(said(name, used=[other])) == (not is_for_either)
    assert said(name, used=[own]) == said(name, used=[own, other]) == said(name, used=[]) == []


@pytest.mark.parametrize(
    "names, sentences",
    [
        (["haproxy_maxconn"], ["haproxy_maxconn has no effect with the engine agent: set agent_maxconn instead."]),
        (["haproxy_maxconn", "agent_maxconn"], []),
        (["haproxy_log_normal"], ["haproxy_log_normal has no effect with the engine agent: leave it out."]),
        (["haproxy_backend", "haproxy_services_of_others", "resolver_port"], []),
    ],
)
def test_the_variable_that_counts_is_named_and_those_of_other_projects_are_not(names, sentences):
    assert said(*names) == sentences


def test_with_the_native_engine_the_variables_of_its_roles_count():
    assert said("agent_retries", "agent_startup_delay", "agent_workers", used=[NATIVE]) == [
        "agent_retries has no effect with the engine native: set haproxy_retries instead.",
        "agent_startup_delay has no effect with the engine native: set keepalived_startup_delay instead.",
        "agent_workers has no effect with the engine native: leave it out.",
    ]


@pytest.mark.parametrize("role", other_engine.KEYS)
def test_a_variable_that_the_role_does_not_have_is_none_of_them(role):
    assert other_engine.KEYS[role] - {"raw"} <= {name[len(role) + 1 :] for name in options(role)}


def test_a_plan_says_it():
    given = [{**member(number, engine="agent"), "role_variables": ["haproxy_retries"]} for number in (1, 2)]
    sentence = "haproxy_retries has no effect with the engine agent: set agent_retries instead."
    assert sentence in planner.draft(pair.LAYOUT, given).warnings
