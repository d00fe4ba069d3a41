# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a layout hands to its component roles: one table, by which it also refuses what a user sets beside it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components, handed
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair_layout
from support.plans.clusters import cluster
from support.plans.pairs import pair
from support.variable_tables import options

ABOUT = {"host": {"of": "lb1"}, "auth_pass": "0f3a9c1e", "raw": {"haproxy_extra_lines": ["# x"]}, "waits": False}
ROLES = ("haproxy", "keepalived", "agent")
PLANS = {
    "pair": lambda: pair_layout.plan(pair()).members["lb1"],
    "ipi": lambda: ipi.plan(cluster("master-0", "master-2", "master-1")).members["master-0"],
}


def given(layout, before=False, **parts):
    member = {**as_data(PLANS[layout]()), **parts}
    return handed.to_components(member, handed.About(layout, before=before, **ABOUT))


def overruled(layout, *names):
    return handed.overruled_variables(list(names), list(options(layout)), layout)


def test_a_variable_that_a_layout_sets_is_refused_with_the_one_to_use():
    given = ["haproxy_services", "agent_down_file", "keepalived_auth_pass", "keepalived_instances", "haproxy_maxconn"]
    assert overruled("pair", *given) == [
        "haproxy_services has no effect here: set pair_services instead.",
        "agent_down_file has no effect here: set pair_down_file instead.",
        "keepalived_auth_pass has no effect here: set pair_auth_pass instead.",
        "keepalived_instances has no effect here: pair computes it, leave it out.",
    ]


def test_each_layout_overrules_what_it_sets_itself():
    assert overruled("pair", "haproxy_stats_port", "agent_timeout_client") == []
    assert overruled("ipi", "haproxy_stats_port", "agent_timeout_client", "haproxy_services") == [
        "haproxy_stats_port has no effect here: set ipi_stats_port instead.",
        "agent_timeout_client has no effect here: ipi computes it, leave it out.",
        "haproxy_services has no effect here: ipi computes it, leave it out.",
    ]


@pytest.mark.parametrize("layout", PLANS)
@pytest.mark.parametrize("role", ROLES)
def test_a_layout_hands_on_what_no_user_may_set_beside_it_and_nothing_else(layout, role):
    settings = {key for key in given(layout)[role]["settings"] if key != "raw"}
    assert settings == {*handed.keys(layout, role)} <= {*components.COMPONENTS[role].configured()}
    names = [f"{role}_{key}" for key in components.COMPONENTS[role].configured()]
    assert [name.split(" ")[0] for name in overruled(layout, *names)] == [
        name for name in names if name[len(role) + 1 :] in settings
    ]


@pytest.mark.parametrize("layout", PLANS)
@pytest.mark.parametrize("role", ROLES)
def test_each_setting_is_that_of_the_plan(layout, role):
    plan, settings = PLANS[layout](), given(layout)[role]["settings"]
    own = as_data(plan.balancer) | as_data(plan.router) | {"auth_pass": "0f3a9c1e", "raw": ABOUT["raw"]}
    own |= {f"timeout_{key}": value for key, value in plan.balancer.timeouts.items()}
    assert settings == {key: own[key] for key in settings}


def test_a_router_whose_engine_changes_later_changes_alone():
    router = {"instances": [{"name": "old"}], "scripts": [], "track_files": [], "sync_groups": []}
    for before in (True, False):
        agent = given("pair", before, replaced_router=router, replaces="agent", asked=[{"name": "x"}])["agent"]
        settings = agent["settings"]
        assert agent["keep"] == (["proxy"] if before else [])
        assert (settings["instances"] == router["instances"]) is before
        assert (settings["services"] == "[]") is before and (settings["raw"] == {}) is before
        assert (agent["asking"] == []) is before


@pytest.mark.parametrize("replaces, gone", [("native", ["keepalived", "haproxy"]), ("agent", []), ("", [])])
def test_an_agent_replaces_the_programs_of_the_engine_that_goes(replaces, gone):
    found = given("pair", replaces=replaces, replaced_programs=["keepalived", "haproxy"], replaced_router=None)
    assert found["agent"]["replaces"] == gone
