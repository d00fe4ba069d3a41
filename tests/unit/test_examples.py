# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each example is planned without a fault and survives every single failure; README names it and what it is for."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import events
from support.inventories import Inventory
from support.paths import EXAMPLES, README
from support.variable_tables import options

FILES = sorted(EXAMPLES.iterdir())
ROWS = dict(re.findall(r"^\| \[([\w-]+\.yml)\]\(examples/\1\) \| (.+) \|$", README.read_text(), re.MULTILINE))


@pytest.fixture(params=FILES, ids=[path.stem for path in FILES], scope="module")
def example(request):
    return request.param


@pytest.fixture(scope="module")
def inventory(example):
    return Inventory(example)


# The holder keeps the VIP: it serves on, or does not know that nobody hears it.
STAYS = (
    events.HAPROXY_RELOADED,
    events.BOTH_RELOADED,
    events.VRRP_LOST,
    events.SLOW_BACKEND,
    events.DISK_FULL,
    events.STRANGER_WITH_VIP,
    events.API_FAILING,  # the balancer has the other API servers
)


def test_it_survives_every_single_failure(inventory):
    assert inventory.layouts()
    for layout in inventory.layouts():
        found = inventory.plans(layout)
        assert found.faults == [] and found.plans
        for plan in found.plans:
            assert plan.warnings == []
            assert {line["vip"] for line in plan.outages} == {vip.address for vip in plan.vips}
            for line in plan.outages:
                # A VIP that is announced has several members: some are left.
                moves = line["left"] if "left" in line else line["after"] != line["before"]
                assert moves or line["event"] in STAYS


def test_each_of_its_variables_is_one_of_the_role(inventory):
    for layout in inventory.layouts():
        for host in inventory.hosts(layout):
            assert set(inventory.variables(host, f"{layout}_")) <= set(options(layout))


def test_it_says_in_a_comment_what_it_is_for(example):
    first, second = example.read_text().splitlines()[:2]
    assert first == "---" and second.startswith("# ")


def test_the_readme_lists_the_examples_and_no_others():
    assert sorted(ROWS) == [path.name for path in FILES]
