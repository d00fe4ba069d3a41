# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of a member that --limit leaves out."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import outside_limit

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


def test_it_is_reached_where_the_inventory_says():
    assert (
        outside_limit.recorded(RECORD, "lb2", {**OUTSIDE, "ansible_host": "192.0.2.2"}, {}, "pair")["address"]
        == "192.0.2.2"
    )
