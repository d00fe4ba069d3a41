# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module vrid: what is asked of it and said by it. How a VRID is chosen: test_vrid of the module_utils."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrid as _vrid
from ansible_collections.onprem.lb.plugins.modules import vrid
from support.modules import refusal, run
from support.segments import AUTH_PASS, hear

POOL = {"name": "edge", "strategy": "pool"}


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({}, "missing required arguments: name"),
        ({"name": "lab", "strategy": "random"}, "value of strategy must be one of: openshift, pool"),
        ({"name": "lab", "on_conflict": "steal"}, "value of on_conflict must be one of: fail, next"),
        ({"name": "lab", "vrid": 5}, "module: vrid. Supported parameters include"),
        ({"name": "lab", "taken": {"vrid": 5}}, "cannot be converted to a list"),
        ({"name": "lab", "taken": [256]}, "taken[0].vrid is 256: a VRID from 1 to 255 is required."),
        ({"name": "lab", "current": {"api": 0}}, "current.api is 0: a VRID from 1 to 255 is required."),
        ({"name": "lab.example"}, "The cluster's name is 'lab.example', with a dot"),
        ({"name": "lab", "seconds": "long"}, "argument 'seconds' is of type str"),
        ({"name": "lab", "seconds": -1}, "seconds is -1"),
    ],
)
def test_a_wrong_argument_is_named(given, sentence):
    assert sentence in refusal(vrid, given)


@pytest.mark.parametrize("check", [True, False])
def test_a_cluster_gets_the_two_of_its_name_and_a_pair_one_of_the_pool(check):
    cluster = run(vrid, {"name": "lab"}, check=check)
    assert (cluster["changed"], cluster["vrids"], cluster["heard"]) == (False, _vrid.openshift("lab"), [])
    assert "vrid" not in cluster
    pair = run(vrid, POOL, check=check)
    assert (pair["changed"], pair["vrids"]) == (False, {"pair": pair["vrid"]})
    assert pair["vrid"] in _vrid.POOL


def test_what_is_heard_on_the_link_is_taken_unless_a_member_says_it(monkeypatch):
    free = run(vrid, POOL)["vrid"]
    hear(monkeypatch, ("192.0.2.99", free))
    given = {**POOL, "seconds": 1, "current": free}
    assert run(vrid, {**given, "members": ["192.0.2.99"]})["vrid"] == free
    stopped = run(vrid, given)
    assert stopped["failed"] and f"VRID {free} of the pair edge is taken by 192.0.2.99" in stopped["msg"]
    assert [router["source"] for router in stopped["heard"]] == ["192.0.2.99"] and len(stopped["conflicts"]) == 1
    assert run(vrid, {**given, "on_conflict": "next"})["vrid"] != free


def test_no_password_that_is_heard_is_returned(monkeypatch):
    hear(monkeypatch, ("192.0.2.99", 51))
    assert AUTH_PASS not in str(run(vrid, {**POOL, "seconds": 1}))


def test_where_nothing_can_be_heard_nothing_is_chosen():
    said = run(vrid, {**POOL, "seconds": 1, "interface": "no-such-link"})
    assert said["failed"] and said["msg"].startswith("There is no interface no-such-link: there are ")
    assert (said["conflicts"], said["heard"]) == ([], []) and "vrids" not in said
