# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An upgrade of the router misses no Advertisement, and sends none too many."""

from __future__ import annotations

import contextlib
import statistics
import time

import pytest
from support.netns.links import temporary_link
from support.netns.stages import instance, temporary_stage
from support.netns.stalls import StallDetector
from support.netns.upgrades import archived_agent, upgrade_repeatedly
from support.rounds import ROUNDS, percentile
from support.waiting import until


def gaps(stage, detector, begin):
    """Return the seconds between two Advertisements, without those in which the machine stood still."""
    times = [at for at, _priority in stage.advertisements(begin)]
    return [last - first - detector.stalled(first, last) for first, last in zip(times, times[1:])]


def upgrade(stage, agent, detector):
    """Upgrade once; return the gaps from some Advertisements before it to some after it."""
    begin = time.time()
    until(lambda: len(stage.advertisements(begin)) > 5)
    upgrade_repeatedly(agent, 1)
    end = time.time()
    until(lambda: len(stage.advertisements(end)) > 5)
    return gaps(stage, detector, begin)


# A Backup takes over after three missed ones, so one that is late by less than an interval is not missed.
@pytest.mark.parametrize(("interval", "limit"), [(0.1, 0.2), (0.01, 0.029)])
def test_no_advertisement_is_missed_in_an_upgrade(tmp_path, interval, limit):
    with contextlib.ExitStack() as stack:
        detector = stack.enter_context(contextlib.closing(StallDetector()))
        stage = stack.enter_context(temporary_stage(stack.enter_context(temporary_link()), tmp_path))
        agent = archived_agent(stage, instance(stage.link.lb1, advert_interval=interval))
        stage.wait_for_holders("lb1")
        rounds = [upgrade(stage, agent, detector) for _round in range(ROUNDS)]
    print([(min(each), statistics.median(each), max(each)) for each in rounds])
    assert percentile([max(each) for each in rounds]) < limit, "one too few"
    assert percentile([-min(each) for each in rounds]) < -0.4 * interval, "one too many"
    assert percentile([abs(statistics.median(each) - interval) for each in rounds]) < 0.1 * interval
