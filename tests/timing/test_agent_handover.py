# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A planned handover costs no connection attempt with ten advertisements a second either. The old holder then serves
for 0.3 s at most, so a machine that stalls for that long fails a round."""

from __future__ import annotations

from support.netns.handovers import Attempts, members
from support.netns.links import temporary_link
from support.netns.stages import temporary_stage
from support.rounds import ROUNDS, percentile


def repeated_syns(folder):
    folder.mkdir()
    with temporary_link() as link, temporary_stage(link, folder) as stage, members(stage) as (leaving, staying):
        attempts = Attempts(stage)
        attempts.wait_for_some(leaving.node)
        leaving.stop()
        stage.wait_for_holders("lb2")
        attempts.wait_for_some(staying.node)
        assert set(attempts.end()) <= {"ok", "slow"}
        return len(attempts.sent_again())


def test_no_connection_attempt_sends_its_syn_again_at_a_short_interval(tmp_path):
    repeated = [repeated_syns(tmp_path / str(number)) for number in range(ROUNDS)]
    print(repeated)
    assert percentile(repeated) == 0
