# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In the quick scope of `make controllers` the settings that do not exclude each other share runs, and none is lost."""

from __future__ import annotations

from typing import Set

from controllers.rows import ROWS, Row, together

RUNS = together(ROWS)
SHARED = {name: [run for run in RUNS if name in run.split(", ")] for name in ROWS}


def said(row: Row) -> Set[str]:
    """Return all that a row says, one by one."""
    maps = (row.environment, row.variables, row.play, row.vaulted)
    return {repr(pair) for each in maps for pair in each.items()} | ({"runner"} if row.runner else set())


def test_every_setting_is_in_one_run_which_says_all_that_it_says():
    assert {name: len(runs) for name, runs in SHARED.items()} == dict.fromkeys(ROWS, 1)
    assert {name for name, (run,) in SHARED.items() if not said(ROWS[name]) <= said(RUNS[run])} == set()


def test_what_is_refused_has_a_run_of_its_own():
    assert [run for run, row in RUNS.items() if row.refused] == [name for name in reversed(ROWS) if ROWS[name].refused]
    assert all(RUNS[name] == row for name, row in ROWS.items() if row.refused)


def test_settings_that_exclude_each_other_have_different_runs():
    for names in (run.split(", ") for run in RUNS if ", " in run):
        rows = [ROWS[name] for name in names]
        settings = [key for row in rows for key in {**row.environment, **row.variables}]
        assert sorted(settings) == sorted(set(settings)), names
        assert len([row for row in rows if row.play or "ANSIBLE_STRATEGY" in row.environment]) <= 1, names


def test_they_share_few_runs():
    assert len(RUNS) < len(ROWS) / 3
