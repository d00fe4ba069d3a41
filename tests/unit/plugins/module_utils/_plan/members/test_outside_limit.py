# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of a member that --limit leaves out."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.judged import PER_MEMBER
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import outside_limit
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair

RECORD = {"members": ["lb1", "lb2"], "settings": json.dumps({"engine": "native", "interface": "eth0", "vips": []})}
OUTSIDE = {"group_names": ["pair"]}


@pytest.mark.parametrize(
    "own, of_play, engine, interface",
    [
        ({}, {}, "native", "eth0"),
        ({"pair_engine": "agent", "pair_interface": "bond0"}, {}, "agent", "bond0"),
        ({}, {"pair_engine": "native", "pair_interface": "eth0"}, "auto", ""),
        ({"pair_interface": "bond0"}, {"pair_interface": "eth0"}, "native", "bond0"),
    ],
    ids=["set for neither", "set for it", "set for the host of the play alone", "set for both"],
)
def test_a_member_outside_the_limit_has_its_engine_and_interface_from_the_inventory(own, of_play, engine, interface):
    found = outside_limit.recorded(RECORD, "lb2", {**OUTSIDE, **own}, of_play, "pair")
    assert json.loads(found["settings"]) == {"engine": engine, "interface": interface, "vips": []}
    assert (found["name"], found["address"], found["members"]) == ("lb2", "lb2", ["lb1", "lb2"])
    assert (found["groups"], found["outside_limit"], found["host"]) == (["pair"], True, None)


@pytest.mark.parametrize("key, unset", outside_limit.UNSET.items())
def test_whatever_may_differ_between_members_is_its_own(key, unset):
    """Its routers are those of its own rack."""
    record = {**RECORD, "settings": json.dumps({key: "of the play"})}
    for own, of_play, expected in (
        ({}, {}, "of the play"),
        ({}, {f"pair_{key}": 1}, unset),
        ({f"pair_{key}": 2}, {}, 2),
    ):
        found = outside_limit.recorded(record, "lb2", {**OUTSIDE, **own}, of_play, "pair")
        assert json.loads(found["settings"]) == {key: expected}


def test_that_is_what_the_layouts_say():
    assert {*outside_limit.UNSET} == {*PER_MEMBER}
    for schema in (pair.LAYOUT.schema, ipi.LAYOUT.schema):
        assert all(schema[key].default == unset for key, unset in outside_limit.UNSET.items() if key in schema)


def test_it_is_reached_where_the_inventory_says():
    assert (
        outside_limit.recorded(RECORD, "lb2", {**OUTSIDE, "ansible_host": "192.0.2.2"}, {}, "pair")["address"]
        == "192.0.2.2"
    )
