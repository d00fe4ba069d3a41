# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Again and again: on time, one at a time, and at once when there is news."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.outcome import Outcome, Probe
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.periodic import PeriodicProbe
from support.agent.loops import SECOND, Time


class Slow(Probe):
    """A probe whose runs take a while, or no time at all."""

    def __init__(self, time, takes=0):
        self.time, self.takes = time, takes
        self.begun, self.under_way, self.stopped = [], 0, False

    def start(self, done):
        self.begun.append(self.time.now() / SECOND)
        self.under_way += 1
        assert self.under_way == 1
        if self.takes:
            self.timer = self.time.after(self.takes, lambda: self.end(done))
        else:
            self.end(done)

    def end(self, done):
        self.under_way -= 1
        done(Outcome(True))

    def stop(self):
        self.stopped = True
        if self.under_way:
            self.timer.cancel()


class Case:
    def __init__(self, takes=0, on_outcome=None):
        self.time = Time()
        self.probe = Slow(self.time, takes)
        self.outcomes = []
        self.repeated = PeriodicProbe(self.time, 2 * SECOND, self.probe, on_outcome or self.outcomes.append)
        self.repeated.start()

    def runs(self, until):
        self.time.advance(int(until * SECOND) - self.time.now())
        return self.probe.begun


@pytest.mark.parametrize("takes", [0, 0.5, 1.9])
def test_the_first_run_is_at_once_and_the_others_follow_an_interval_after_the_start_of_the_one_before(takes):
    assert Case(int(takes * SECOND)).runs(until=7) == [0, 2, 4, 6]


def test_a_run_longer_than_the_interval_delays_the_next_one_and_is_never_joined_by_it():
    assert Case(3 * SECOND).runs(until=7) == [0, 3, 6]


def test_another_interval_counts_from_the_next_run():
    case = Case()
    case.runs(until=1)
    case.repeated.interval = SECOND // 2
    assert case.runs(until=3.1) == [0, 2, 2.5, 3]


def test_another_pace_counts_at_once():
    case = Case()
    case.runs(until=0.2)
    case.repeated.set_interval(SECOND // 2)
    assert case.runs(until=1.2) == [0, 0.5, 1]
    case.repeated.set_interval(3 * SECOND)
    assert case.runs(until=8) == [0, 0.5, 1, 4, 7]


def test_a_pace_that_is_late_already_means_now():
    case = Case()
    case.runs(until=1)
    case.repeated.set_interval(SECOND // 2)
    assert case.runs(until=1.6) == [0, 1, 1.5]


def test_whatever_the_pace_news_bring_a_run_at_once():
    case = Case(SECOND, on_outcome=lambda _outcome: case.repeated.set_interval(5 * SECOND))
    case.runs(until=0.5)
    case.repeated.run_now()
    assert case.runs(until=7) == [0, 1, 6]


def test_news_bring_a_run_at_once_and_the_interval_starts_anew():
    case = Case()
    case.runs(until=1)
    case.repeated.run_now()
    assert case.runs(until=4) == [0, 1, 3]


def test_news_during_a_run_bring_one_more_right_after_it():
    case = Case(SECOND)
    case.runs(until=0.5)
    case.repeated.run_now()
    case.repeated.run_now()
    assert case.runs(until=3.5) == [0, 1, 3]


def test_news_as_the_answer_to_an_outcome_bring_a_run_at_once():
    def again(_outcome):
        if len(case.probe.begun) < 3:
            case.repeated.run_now()

    case = Case(on_outcome=again)
    assert case.runs(until=2) == [0, 0, 0, 2]


def test_nothing_is_run_or_reported_after_the_end():
    case = Case(SECOND)
    case.runs(until=2.5)
    case.repeated.stop()
    assert case.runs(until=9) == [0, 2]
    assert len(case.outcomes) == 1
    assert case.probe.stopped


def test_it_may_be_stopped_by_the_callback():
    case = Case(on_outcome=lambda _outcome: case.repeated.stop())
    assert case.runs(until=9) == [0]
