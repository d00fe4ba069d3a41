# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a playbook refuses before it acts on members that it does not know yet."""

from __future__ import annotations

import pytest
from support.recorded_hosts import CLUSTER, CLUSTER_VARIABLES, PAIR, PAIR_VARIABLES, deployment
from support.recorded_plays import run

ACTING = ("drill", "switchover", "maintenance")
PROBED = {**PAIR, "probe": {"client": {}}}


@pytest.mark.parametrize("playbook", ACTING)
@pytest.mark.parametrize("reach, is_refused", [("bgp", False), ("both", True), ("vrrp", False)])
def test_members_that_vrrp_and_bgp_reach_are_refused_before_anything_is_asked_of_them(playbook, reach, is_refused):
    """A probe stands with the clients of one of them, and a switchover moves a holder or withdraws a path."""
    play = run(playbook, PROBED, deployment(), **PAIR_VARIABLES, pair_reach=reach)
    said = f"BGP beside VRRP, and onprem.lb.{playbook} knows one of them at a time yet: "
    assert (said in str(play.faults())) == is_refused
    assert not is_refused or (play.code and play.did("member_info", "member_lock", "host_info") == [])


@pytest.mark.parametrize("layout, groups", [("pair", PAIR), ("ipi", CLUSTER)])
@pytest.mark.parametrize("reach, is_said", [("bgp", True), ("vrrp", False)])
def test_a_survey_says_that_it_hears_vrrp_alone(layout, groups, reach, is_said):
    heard = {"vrrp_info": {"routers": [], "discarded": {}, "conflicts": []}}
    play = run("survey", groups, {**deployment(), **heard}, **{f"{layout}_reach": reach})
    assert play.code == 0, play.faults()
    assert "No VRRP router was heard." in str(play.said) and ("a survey hears VRRP" in str(play.said)) == is_said


@pytest.mark.parametrize(
    "layout, groups, variables", [("pair", PAIR, PAIR_VARIABLES), ("ipi", CLUSTER, CLUSTER_VARIABLES)]
)
def test_members_with_vrrp_a_backup_and_the_ways_back_are_not(layout, groups, variables):
    for playbook, reach in (
        ("status", "vrrp"),
        *((each, "bgp") for each in ("status", "backup", "rollback", "restore")),
    ):
        play = run(playbook, groups, deployment(), **variables, **{f"{layout}_reach": reach})
        assert "knows VRRP alone" not in str(play.faults())
