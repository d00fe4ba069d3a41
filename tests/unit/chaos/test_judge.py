# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A round is judged by what the forecast allows, and a lost question by what happened meanwhile."""

from __future__ import annotations

import pytest
from chaos import judge
from chaos.load import Answer
from chaos.plays import ORDER, PASSWORD, SERVERS, Fault, Round
from support.netns.recorder import View

VIP = "192.0.2.10"
LINE = {"event": "host_cut", "vip": VIP, "outage_ms": 300, "back_ms": 60, "two_holders_ms": 100}
CUT = Round(1, (Fault("host_cut", "lb1", 0.1, 1),))


def on(name, *others, **changes):
    return View(announcer=name, held=frozenset({name, *others}), **changes)


def answer(begin, end, fault="refused"):
    return Answer(VIP, begin, end, fault)


def judged(turn, views, *answers):
    return judge.faults(turn, VIP, [LINE], views, (100.0, 110.0), list(answers))


@pytest.mark.parametrize("unserved_ms, faults", [(359, 0), (361, 1)])
def test_the_vip_may_be_unserved_for_as_long_as_the_forecast_says(unserved_ms, faults):
    dead = on("lb1", cut=frozenset({"lb1"}))
    found = judged(CUT, [(0.0, on("lb1")), (101.0, dead), (101 + unserved_ms / 1000, on("lb2"))])
    assert len(found) == faults
    if faults:
        assert found == [f"{VIP} was not served for 361 ms, 360 ms are forecast"]


def test_periods_add_up():
    dead = on("lb1", dead=frozenset({"lb1"}))
    views = [(0.0, on("lb1")), (101.0, dead), (101.2, on("lb2")), (102.0, dead), (102.2, on("lb1"))]
    assert judged(CUT, views) == [f"{VIP} was not served for 400 ms, 360 ms are forecast"]


@pytest.mark.parametrize("ms, faults", [(159, 0), (161, 1)])
def test_two_may_hold_it_for_as_long_as_the_forecast_says(ms, faults):
    found = judged(CUT, [(0.0, on("lb1")), (101.0, on("lb1", "lb2")), (101 + ms / 1000, on("lb1"))])
    assert len(found) == faults
    if faults:
        assert found == [f"{VIP} had two holders for 161 ms, 160 ms are forecast"]


@pytest.mark.parametrize("turn", [Round(1, (Fault("haproxy_reloaded", "lb1", 0.1),)), Round(1, change=SERVERS)])
def test_nobody_may_notice_a_reload(turn):
    dead = on("lb1", dead=frozenset({"lb1"}))
    assert judged(turn, [(0.0, on("lb1"))]) == []
    assert judged(turn, [(0.0, on("lb1")), (101.0, dead), (101.001, on("lb1"))]) != []


@pytest.mark.parametrize("ms, faults", [(140, 0), (150, 1)])
def test_a_vip_may_go_from_member_to_member_until_the_sole_router_has_it(ms, faults):
    dead = on("lb1", dead=frozenset({"lb1"}))
    views = [(0.0, on("lb2")), (101.0, dead), (101 + ms / 1000, on("lb1"))]
    assert len(judge.faults(Round(1, change=PASSWORD), VIP, [LINE], views, (100.0, 110.0), [], 85)) == faults


def test_a_new_order_moves_the_vip_at_once():
    assert judged(Round(1, change=ORDER), [(0.0, on("lb1")), (101.0, on("lb1", "lb2")), (101.05, on("lb2"))]) == []
    assert judged(Round(1, change=ORDER), [(0.0, on("lb1")), (101.0, on("lb1", "lb2")), (101.07, on("lb2"))]) != []


@pytest.mark.parametrize(
    "begin, end, lost",
    [
        (100.5, 100.6, True),  # long before the VIP moved
        (100.9, 101.1, False),  # while it moved
        (101.15, 101.2, False),  # while nobody served it
        (101.4, 101.5, True),  # long after
    ],
)
def test_a_question_is_lost_only_if_the_vip_was_served_where_it_was(begin, end, lost):
    dead = on("lb1", cut=frozenset({"lb1"}))
    views = [(0.0, on("lb1")), (101.0, dead), (101.3, on("lb2"))]
    found = judged(CUT, views, answer(begin, end))
    assert bool(found) == lost
    if lost:
        assert found == [f"lost: {begin:.3f} {VIP}: refused after 100 ms"]


def test_an_answered_question_is_not_lost():
    assert judged(CUT, [(0.0, on("lb1"))], answer(100.5, 100.6, "")) == []
