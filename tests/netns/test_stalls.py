# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who excuses a failed test must know why."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest
from support.netns.links import skip_reason
from support.netns.stalls import MIN_STALL, SLEEP, StallDetector
from support.waiting import until

pytestmark = [pytest.mark.timed, pytest.mark.skipif(bool(skip_reason()), reason=str(skip_reason()))]
PAUSE = 0.2
ROUNDS = 20


@pytest.fixture
def detector():
    with contextlib.closing(StallDetector()) as made:
        watching = {watcher.process.pid for watcher in made.watchers}
        until(lambda: all(os.sched_getscheduler(pid) == os.SCHED_RR for pid in watching), "they do not watch")
        yield made


def stopped(watchers, seconds):
    """Returns when it began and ended."""
    begin = time.time()
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for watcher in watchers:
            os.kill(watcher.process.pid, number)
        time.sleep(seconds)  # the pause, and then the time in which it is over
    return begin, time.time()


def test_a_processor_that_stood_still_was_noticed_in_the_moment_it_did(detector):
    begin, end = stopped(detector.watchers[-1:], PAUSE)
    until(lambda: any(its[1] - its[0] >= PAUSE for its in detector.pauses(begin, end)), "it was not noticed")
    ((since, back),) = [its for its in detector.pauses(begin, end) if its[1] - its[0] >= PAUSE]
    assert begin - 2 * SLEEP < since and back < end
    assert (since, back) not in detector.pauses(0, since) + detector.pauses(back, end)


def test_processors_that_stand_still_at_the_same_time_are_each_noticed(detector):
    begin = time.time()
    for _round in range(ROUNDS):
        stopped(detector.watchers, 4 * MIN_STALL)
    until(lambda: len(detector.pauses(begin, time.time())) >= ROUNDS * len(detector.watchers), "some were not noticed")
