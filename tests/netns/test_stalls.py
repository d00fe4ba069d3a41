# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stall detector, which excuses late advertisements and takeovers, detects stalls and nothing else."""

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
STALL = 0.2
ROUNDS = 20


@pytest.fixture
def detector():
    with contextlib.closing(StallDetector()) as detector:
        pids = {watcher.process.pid for watcher in detector.watchers}
        until(lambda: all(os.sched_getscheduler(pid) == os.SCHED_RR for pid in pids), "the watchers have not started")
        yield detector


def stall(watchers, seconds):
    """Suspend watchers, as if their processors stalled; return the begin and the end."""
    begin = time.time()
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for watcher in watchers:
            os.kill(watcher.process.pid, number)
        time.sleep(seconds)  # the stall, and then some time after it
    return begin, time.time()


def long_stalls(detector, begin, end):
    return [(since, until) for since, until in detector.stalls(begin, end) if until - since >= STALL]


def test_a_stall_of_one_processor_is_detected_with_its_begin_and_end(detector):
    begin, end = stall(detector.watchers[-1:], STALL)
    until(lambda: long_stalls(detector, begin, end), "the stall was not detected")
    ((since, back),) = long_stalls(detector, begin, end)
    assert begin - 2 * SLEEP < since and back < end
    assert (since, back) not in detector.stalls(0, since) + detector.stalls(back, end)


def test_simultaneous_stalls_of_all_processors_are_each_detected(detector):
    begin = time.time()
    for _round in range(ROUNDS):
        stall(detector.watchers, 4 * MIN_STALL)
    expected = ROUNDS * len(detector.watchers)
    until(lambda: len(detector.stalls(begin, time.time())) >= expected, "a stall was not detected")


def test_simultaneous_stalls_are_counted_once_and_only_within_the_period(detector):
    begin, end = stall(detector.watchers, STALL)
    until(lambda: len(long_stalls(detector, begin, end)) == len(detector.watchers), "a stall was not detected")
    assert STALL <= detector.stalled(begin, end) < end - begin
    assert detector.stalled(begin + STALL / 4, begin + STALL / 2) == pytest.approx(STALL / 4)
