# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stall detector, which excuses late advertisements and takeovers, detects stalls and nothing else."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

import pytest
from support.netns import stalls
from support.netns.links import skip_reason
from support.netns.stalls import MIN_STALL, SLEEP, StallDetector
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(skip_reason()), reason=str(skip_reason()))
STALL = 0.2
ROUNDS = 20


@pytest.fixture
def detector():
    with contextlib.closing(StallDetector()) as detector:
        pids = {watcher.process.pid for watcher in detector.watchers}
        until(lambda: all(os.sched_getscheduler(pid) == os.SCHED_RR for pid in pids), "the watchers have not started")
        # One that has not looked at the clock yet cannot be late.
        for watcher in detector.watchers:
            stop_until_seen(watcher)
        yield detector


def stop_until_seen(watcher):
    seen = len(watcher.stalls())
    until(lambda: stall([watcher], 4 * MIN_STALL) and len(watcher.stalls()) > seen, "no stall was detected")


def stall(watchers, seconds):
    """Suspend watchers, as if their processors stalled; return a begin and an end between which they all stood."""
    for watcher in watchers:
        os.kill(watcher.process.pid, signal.SIGSTOP)
    until(lambda: all(is_stopped(watcher) for watcher in watchers))
    begin = time.time()
    time.sleep(seconds)
    end = time.time()
    for watcher in watchers:
        os.kill(watcher.process.pid, signal.SIGCONT)
    return begin, end


def is_stopped(watcher):
    return Path(f"/proc/{watcher.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def covering(watcher, begin, end):
    return [(since, back) for since, back in watcher.stalls() if since <= begin and back >= end]


def test_a_sleep_is_a_stall_only_if_it_takes_longer_than_it_should():
    late = iter([0, MIN_STALL * 0.9, MIN_STALL * 1.1, 0])
    now = [100.0]

    def sleep(seconds):
        now[0] += seconds + next(late)

    seen = list(itertools.islice(stalls.sleeps(lambda: now[0], sleep), 4))
    begin = 100 + 2 * SLEEP + MIN_STALL * 0.9
    assert seen == [None, None, pytest.approx((begin, begin + SLEEP + MIN_STALL * 1.1)), None]


def test_a_stall_of_one_processor_is_detected(detector):
    begin, end = stall(detector.watchers[-1:], STALL)
    until(lambda: covering(detector.watchers[-1], begin, end), "the stall was not detected")
    assert detector.stalled(begin, end) == pytest.approx(end - begin)


def test_simultaneous_stalls_of_all_processors_are_each_detected(detector):
    stood = [stall(detector.watchers, 4 * MIN_STALL) for _round in range(ROUNDS)]
    until(
        lambda: all(covering(watcher, *period) for watcher in detector.watchers for period in stood),
        "a stall was not detected",
    )


def test_simultaneous_stalls_are_counted_once_and_only_within_the_period(detector):
    begin, end = stall(detector.watchers, STALL)
    until(lambda: all(covering(watcher, begin, end) for watcher in detector.watchers), "a stall was not detected")
    assert detector.stalled(begin, end) == pytest.approx(end - begin)
    assert detector.stalled(begin + STALL / 4, begin + STALL / 2) == pytest.approx(STALL / 4)


def test_no_moment_outside_the_stalls_is_counted(detector):
    for watcher in detector.watchers:
        watcher.stalls = lambda: [(10.0, 10.5), (10.25, 11.0), (12.0, 13.0)]
    assert detector.stalls(11.0, 12.0) == []
    assert detector.stalled(9.0, 12.5) == pytest.approx(1.5)
