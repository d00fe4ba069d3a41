# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When it is up, when it is down, and when that is not certain."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import rise_fall

UP, DOWN, MAYBE = "U", "D", "?"


def story(outcomes, rise, fall):
    """Return the state after each outcome; in small letters while outcomes contradict it."""
    state, letters = rise_fall.UNKNOWN, ""
    for outcome in outcomes:
        state = rise_fall.count(state, outcome == "+", rise, fall)
        letter = {True: UP, False: DOWN, None: MAYBE}[state.up]
        letters += letter if state.certain else letter.lower()
    return letters


def test_the_state_is_unknown_at_first():
    assert rise_fall.UNKNOWN.up is None


@pytest.mark.parametrize("outcome, expected", [("+", UP), ("-", DOWN)])
def test_the_first_outcome_decides_at_once_whatever_rise_and_fall_are(outcome, expected):
    assert story(outcome, rise=5, fall=5) == expected


@pytest.mark.parametrize(
    "outcomes, rise, fall, expected",
    [
        ("+-+-", 1, 1, "UDUD"),
        ("+---", 1, 3, "UuuD"),
        ("+--+--", 1, 3, "UuuUuu"),
        ("+--+---", 1, 3, "UuuUuuD"),
        ("-++", 2, 1, "DdU"),
        ("-+-++", 2, 1, "DdDdU"),
        ("-++-+---+", 2, 3, "DdUuUuuDd"),
    ],
)
def test_only_a_run_of_its_own_length_changes_it(outcomes, rise, fall, expected):
    assert story(outcomes, rise, fall) == expected
