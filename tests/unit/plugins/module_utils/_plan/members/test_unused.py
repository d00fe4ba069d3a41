# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier run has set up on a node goes, once the node's plan does not need it any more."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import unused
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import AGENT, NATIVE, UNITS
from ansible_collections.onprem.lb.plugins.module_utils._shared.paths import GATE
from support.plans.clusters import living

BOTH_NATIVE, BOTH_AGENT = ({"own_units": [*UNITS[engine]]} for engine in (NATIVE, AGENT))


def with_a_former_master():
    masters = ["master-0", "master-2"]
    return living([*masters, "master-1"], {}, masters=masters)


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
        (BOTH_NATIVE, AGENT, True, True, []),  # the migration removes them
        (BOTH_AGENT, NATIVE, True, True, []),
        ({"own_units": []}, NATIVE, False, False, []),
        ({}, NATIVE, True, True, []),
    ],
)
def test_each_engine_keeps_what_the_plan_has(host, engine, serves, routes, goes):
    assert unused.unused(host, engine, serves, routes, announces=True) == goes


@pytest.mark.parametrize(
    "components, comes",
    [
        (["haproxy", "keepalived"], ["haproxy", "keepalived", "psmisc", "curl"]),
        (["keepalived"], ["keepalived", "psmisc", "curl"]),
        (["haproxy", "frr"], ["haproxy", "psmisc", "curl"]),
        ([], []),  # a bootstrap host that is none any more, or a node that carries no VIP
    ],
)
def test_no_package_comes_that_the_plan_does_not_need(components, comes):
    host = {"missing_packages": ["haproxy", "keepalived", "psmisc", "curl"], "own_units": []}
    assert unused.without_unneeded(host, components) == {**host, "missing_packages": comes}


@pytest.mark.parametrize("found", [{"own_units": ["frr.service"]}, {"existing_units": [GATE]}])
def test_what_announces_goes_where_the_plan_announces_nothing(found):
    host = {"own_units": [], **found}
    assert unused.unused(host, NATIVE, serves=True, routes=True, announces=False) == ["frr"]
    assert unused.unused(host, NATIVE, serves=True, routes=True, announces=True) == []
    foreign = {"own_units": [], "existing_units": ["frr.service"]}
    assert unused.unused(foreign, NATIVE, serves=True, routes=True, announces=False) == []


def test_a_plan_says_so():
    assert planner.draft(ipi.LAYOUT, with_a_former_master()).members["master-1"].unused == ["haproxy"]


def test_packages_that_would_stay_are_refused_before_anything_changes():
    nodes = with_a_former_master()
    held = "haproxy is on hold, so that apt refuses to remove it: run `apt-mark unhold haproxy`."
    former = next(each for each in nodes if each["name"] == "master-1")
    former["host"]["unremovable"] = {"haproxy": held}
    assert planner.draft(ipi.LAYOUT, nodes).faults == [f"master-1: {held}"]
