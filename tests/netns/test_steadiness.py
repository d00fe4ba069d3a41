# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who excuses a failed test must know why."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest
from support.netns.links import why_not
from support.netns.steadiness import LATE, NAP, Witness
from support.waiting import until

pytestmark = [pytest.mark.timed, pytest.mark.skipif(bool(why_not()), reason=str(why_not()))]
PAUSE = 0.2
ROUNDS = 20


@pytest.fixture
def witness():
    with contextlib.closing(Witness()) as made:
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


def test_a_processor_that_stood_still_was_noticed_in_the_moment_it_did(witness):
    begin, end = stopped(witness.watchers[-1:], PAUSE)
    until(lambda: any(its[1] - its[0] >= PAUSE for its in witness.pauses(begin, end)), "it was not noticed")
    ((since, back),) = [its for its in witness.pauses(begin, end) if its[1] - its[0] >= PAUSE]
    assert begin - 2 * NAP < since and back < end
    assert (since, back) not in witness.pauses(0, since) + witness.pauses(back, end)


def test_processors_that_stand_still_at_the_same_time_are_each_noticed(witness):
    begin = time.time()
    for _round in range(ROUNDS):
        stopped(witness.watchers, 4 * LATE)
    until(lambda: len(witness.pauses(begin, time.time())) >= ROUNDS * len(witness.watchers), "some were not noticed")
