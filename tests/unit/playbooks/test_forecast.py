# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `onprem.lb.forecast` prints of a plan, and which plans it refuses."""

from __future__ import annotations

import json

import pytest
from support.playbooks import play

PAIR = """
[pair]
lb1 ansible_host=192.0.2.11
lb2 ansible_host=lb2.example

[pair:vars]
pair_vips=["192.0.2.10", "2001:db8::10"]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""


def test_it_refuses_what_would_not_fail_over_also_for_a_part_of_the_pair(tmp_path):
    weak = ("-e", "pair_track_weight=2", "-e", '{"pair_priorities": [100, 98]}')
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", "--limit", "lb2", *weak)
    assert code != 0
    assert "its 100 ties with lb2's 100, so the VIP would never move: make the weight larger than 2" in said


MEASURED = {
    "vip": "192.0.2.10",
    "event": "host_cut",
    "limit_ms": 3072,
    "outage_ms": 3045.0,
    "members": {"lb1": "native", "lb2": "native"},
}


def forecast_beside(folder, name, **variables):
    (folder / name).mkdir()
    record = {"format": 1, "at": "9999-01-01T00:00:00Z", "rows": [MEASURED]}
    (folder / name / "x.json").write_text(json.dumps(record))
    (folder / name / "package.json").write_text("{}")
    code, said = play(folder, PAIR, "onprem.lb.forecast", "-e", json.dumps(variables))
    assert code == 0, said
    return " ".join(said.split())


def test_what_drills_measured_stands_beside_the_forecast_from_the_folder_of_their_history(tmp_path):
    measured = "measured 3045 ms, at worst 3045 ms (1 drill on 9999-01-01)"
    said = forecast_beside(tmp_path, "drills")
    assert said.count(measured) == 1 and "drills/package.json is skipped: it is not the record of a drill." in said
    assert measured in forecast_beside(tmp_path, "kept", drill_history="kept")
    assert measured not in forecast_beside(tmp_path, "others", drill_history="")


def test_a_history_that_cannot_be_read_is_warned_of_and_hinders_no_forecast(tmp_path):
    (tmp_path / "drills").write_text("")
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast")
    assert code == 0 and "drill_history is 'drills': Not a directory. Name a folder" in " ".join(said.split())


CLUSTER = """
[ipi_masters]
m0 ansible_host=198.51.100.1 ipi_engine=agent ipi_interface=eth1
m1 ansible_host=198.51.100.2
m2 ansible_host=198.51.100.3

[ipi_masters:vars]
ipi_cluster_name=lab
ipi_api_vips=["198.51.100.10"]
ipi_ingress_vips=["198.51.100.20"]
"""


def test_a_member_outside_the_run_keeps_its_own_engine_and_interface(tmp_path):
    pair = PAIR.replace("lb2.example", "lb2.example pair_engine=agent pair_interface=eth7")
    # Of the interface nothing is printed but what is wrong with it.
    code, said = play(tmp_path, pair + CLUSTER, "onprem.lb.forecast", "--limit", "lb1,m1")
    assert code == 0, said
    assert "lb1: native" in said and "lb2: agent, pair_engine names it" in said
    assert "m1: native" in said and "m0: agent, ipi_engine names it" in said


def test_what_the_play_says_counts_for_a_member_outside_the_run_too(tmp_path):
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", "--limit", "lb1", "-e", "pair_engine=agent")
    assert code == 0, said
    assert "lb1: agent, pair_engine names it" in said and "lb2: agent, pair_engine names it" in said


def test_a_host_of_two_layouts_is_refused(tmp_path):
    code, said = play(tmp_path, PAIR + CLUSTER.replace("m2 ansible_host=198.51.100.3", "lb2"), "onprem.lb.forecast")
    assert code != 0 and "lb2 is in the group ipi_masters" in said


SEVERAL = """
[web]
web1 ansible_host=192.0.2.11
web2 ansible_host=192.0.2.12

[web:vars]
pair_members={{ groups['web'] }}
pair_vips=["192.0.2.10"]

