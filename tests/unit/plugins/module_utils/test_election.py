"""Who wins and after how long: keepalived's arithmetic."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils import _election
from hypothesis import given
from hypothesis import strategies as st


def election(**changes):
    defaults = {
        "vip": "192.0.2.10",
        "order": ["lb1", "lb2"],
        "priorities": [254, 253],
        "version": 2,
        "interval": 1,
        "preempt": True,
        "weight": 0,
        "detection": 0,
    }
    return _election.Election(**{**defaults, **changes})


@pytest.mark.parametrize(
    "priority, weight, healthy, expected",
    [
        (100, 0, False, 100),
        (100, 4, True, 104),
        (100, 4, False, 100),
        (100, -4, True, 100),
        (100, -4, False, 96),
        (254, 4, True, 254),
        (2, -50, False, 1),
        (255, -50, False, 255),
    ],
)
def test_the_effective_priority_is_keepaliveds(priority, weight, healthy, expected):
    assert _election.effective(priority, weight, healthy) == expected


@pytest.mark.parametrize(
    "version, interval, priority, expected",
    [(2, 1, 253, 11.71875), (2, 1, 98, 617.1875), (3, 0.1, 253, 1.171875), (2, 5, 253, 11.71875)],
)
def test_skew_counts_whole_seconds_in_version_2_and_intervals_in_version_3(version, interval, priority, expected):
    assert _election.skew_ms(election(version=version, interval=interval), priority) == pytest.approx(expected)


@given(
    high=st.integers(2, 254),
    apart=st.integers(1, 253),
    weight=st.integers(-253, 253).filter(bool),
)
def test_a_weight_is_accepted_exactly_when_the_failed_holder_loses(high, apart, weight):
    low = max(1, high - apart)
    if low == high:
        return
    found = _election.faults(election(priorities=[high, low], weight=weight))
    healthy = min(254, high + weight) if weight > 0 else high
    failed = high if weight > 0 else max(1, high + weight)
    other = min(254, low + weight) if weight > 0 else low
    assert (not found) == (failed < other < healthy)


def test_fault_tracking_always_moves_the_vip():
    assert _election.faults(election(priorities=[254, 1])) == []


def test_each_event_has_its_own_worst_outage():
    polled = election(detection=2)
    found = {line["event"]: line["outage_ms"] for line in _election.outages(polled)}
    assert found == {
        "haproxy_killed": 2072,
        "haproxy_stopped": 2072,
        "keepalived_stopped": 72,
        "keepalived_killed": 3072,
        "host_cut": 3072,
        "haproxy_reloaded": 0,
    }


def test_a_weighted_check_costs_the_whole_silence_as_well():
    weighted = election(priorities=[100, 98], weight=4, detection=1)
    found = {line["event"]: line["outage_ms"] for line in _election.outages(weighted)}
    assert found["haproxy_killed"] == round(1000 + 3000 + (256 - 102) * 1000 / 256 + 60)
