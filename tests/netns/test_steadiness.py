# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who excuses a failed test must know why."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest
from links import why_not
from stages import until
from steadiness import LATE, Witness

pytestmark = pytest.mark.skipif(bool(why_not()), reason=str(why_not()))
PAUSE = 0.2
ROUNDS = 20


def test_a_processor_that_stood_still_was_noticed_and_only_then():
    with contextlib.closing(Witness()) as witness:
        watcher = witness.watchers[-1].process.pid
        until(lambda: os.sched_getscheduler(watcher) == os.SCHED_RR, "it does not watch")
        witness.begin()
        os.kill(watcher, signal.SIGSTOP)
        time.sleep(PAUSE)  # the pause that is to be noticed
        os.kill(watcher, signal.SIGCONT)
        until(lambda: any(PAUSE <= length < 2 * PAUSE for length in witness.pauses()), "it was not noticed")
        assert witness.disturbed() and min(witness.pauses()) > LATE
        witness.begin()
        assert not witness.disturbed()


def test_processors_that_stand_still_at_the_same_time_are_each_noticed():
    with contextlib.closing(Witness()) as witness:
        watchers = [watcher.process.pid for watcher in witness.watchers]
        until(lambda: {os.sched_getscheduler(watcher) for watcher in watchers} == {os.SCHED_RR}, "they do not watch")
        witness.begin()
        for number in [signal.SIGSTOP, signal.SIGCONT] * ROUNDS:
            for watcher in watchers:
                os.kill(watcher, number)
            time.sleep(2 * LATE)  # the pause, and between two of them
        until(lambda: len(witness.pauses()) >= ROUNDS * len(watchers), "some were not noticed")
        assert witness.disturbed()