[db]
db1 ansible_host=192.0.2.13
db2 ansible_host=192.0.2.14

[db:vars]
pair_members={{ groups['db'] }}
pair_vips=["192.0.2.58"]

[edge:children]
web
db

[edge:vars]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""


def test_several_pairs_are_forecast_each_by_itself(tmp_path):
    code, said = play(tmp_path, SEVERAL.replace("edge", "pair"), "onprem.lb.forecast")
    assert code == 0, said
    assert "192.0.2.10 (VRID 144): held by web1, then web2" in said
    assert "192.0.2.58 (VRID 160): held by db1, then db2" in said


def test_another_group_may_have_the_pairs_of_which_a_limit_leaves_hosts_out(tmp_path):
    code, said = play(tmp_path, SEVERAL, "onprem.lb.forecast", "-e", "pair_hosts=edge", "--limit", "web2,db1")
    assert code == 0, said
    assert "held by web1, then web2" in said and "held by db1, then db2" in said


def test_hosts_of_several_pairs_without_a_list_of_members_are_refused(tmp_path):
    without = SEVERAL.replace("edge", "pair").replace("pair_members=", "#")
    code, said = play(tmp_path, without, "onprem.lb.forecast")
    assert code != 0
    assert "pair_vips: web1 and db1 disagree (['192.0.2.10'] and ['192.0.2.58'])" in said
    assert "If they are two pairs, name the members of each in its own group (pair_members)." in said


TWO_PAIRS = """
[web]
web1 ansible_host=192.0.2.11
web2 ansible_host=192.0.2.12
[web:vars]
pair_members={{ groups['web'] }}
pair_vips=["192.0.2.10"]
[db]
db1 ansible_host=192.0.2.13
db2 ansible_host=192.0.2.14
[db:vars]
pair_members={{ groups['db'] }}
pair_vips=["{{ db_vip }}"]
db_vip=192.0.2.58
[pair:children]
web
db
[pair:vars]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""


@pytest.mark.parametrize("limit, vrid", [("pair", 144), ("web", 176)])
def test_a_new_pair_leaves_the_vrids_of_a_pair_that_the_run_leaves_out(tmp_path, limit, vrid):
    """The addresses of both VIPs give 144. Alone, the other one has that, and beside this one it has 160."""
    code, said = play(tmp_path, TWO_PAIRS, "onprem.lb.forecast", "--limit", limit)
    assert code == 0, said
    assert f"192.0.2.10 (VRID {vrid}): held by web1, then web2" in said


def test_it_prints_what_the_cluster_behind_the_pair_must_know(tmp_path):
    rke2 = ("-e", "pair_preset=rke2", "-e", '{"pair_api_names": ["api.example.com"]}')
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", *rke2)
    assert code == 0, said
    assert '"server: https://api.example.com:9345"' in said
    assert "tls-san: [api.example.com, 192.0.2.10, " in said


def test_it_tells_who_will_hold_each_vip_and_where_there_is_nothing_to_paste_no_task_says_so(tmp_path):
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast")
    assert code == 0 and "held by lb1, then lb2" in said and "held by lb2, then lb1" not in said, said
    assert "host cut             lb1 -> lb2               at most  3072 ms" in said
    after = said.partition("held by lb1, then lb2")[2]
    assert "tls-san" not in after and "skipping: [" not in after


def test_the_transition_is_forecast_from_the_living_hosts_alone(tmp_path):
    """Without forecast_transition no host is connected to, as all other tests here show."""
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", "-e", "forecast_transition=true")
    assert code == 2 and "lb1 cannot be reached as root" in said


@pytest.mark.parametrize(
    "given, sentence",
    [
        ("forecast_transition=perhaps", "forecast_transition is 'perhaps': true or false is required."),
        ("forecast_transitions=true", "forecast_transitions is not a variable of the playbook: did you mean"),
    ],
)
def test_a_variable_of_the_forecast_is_judged_before_a_host_is_connected_to(tmp_path, given, sentence):
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", "-e", given)
    assert code == 2 and sentence in said and "cannot be reached" not in said
