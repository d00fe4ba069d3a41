# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a playbook refuses before it acts on members that it does not know yet."""

from __future__ import annotations

import pytest
from support.recorded_hosts import CLUSTER, CLUSTER_VARIABLES, PAIR, PAIR_VARIABLES, deployment
from support.recorded_plays import run

REFUSED = {
    ("drill", "bgp"): "announces its VIPs by BGP, and onprem.lb.drill knows VRRP alone yet: ",
    ("drill", "both"): "announces its VIPs by BGP, and onprem.lb.drill knows VRRP alone yet: ",
    ("switchover", "both"): "BGP beside VRRP, and onprem.lb.switchover knows one of them at a time yet: ",
    ("maintenance", "both"): "BGP beside VRRP, and onprem.lb.maintenance knows one of them at a time yet: ",
}
PROBED = {**PAIR, "probe": {"client": {}}}


@pytest.mark.parametrize("playbook, reach", REFUSED)
def test_members_that_announce_are_refused_before_anything_is_asked_of_them(playbook, reach):
    play = run(playbook, PROBED, deployment(), **PAIR_VARIABLES, pair_reach=reach)
    assert play.code != 0 and REFUSED[playbook, reach] in str(play.faults())
    assert play.did("member_info") == play.did("member_lock") == play.did("host_info") == []


@pytest.mark.parametrize("reach, is_refused", [("bgp", False), ("both", True), ("vrrp", False)])
def test_a_drill_has_one_probe_and_is_of_one_kind_of_reach(reach, is_refused):
    play = run("drill", {**PAIR, "probe": {"client": {}}}, deployment(), **PAIR_VARIABLES, pair_reach=reach)
    assert ("onprem.lb.drill knows one of VRRP and BGP at a time" in str(play.faults())) == is_refused
    assert not is_refused or play.did("member_info", "member_lock", "host_info") == []


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
