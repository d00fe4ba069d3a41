# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the quick scope judge order and never durations: the rule, and what it finds in them."""

from __future__ import annotations

import pytest
from support.durations import find
from support.paths import ROOT

TESTS = ROOT / "tests"
# In these, records of a real network have times.
WITH_NAMES = ("netns",)
FOLDERS = ("unit", *WITH_NAMES)
BOUNDS = {
    "a clock": "assert time.monotonic() - began < 2",
    "the other way round": "assert 2 > time.monotonic() - began",
    "between two": "assert 0.4 < time.monotonic() - began < 2",
    "a constant": "assert time.perf_counter() - began <= WITHIN",
    "an expected value": "assert time.time() - began < expected",
    "a variable": "took = time.monotonic() - began\n    assert took < 2",
    "one value of a list": "took = [time.monotonic() - began]\n    assert max(took) < 2",
    "about": "took = time.monotonic() - began\n    assert took == pytest.approx(2)",
    "an outcome's duration": "assert 0 < outcome.duration < SECOND",
    "negated": "assert not time.monotonic() - began < 2 or began",
}
ORDERS = {
    "a lower bound": "assert time.monotonic() - began > 2",
    "the one limit": "assert time.monotonic() - began < LIMIT_S",
    "two moments": "other = time.monotonic()\n    assert began < other",
    "no time": "assert len(log) < 40",
    "a set": "assert {time.monotonic()} <= {1, 2}",
}
NAMED = {
    "a figure of a record": "assert report['outage_ms'] <= 60",
    "an attribute": "assert outcome.outage_ms <= line.limit",
    "a forecast": "assert (moved - began) * 1000 < line['outage_ms']",
    "a moment after another": "assert second.at - first.at < 0.3",
    "an instant's delay": "assert max(gaps(sent)) < INTERVAL",
}
NAMED_ORDERS = {
    "one moment before another": "assert first.at < second.at",
    "a lower bound": "assert report['outage_ms'] > 60",
    "two figures of one record": "assert report['outage_ms'] < report['response_gap_ms']",
    "never": "assert report['two_holders_ms'] == 0",
    "what the test measured": "longest = time.monotonic() - began\n    assert report['outage_ms'] < longest * 1000",
}


def source(body):
    return f"def test_it(began):\n    {body}\n"


@pytest.mark.parametrize("body", BOUNDS.values(), ids=BOUNDS)
def test_an_upper_bound_is_found(body):
    assert [found.line for found in find(source(body))] == [source(body).count("\n")]


@pytest.mark.parametrize("body", ORDERS.values(), ids=ORDERS)
def test_an_order_is_not(body):
    assert find(source(body)) == []


@pytest.mark.parametrize("body", NAMED.values(), ids=NAMED)
def test_records_of_a_network_are_known_by_their_names(body):
    assert len(find(source(body), names=True)) == 1


@pytest.mark.parametrize("body", NAMED_ORDERS.values(), ids=NAMED_ORDERS)
def test_their_order_may_be_judged(body):
    assert find(source(body), names=True) == []


def test_a_function_that_returns_a_duration_is_followed():
    assert find("def lasted():\n    return time.monotonic() - BEGAN\n\ndef test_it():\n    assert lasted() < 2\n")


@pytest.mark.parametrize("call", ["time.sleep(0.3)", "time.sleep(PAUSE)"])
def test_a_sleep_is_found(call):
    assert [found.what for found in find(source(call))] == [f"a sleep: {call}"]


def test_a_loop_that_stops_after_a_while_is_a_sleep():
    assert [found.what for found in find(source("loop.after(500, loop.stop)"))]
    assert find(source("loop.after(LIMIT, loop.stop)\n    loop.after(0, loop.stop)")) == []


@pytest.mark.parametrize(
    "call",
    ["process.wait(5)", "thread.join(timeout=1)", "until(lambda: done, limit=10)", "subprocess.run([], timeout=20)"],
)
def test_a_time_out_that_a_slow_machine_reaches_is_found(call):
    assert len(find(source(call))) == 1


@pytest.mark.parametrize("call", ["process.wait(LIMIT_S)", "', '.join(words)", "thread.join()", "until(lambda: done)"])
def test_a_generous_one_is_not(call):
    assert find(source(call)) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_test_of_the_quick_scope_depends_on_durations(folder):
    found = {
        f"{file.relative_to(ROOT)}:{each.line}": each.what
        for file in sorted((TESTS / folder).rglob("*.py"))
        for each in find(file.read_text(), names=folder in WITH_NAMES)
    }
    assert found == {}
