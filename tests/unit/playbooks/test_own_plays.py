# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles of the layouts in a play of the user's own: the tags of the stages do there what they do in ours."""

from __future__ import annotations

import pytest
from support.recorded_hosts import (
    CLUSTER,
    CLUSTER_VARIABLES,
    PAIR,
    PAIR_VARIABLES,
    deployment,
    fresh_then_running,
)
from support.recorded_plays import run

LAYOUTS = {"pair": (PAIR, PAIR_VARIABLES), "ipi": (CLUSTER, CLUSTER_VARIABLES)}
STAGES = ("preflight", "install", "configure", "verify")


def own_play(layout, call, **options):
    """Play the role of a layout as a role of a play, or as a task of it."""
    inventory, variables = LAYOUTS[layout]
    role = f"onprem.lb.{layout}"
    task = {f"ansible.builtin.{call}": {"name": role}}
    plays = [{"hosts": "all", "gather_facts": False, **({"roles": [role]} if call == "roles" else {"tasks": [task]})}]
    host_info = fresh_then_running(missing_packages=["haproxy", "keepalived"])
    return run(
        plays, inventory, deployment(host_info=host_info, nft_tables={"not_in_force": []}), **{**variables, **options}
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", ["roles", "import_role"])
def test_a_stage_runs_alone_in_a_play_of_the_users_own(layout, call):
    play = own_play(layout, call, tags=["install"])
    assert play.code == 0, play.faults()
    assert play.of("host_info") != [] and play.of("apt") != [] and play.of("systemd_service") == []


def test_other_tags_of_that_play_run_nothing_of_the_role():
    play = own_play("pair", "roles", tags=["web"])
    assert play.code == 0 and play.calls == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_skipping_a_stage_would_skip_everything_and_is_refused(layout):
    play = own_play(layout, "roles", skip_tags=["configure"])
    stages = ", ".join(STAGES)
    sentence = f"--skip-tags names configure, which skips everything: name the stages to run with --tags, of {stages}."
    assert sentence in str(play.faults()) and play.calls == []
