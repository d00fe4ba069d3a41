# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""At the default interval no Backup takes over while another version of the router starts."""

from __future__ import annotations

import contextlib
import time

from support.netns.links import temporary_link
from support.netns.stages import instance, temporary_stage
from support.netns.stalls import StallDetector
from support.netns.upgrades import archived_agent, upgrade_repeatedly
from support.rounds import ROUNDS, percentile

INTERVAL = 1


def longest_gap(stage, agent, detector):
    """Upgrade once; return the seconds between two Advertisements, without those in which the machine stood still."""
    before = stage.advertisements()[-1][0]
    upgrade_repeatedly(agent, 1)
    begin = time.time()
    stage.wait(lambda: stage.advertisements(begin), "it advertises no more")
    times = [at for at, _priority in stage.advertisements(before)]
    return max(last - first - detector.stalled(first, last) for first, last in zip(times, times[1:]))


def test_the_next_process_advertises_before_three_are_missed(tmp_path):
    with contextlib.ExitStack() as stack:
        detector = stack.enter_context(contextlib.closing(StallDetector()))
        stage = stack.enter_context(temporary_stage(stack.enter_context(temporary_link()), tmp_path))
        agent = archived_agent(stage, instance(stage.link.lb1, advert_interval=INTERVAL))
        stage.wait_for_holders("lb1")
        stage.wait(stage.advertisements, "it does not advertise")
        gaps = [longest_gap(stage, agent, detector) for _round in range(ROUNDS)]
    print(gaps)
    assert percentile(gaps) < 3 * INTERVAL
