# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A watchdog, with a clock that the test moves."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.watchdog import MAX_SILENCE, Watchdog
from support.agent.loops import SECOND, Time


class WatchdogCase:
    def __init__(self):
        self.time, self.expired = Time(), []
        self.watchdog = Watchdog(self.time, lambda: self.expired.append(self.time.now()), MAX_SILENCE)


@pytest.fixture
def case():
    return WatchdogCase()


def test_it_expires_once_when_nothing_was_reported_for_the_limit(case):
    case.time.advance(3 * SECOND - 1)
    assert case.expired == []
    case.time.advance(60 * SECOND)
    assert case.expired == [3 * SECOND]


def test_each_report_starts_it_from_zero_with_the_limit_that_counts_from_then_on(case):
    for _each in range(5):
        case.time.advance(2 * SECOND)
        case.watchdog.feed(MAX_SILENCE)
    case.watchdog.feed(20 * SECOND)
    case.time.advance(19 * SECOND)
    assert case.expired == []
    case.time.advance(SECOND)
    assert case.expired


def test_a_pause_of_this_process_itself_is_not_counted(case):
    case.time.advance(SECOND)
    case.time.stand_still(3600 * SECOND)
    case.time.advance(SECOND)  # in which the child's report is read
    assert case.expired == []
    case.watchdog.feed(MAX_SILENCE)
    case.time.advance(3 * SECOND)
    assert case.expired


def test_it_may_be_stopped(case):
    case.watchdog.stop()
    case.time.advance(60 * SECOND)
    assert case.expired == []
