# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the marks of a figure are."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill.figures import (
    bars,
    lanes,
    latency,
    rounds,
    scales,
    strip,
)

TONES = {"lb1": "who-1", "lb2": "who-2"}


def result(series, *moves, begin="", **changes):
    """A round whose VIP moved as said: ``(at_ms, holders)``."""
    count = len(series.split())
    seen = {
        "timeline": [{"at_ms": float(at), "holders": list(holders)} for at, holders in moves],
        "series": series,
        "probed_ms": count * 5.0,
        "started_at": 1769860800.0,
        **changes,
    }
    return {
        "event": "haproxy_killed",
        "member": "lb1",
        "interval_ms": "5.0",
        "revert_after": 0.5,
        "injected_at": begin,
        "members": [{"name": "lb1"}, {"name": "lb2"}],
        "seen": seen,
    }


def drawn(*args, **kwargs):
    return rounds.read(result(*args, **kwargs))


def marks(found):
    return [[(mark.tone, mark.answers) for mark in line.marks] for line in found.lines]


def test_a_strip_has_a_cell_for_each_answer_in_the_tone_of_its_holder():
    found = strip.strip(drawn("7 7 t r - 9 9 9", (0, ["lb1"]), (10, []), (30, ["lb2"])), TONES)
    assert marks(found) == [[("who-1", 2), ("silent", 1), ("silent", 1), ("unknown", 1), ("who-2", 2)]]
    (line,) = found.lines
    cell = (scales.RIGHT - scales.LEFT) / strip.CELLS
    assert [(mark.x - scales.LEFT) / cell for mark in line.marks] == pytest.approx([0, 2, 3, 5, 6])
    assert [mark.width / cell for mark in line.marks] == pytest.approx([2, 1, 1, 1, 2], abs=0.01)
    assert line.marks[1].title == "timeout: 1 of 5 ms each, from 0.010 to 0.015 s"


def test_an_answer_while_two_held_the_vip_is_neithers():
    assert marks(strip.strip(drawn("7 7", (0, ["lb1"]), (5, ["lb1", "lb2"])), TONES)) == [[("who-1", 1), ("both", 1)]]


def test_lines_that_look_alike_are_one_and_no_answer_is_lost():
    series = " ".join(["7"] * 600 + ["t"] * 3 + ["7"] * 197 + ["7"] * 250)
    found = strip.strip(drawn(series, (0, ["lb1"])), TONES)
    assert [line.label for line in found.lines] == ["0 to 3 s", "3 s", "4 s", "5 s"]
    assert marks(found) == [[("who-1", 200)], [("silent", 3), ("who-1", 197)], [("who-1", 200)], [("who-1", 50)]]
    assert [tick.label for tick in found.ticks] == ["0", "+250 ms", "+500 ms", "+750 ms", "+1 s"]


def test_a_lane_shows_when_its_member_held_the_vip_and_when_the_event_was_on_it():
    found = lanes.lanes(
        drawn(" ".join(["7"] * 400), (0, ["lb1"]), (500, ["lb2"]), begin="2026-01-31T12:00:00.480+00:00"), TONES
    )
    axis = scales.Linear(2000.0)
    first, second = found.lanes
    assert [(span.x, span.width) for span in first.held] == [(axis.x(0), axis.x(500) - axis.x(0))]
    assert [(span.x, span.width) for span in second.held] == [(axis.x(500), axis.x(2000) - axis.x(500))]
    assert (first.event.x, second.event) == (axis.x(480), None)
    assert first.event.title == "haproxy killed on lb1, from 0.480 to 0.980 s"


@pytest.mark.parametrize(
    "begin, started_at, at",
    [
        ("2026-01-31T12:00:00.480+00:00", 1769860800.0, 480.0),
        ("2026-01-31T12:00:00.480+00:00", 1769860700.0, 500.0),
        ("2026-01-31T12:00:00.480+00:00", 1769860801.0, 500.0),
        ("", 1769860800.0, 500.0),
        ("2026-01-31T12:00:00.480+00:00", None, 500.0),
    ],
    ids=["both clocks agree", "the probe's is late", "the probe's is early", "unknown", "an old probe"],
)
def test_the_event_is_where_the_clocks_say_or_where_it_first_shows(begin, started_at, at):
    found = drawn(" ".join(["7"] * 400), (0, ["lb1"]), (500, ["lb2"]), begin=begin, started_at=started_at)
    assert found.begin_ms == at


