# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`onprem.lb.forecast` refuses a plan; what it prints of a good one is in test_dns, which shares its run."""

from __future__ import annotations

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
