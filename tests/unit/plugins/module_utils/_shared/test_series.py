# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a probe's connections says of each what became of it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import series
from ansible_collections.onprem.lb.plugins.module_utils._shared.series import Answer


def test_each_interval_has_its_word_also_one_without_a_connection():
    attempts = [(0.0, 0.7, "ok"), (15.2, 115.2, "timeout"), (5.1, 17.1, "ok")]
    assert series.encode(attempts, 5.0) == "7 120 - t"


def test_what_was_written_can_be_read():
    text = series.encode([(0.2, 0.9, "ok"), (10.0, 10.0, "refused")], 5.0)
    assert series.decode(text, 5.0) == [Answer(0.0, "ok", 0.7), Answer(5.0, "skipped"), Answer(10.0, "refused")]


@pytest.mark.parametrize("outcome", [*series.LETTERS, "EHOSTUNREACH"])
def test_every_failure_has_a_letter_of_its_own_or_is_an_error(outcome):
    (found,) = series.decode(series.encode([(0.0, 1.0, outcome)], 5.0), 5.0)
    assert found.outcome == (outcome if outcome in series.LETTERS else "error") and found.latency_ms is None


def test_a_start_that_is_rounded_down_stays_in_its_interval():
    attempts = [(at * 0.1 * 3, at * 0.3 + 1, "ok") for at in range(1000)]
    assert series.encode(attempts, 0.3).split() == ["10"] * 1000


def test_nothing_is_nothing():
    assert series.encode([], 5.0) == "" and series.decode("", 5.0) == []
