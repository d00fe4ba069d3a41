# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier run has set up on a node goes, once the node's plan does not need it any more."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import ipi, planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.unused import unused
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import AGENT, NATIVE, UNITS
from support.plans.clusters import living

BOTH_NATIVE, BOTH_AGENT = ({"own_units": [*UNITS[engine]]} for engine in (NATIVE, AGENT))


@pytest.mark.parametrize(
    "host, engine, serves, routes, goes",
    [
        (BOTH_NATIVE, NATIVE, True, True, []),
        (BOTH_NATIVE, NATIVE, False, True, ["haproxy"]),  # a master that becomes a worker
        (BOTH_NATIVE, NATIVE, False, False, ["keepalived", "haproxy"]),
        (BOTH_NATIVE, AGENT, False, False, ["keepalived", "haproxy"]),
        (BOTH_AGENT, AGENT, True, True, []),
        (BOTH_AGENT, AGENT, False, True, []),  # its module removes its balancer
        (BOTH_AGENT, AGENT, False, False, ["agent"]),
        (BOTH_AGENT, NATIVE, False, False, ["agent"]),
        ({"own_units": []}, NATIVE, False, False, []),
        ({}, NATIVE, True, True, []),
    ],
)
def test_each_engine_keeps_what_the_plan_has(host, engine, serves, routes, goes):
    assert unused(host, engine, "", serves, routes) == goes


@pytest.mark.parametrize("host, before, engine", [(BOTH_NATIVE, NATIVE, AGENT), (BOTH_AGENT, AGENT, NATIVE)])
def test_the_migration_removes_the_other_engine(host, before, engine):
    assert unused(host, engine, before, True, True) == []


def test_what_a_migration_has_left_goes():
    host = {"own_units": [*UNITS[NATIVE], *UNITS[AGENT]]}
    assert unused(host, NATIVE, "", True, True) == ["agent"]


def test_a_plan_says_so():
    masters = ["master-0", "master-2"]
    nodes = living([*masters, "master-1"], {}, masters=masters)
    assert planner.draft(ipi.LAYOUT, nodes).members["master-1"].unused == ["haproxy"]
