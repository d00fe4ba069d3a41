# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all workers have counted together."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.counters import Counters

SECOND = 1_000_000


def counts(sessions, current=0, out=0):
    return {"sessions": sessions, "current": current, "bytes_in": 2 * out, "bytes_out": out, "refused": 1}


@pytest.fixture
def counters():
    return Counters({})


def test_an_unknown_key_has_counts_of_0(counters):
    found = counters.of("web", 0)
    assert set(found.pop("rates").values()) == {0} and set(found.values()) == {0}


def test_workers_are_added_up(counters):
    counters.update(1, {"web": counts(10, 3, 100), "web/a": counts(4)}, 0)
    counters.update(2, {"web": counts(5, 2, 50)}, 0)
    found = counters.of("web", 0)
    assert [found[what] for what in ("sessions", "current", "bytes_in", "bytes_out", "refused")] == [15, 5, 300, 150, 2]
    assert counters.of("web/a", 0)["sessions"] == 4
    assert (counters.current(1), counters.current(2), counters.current(3)) == (3, 2, 0)


def test_a_counter_that_is_not_reported_again_has_not_changed(counters):
    counters.update(1, {"web": counts(10, 3)}, 0)
    counters.update(1, {"api": counts(1)}, SECOND)
    assert counters.of("web", SECOND)["sessions"] == 10


def test_what_a_worker_did_counts_after_its_end_and_what_it_had_does_not(counters):
    counters.update(1, {"web": counts(10, 3, 100)}, 0)
    counters.fold_in(1)
    counters.fold_in(1)
    counters.update(2, {"web": counts(1, 1)}, 0)
    found = counters.of("web", 0)
    assert (found["sessions"], found["current"], found["bytes_out"]) == (11, 1, 100)
    assert found["rates"]["sessions"] == 1
    assert Counters(counters.ended).of("web", 0)["sessions"] == 10


def test_a_queue_ends_with_its_worker_and_its_greatest_length_is_remembered(counters):
    counters.update(1, {"web": {"qcur": 3, "qmax": 7}}, 0)
    counters.update(2, {"web": {"qcur": 1, "qmax": 4}}, 0)
    assert (counters.of("web", 0)["qcur"], counters.of("web", 0)["qmax"]) == (4, 11)
    counters.fold_in(1)
    assert (counters.of("web", 0)["qcur"], counters.of("web", 0)["qmax"]) == (1, 7)
    counters.fold_in(2)
    assert (counters.of("web", 0)["qcur"], counters.of("web", 0)["qmax"]) == (0, 7)


def test_rates_are_what_was_added_in_the_time_between(counters):
    counters.update(1, {"web": counts(100, out=1000)}, 0)
    counters.update(1, {"web": counts(160, out=7000)}, round(1.2 * SECOND))
    rates = counters.of("web", round(1.3 * SECOND))["rates"]
    assert rates == {"sessions": pytest.approx(50), "bytes_out": pytest.approx(5000), "bytes_in": pytest.approx(10_000)}


def test_after_a_pause_a_rate_is_that_of_the_last_second(counters):
    counters.update(1, {"web": counts(100)}, 0)
    counters.update(1, {"web": counts(130)}, 60 * SECOND)
    assert counters.of("web", 60 * SECOND)["rates"]["sessions"] == 30


def test_without_reports_the_rates_are_0(counters):
    counters.update(1, {"web": counts(100)}, 0)
    assert counters.of("web", SECOND)["rates"]["sessions"] == 100
    assert counters.of("web", 2 * SECOND)["rates"]["sessions"] == 0
