# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For how long a process waits that is itself late, on a clock that the test moves."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import network, patience
from hypothesis import given
from hypothesis import strategies as st
from support.agent.loops import SECOND, Runs, Time

LIMIT = SECOND // 2
STEP = LIMIT // patience.STEPS
LATE = st.lists(st.integers(0, 4 * STEP), min_size=patience.STEPS, max_size=50)


def wait(limit, delays, begin=0):
    """Return the wait after each step, and when that was; each step is late by one of these delays."""
    found, now = patience.begin(limit, begin), begin
    for delay in delays:
        now = found.wake + delay
        found = patience.woken(found, now)
        yield found, now
        if found.is_over:
            return


@given(st.integers(1, 10**9), st.integers(-(10**12), 10**12))
def test_a_process_that_is_on_time_waits_for_the_limit(limit, begin):
    found, now = [*wait(limit, [0] * patience.STEPS, begin)][-1]
    assert found.is_over and limit <= now - begin < limit + patience.STEPS and found.late == 0


@given(LATE)
def test_for_as_long_as_it_was_late_no_answer_counts_as_missing(delays):
    for found, now in wait(LIMIT, delays):
        assert found.late == sum(delays[: round((now - sum(delays)) / STEP)]) or found.late <= sum(delays)
        assert not found.is_over or now >= LIMIT + found.late


@given(st.lists(st.integers(STEP + 1, 100 * SECOND), max_size=50))
def test_a_process_that_is_never_on_time_does_not_know(delays):
    assert not any(found.is_over for found, _now in wait(LIMIT, delays))


@given(LATE, st.integers(0, 10))
def test_it_knows_again_once_it_is_on_time(delays, before):
    steps = [*wait(LIMIT, [5 * STEP] * before + [0] * patience.STEPS)]
    assert steps[-1][0].is_over


@given(st.lists(st.integers(0, STEP), min_size=patience.STEPS, max_size=patience.STEPS))
def test_being_a_little_late_each_time_ends_it_later_by_the_sum(delays):
    found, now = [*wait(LIMIT, delays)][-1]
    assert found.is_over and now == LIMIT + sum(delays)


def test_a_clock_that_jumps_ahead_during_a_wait_ends_none():
    (found, _now), *_rest = wait(LIMIT, [3600 * SECOND])
    assert not found.is_over and found.waited == 0


class Silent:
    """A connection on which nothing ever happens."""

    def fileno(self):
        return 3

    def close(self):
        pass


@pytest.mark.parametrize("pause", [0, 10 * SECOND])
def test_a_check_over_the_network_fails_only_after_its_timeout_without_the_pauses(pause):
    loop = Time()
    runs = Runs(loop, network.NetworkProbe(loop, "127.0.0.1", 1, LIMIT, connect=lambda *_at: Silent()))
    runs.start()
    loop.advance(LIMIT - STEP)
    loop.stand_still(pause)
    loop.advance(0)
    assert (runs.outcomes == []) or not pause
    loop.advance(2 * STEP)
    assert [each.success for each in runs.outcomes] == [False]
    assert runs.outcomes[0].duration >= LIMIT + pause and "within 0.5 s" in runs.outcomes[0].detail
