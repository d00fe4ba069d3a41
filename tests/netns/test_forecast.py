# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forecast is right: real keepalived with the same plans behaves as forecast.

Several plans run at the same time, each on its own link, because they mostly wait. The tests then read the records. How
long the outages are is judged in tests/timing.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.netns.forecasts import CASES, LASTING, TIE, VIP, Case, play, steps_of
from support.netns.links import skip_reason
from support.scope import FULL

# All events, polling, and the cases that differ most from the rest.
QUICK = ("three members", "polled, weight 4", "polled, weight 2, a tie", "no preemption")
PLAYED = CASES if FULL else {name: CASES[name] for name in QUICK}
AT_ONCE = 6


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The steps of each run. An exception in one run fails all tests."""
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    aborted = threading.Event()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            plays = {
                name: pool.submit(play, case, tmp_path_factory.mktemp("play"), aborted) for name, case in PLAYED.items()
            }
            return {name: playing.result() for name, playing in plays.items()}
        finally:
            aborted.set()


STEPS = [
    pytest.param(name, at, id=f"{name}: {step}")
    for name, case in PLAYED.items()
    for at, step in enumerate(steps_of(case))
]


@pytest.mark.parametrize("name, at", STEPS)
def test_each_vip_has_the_forecast_holder_only(played, name, at):
    for vip, outcome in played[name][at].items():
        assert (vip, outcome.view.holders) == (vip, [outcome.holder])
        assert (vip, outcome.view.announcer) == (vip, outcome.holder), "clients send to another member"


def test_a_tie_is_refused_and_does_leave_the_vip_on_a_member_without_haproxy(played):
    name = "polled, weight 2, a tie"
    assert "ties with lb2" in pair.plan(CASES[name].hosts()).faults[0]
    report = played[name][1][VIP]
    assert (report.view.holders, report.view.served) == (["lb1"], False)
    # Longer than with weight 4, which breaks the tie.
    broken = Case({**TIE, **LASTING, "track_weight": 4}).plan().outages
    (expected,) = [line["outage_ms"] for line in broken if line["event"] == "haproxy_killed"]
    assert report.outage_ms > expected
