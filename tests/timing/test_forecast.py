# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No outage of real keepalived is longer than forecast for the same plan.

The outages of all rounds are judged twice: those of a plan, and those of an event with all plans. Few plans run at
once, because the forecast's outage is a bound for hosts that are not busy.
"""

from __future__ import annotations

import contextlib
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import rounds
from support.netns.forecasts import CASES, play, steps_of
from support.netns.links import skip_reason
from support.netns.recorder import use_realtime_priority
from support.netns.stalls import StallDetector

AT_ONCE = 4
ROUNDS = 2
# A refused plan has no bound.
BOUNDED = {name: case for name, case in CASES.items() if not case.refused}


def event_of(step):
    """Return the event of a step, and whether it begins or ends there."""
    event, _at, member = step.partition(" at ")
    return f"{event} ends" if member.endswith(" ends") else event


EVENTS = sorted({event_of(step) for case in BOUNDED.values() for step in steps_of(case)[1:]})


@pytest.fixture(scope="module")
def excesses(tmp_path_factory):
    """By plan and step: by how many milliseconds each outage was longer than forecast. The start has no bound."""
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    aborted = threading.Event()
    threads = ThreadPoolExecutor(AT_ONCE, initializer=use_realtime_priority)
    with contextlib.closing(StallDetector()) as detector, threads as pool:
        try:
            plays = [
                (name, pool.submit(play, case, tmp_path_factory.mktemp("play"), aborted, stalled=detector.stalled))
                for name, case in BOUNDED.items()
                for _round in range(ROUNDS)
            ]
            return [
                (name, step, outcome.outage_ms - outcome.bound_ms)
                for name, playing in plays
                for step, outcomes in list(zip(steps_of(BOUNDED[name]), playing.result()))[1:]
                for outcome in outcomes.values()
            ]
        finally:
            aborted.set()


@pytest.mark.parametrize("name", BOUNDED)
def test_no_outage_of_a_plan_is_longer_than_forecast(excesses, name):
    own = [excess for plan, _step, excess in excesses if plan == name]
    assert -math.inf not in own and rounds.percentile(own) <= 0, own


@pytest.mark.parametrize("event", EVENTS)
def test_no_outage_of_an_event_is_longer_than_forecast(excesses, event):
    own = [excess for _plan, step, excess in excesses if event_of(step) == event]
    assert -math.inf not in own and rounds.percentile(own) <= 0, own
