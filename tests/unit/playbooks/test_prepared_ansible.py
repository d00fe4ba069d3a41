# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of all tests here begin in a process that has imported Ansible: they are those of the program."""

from __future__ import annotations

import pytest
from support.playbooks import PAIR, play, play_anew
from support.scope import FULL

RUNS = {"refused": ("-e", "pair_track_weight=1"), **({"good": ()} if FULL else {})}


@pytest.mark.parametrize("wrong", RUNS.values(), ids=RUNS)
def test_a_run_ends_with_the_code_and_the_output_of_the_program(tmp_path, wrong):
    run = tmp_path, PAIR, "onprem.lb.forecast", "--forks", "1", *wrong  # of two workers any may be the first
    assert play(*run) == play_anew(*run)