def test_an_event_that_nobody_saw_is_not_drawn():
    found = drawn("7 7", (0, ["lb1"]))
    assert found.begin_ms is None and latency.latency(found, TONES).event is None


@pytest.mark.parametrize("told, at", [("08.000", 8000.0), ("13.000", None)], ids=["as the round says", "too late"])
def test_what_comes_back_is_drawn_at_the_moment_of_its_return(told, at):
    given = result("7 7", (0, ["lb1"]), begin=f"2026-01-31T12:00:{told}+00:00", started_at=1769860800.0)
    given["seen"]["probed_ms"] = 20_000.0
    found = rounds.read({**given, "waits": 7.0, "revert_after": 12.0})
    assert (found.begin_ms, found.end_ms) == (at, at)


def test_the_axis_of_latencies_is_logarithmic_and_failures_stand_above_it():
    found = latency.latency(drawn("10 100 t", (0, ["lb1"])), TONES)
    assert [level.label for level in found.levels] == ["0.1 ms", "1 ms", "10 ms", "100 ms"]
    steps = [round(low.at - high.at, 1) for low, high in zip(found.levels, found.levels[1:])]
    assert max(steps) - min(steps) < 0.2
    assert {dots.tone: dots.answers for dots in found.dots} == {"who-1": 2, "silent": 1}
    rows = {dots.tone: [int(each.split()[1]) for each in dots.path.split("h0")[:-1]] for dots in found.dots}
    assert rows == {"who-1": [round(found.levels[1].at), round(found.levels[2].at)], "silent": [round(found.silent_y)]}


def test_a_slower_answer_makes_the_axis_longer():
    assert [level.label for level in latency.latency(drawn("2500", (0, ["lb1"])), TONES).levels][-1] == "1 s"


def test_answers_at_one_place_are_drawn_once_and_all_counted():
    (dots,) = latency.latency(drawn(" ".join(["7"] * 4000), (0, ["lb1"])), TONES).dots
    assert dots.answers == 4000 and dots.path.count("M") <= scales.RIGHT - scales.LEFT + 1


ROW = {"outage_ms": 15.0, "worst_ms": 20.0, "limit_ms": 72, "budget_ms": 0}


def test_the_forecast_is_under_the_measured_bar_and_all_are_on_one_scale():
    found = bars.bars({**ROW, "budget_ms": 50.0}, {"drills": 20, "before": {"median_ms": 10.0, "worst_ms": 36.0}})
    assert [each.name for each in found.bars] == ["measured", "forecast", "budget", "last 20 drills"]
    assert [each.y for each in found.bars] == sorted(each.y for each in found.bars)
    unit = found.bars[1].width / 72
    assert [each.width / unit for each in found.bars] == pytest.approx([15, 72, 50, 10], abs=0.01)
    assert [(each.to - found.left) / unit for each in found.bars] == pytest.approx([20, 72, 50, 36], abs=0.01)
    assert [each.figure for each in found.bars] == [
        "15 ms, worst 20 ms",
        "at most 72 ms",
        "at most 50 ms",
        "10 ms, worst 36 ms",
    ]


def test_what_is_not_measured_has_no_bar():
    found = bars.bars({**ROW, "outage_ms": None, "worst_ms": None}, None)
    assert [each.name for each in found.bars] == ["forecast"]


def test_nothing_measured_and_nothing_allowed_can_be_drawn():
    found = bars.bars({**ROW, "outage_ms": 0.0, "worst_ms": 0.0, "limit_ms": 0}, None)
    assert [each.width for each in found.bars] == [0, 0]


@pytest.mark.parametrize("end", [3.0, 10, 99.0, 3072.0, 61000.0])
def test_ticks_are_round_and_on_the_axis(end):
    axis = scales.Linear(end)
    ticks = axis.ticks()
    assert 3 <= len(ticks) <= 6 and ticks[0] == 0 and ticks[-1] <= end
    assert axis.x(0) == scales.LEFT and axis.x(end) == axis.x(end * 2) == scales.RIGHT


def test_each_holder_has_its_tone_in_the_order_of_the_members_and_many_share_the_last():
    first = result("7", (0, ["lb2"]))
    other = result("7", (0, ["lb1"]), (1, ["02:00:00:00:00:99"]))
    assert rounds.tones([first, other]) == {"lb1": "who-1", "lb2": "who-2", "02:00:00:00:00:99": "who-3"}
    many = result("7", *((at, [f"node{at}"]) for at in range(8)))
    assert list(rounds.tones([many]).values())[5:] == ["who-6", "unknown", "unknown"]
