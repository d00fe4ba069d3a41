# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which turns hosts restart their resolvers: never all at once, and the first one alone."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import restarts

UNIT = "onprem-lb-resolver.service"


@pytest.mark.parametrize("count", [0, 1, 2, 5, 10, 11, 19, 20, 100, 1003])
def test_each_host_has_one_turn_the_first_is_alone_and_there_are_no_more_than_ten(count):
    names = [f"node{number}" for number in range(count)]
    turns = restarts.turns(names)
    assert [name for turn in turns for name in turn] == names and all(turns)
    assert len(turns) <= restarts.MOST and turns[:1] == ([names[:1]] if names else [])
    assert count < 2 or max(map(len, turns)) < count
    assert count > restarts.MOST or {len(turn) for turn in turns} <= {1}
    assert restarts.at_once(count) * restarts.MOST >= count and (count < 2 or restarts.at_once(count) < count)


@pytest.mark.parametrize(
    "compared, active, expected",
    [
        ({"paths": ["/etc/x"]}, [UNIT], True),
        ({"stale": ["It has run since before."]}, [UNIT], True),
        ({"paths": [], "stale": []}, [UNIT], False),
        ({"skipped": True}, [UNIT], False),
        ({"paths": ["/etc/x"]}, [], False),  # it starts, and nobody is without it for that
    ],
)
def test_only_a_resolver_that_runs_with_other_files_is_due(compared, active, expected):
    host = {"__resolver_compared": compared, "__resolver_host": {"active_units": active}}
    assert restarts.is_due(host, UNIT) is expected
    assert not restarts.is_due({}, UNIT)
