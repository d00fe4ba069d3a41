# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who takes over what is offered, on a simulated link."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import offers, packet, tracking
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.machine import (
    SECOND,
    TrackerUpdate,
    VirtualRouter,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import simulator
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import answers
from hypothesis import given, settings
from hypothesis import strategies as st

PRIORITIES = {
    "pair": (254, 253),
    "three": (254, 253, 228),
    "low": (100, 98),
    "seven": (254, 253, 228, 203, 178, 153, 128),
}


def simulation(priorities, version=2, interval=SECOND, preempt=True):
    """Return members whose balancers answer, and of which the first holds the address."""
    made = []
    for at, priority in enumerate(priorities):
        source = f"192.0.2.{at + 1}"
        router = VirtualRouter(version, priority, interval, source, preempt, tracked=frozenset([answers.NAME]))
        message = packet.Advertisement(version, 51, priority, interval, ("192.0.2.10",))
        made.append(simulator.Instance(f"lb{at + 1}", "vip", router, message))
    found = simulator.Simulation(made)
    for at in range(len(made)):
        found.start(made[at].member)
        answer(found, at, True)
        if not at:
            found.run(10 * interval)
    found.run(found.now + 20 * interval)
    assert found.active() == [0]
    return found


def answer(found, at, answers_):
    weight = answers.weight([each.router.priority for each in found.instances], False)
    found.inject(at, TrackerUpdate(answers.NAME, tracking.file(weight, int(not answers_))))


def offered(found, at=0, times=offers.FIRST):
    """Offer what a member holds as often as it does at first; return who was Active at the end of each second."""
    start, seen = found.now, []
    for moment in [*offers.moments(found.instances[at].router.interval)][:times]:
        found.call_at(start + moment, lambda sim: sim.offer(at))
    for second in range(1, times + 3):
        found.run(start + second * SECOND)
        seen.append(found.active())
    return seen


# Each of these is played with every kind of timer besides, so a fifth of the examples is as many as elsewhere.
MOMENTS = settings(max_examples=max(4, settings().max_examples // 5))


@pytest.mark.parametrize("preempt", [True, False])
@pytest.mark.parametrize("version, interval", [(2, SECOND), (3, SECOND), (3, SECOND // 10)])
@pytest.mark.parametrize("name", PRIORITIES)
@MOMENTS
@given(phase=st.floats(0, 1, exclude_max=True))
def test_the_best_member_that_answers_takes_over(name, version, interval, preempt, phase):
    found = simulation(PRIORITIES[name], version, interval, preempt)
    found.run(found.now + int(phase * interval))
    begin = found.now
    answer(found, 0, False)
    assert offered(found)[-1] == [1]
    assert all(moment.holding for moment in found.history if moment.at > begin)  # it was never without a holder


# In version 2 Skew_Time is a second, whatever the interval.
@pytest.mark.parametrize("version, interval", [(2, SECOND), (2, 3 * SECOND), (3, SECOND), (3, SECOND // 10)])
@pytest.mark.parametrize("name", PRIORITIES)
@MOMENTS
@given(phase=st.floats(0, 1, exclude_max=True))
def test_where_none_answers_it_stays(name, version, interval, phase):
    found = simulation(PRIORITIES[name], version, interval)
    found.run(found.now + int(phase * interval))
    for at in range(len(found.instances)):
        answer(found, at, False)
    found.run(found.now + 10 * interval)
    assert {tuple(each) for each in offered(found)} == {(0,)}
    assert {moment.holding for moment in found.history} <= {frozenset(), frozenset([0])}  # not for a moment, either


@pytest.mark.parametrize("preempt", [True, False])
@pytest.mark.parametrize("version, interval", [(2, SECOND), (2, 3 * SECOND), (3, SECOND), (3, SECOND // 10)])
@pytest.mark.parametrize("name", PRIORITIES)
@MOMENTS
@given(phases=st.lists(st.floats(0, 1, exclude_max=True), min_size=7, max_size=7))
def test_where_the_members_stop_answering_one_after_the_other_the_last_one_keeps_it(
    name, version, interval, preempt, phases
):
    found = simulation(PRIORITIES[name], version, interval, preempt)
    last = len(found.instances) - 1
    for at, phase in zip(range(last), phases):
        answer(found, at, False)
        assert offered(found, at)[-1] == [at + 1]
        found.run(found.now + int(phase * interval))
    begin = found.now
    answer(found, last, False)
    offered(found, last)
    found.run(found.now + 20 * interval)
    assert found.active() == [last] and all(moment.at <= begin for moment in found.history)


@given(st.lists(st.integers(1, 254), min_size=2, max_size=8, unique=True), st.booleans())
def test_members_that_do_not_answer_have_the_same_priority_and_any_that_answers_has_more(priorities, preempt):
    weight = answers.weight(priorities, preempt)
    if not weight:  # a FAULT, because there is no room
        distance, room = max(priorities) - min(priorities), min(priorities) - 1
        assert distance >= room and not (preempt and room)
        return
    assert tracking.file(weight, 1) is not tracking.FAULT
    assert {tracking.effective(each, {"silent": weight}) for each in priorities} == {tracking.LOWEST}
    assert min(priorities) > tracking.LOWEST


def test_an_offer_is_due_three_times_in_a_row_and_then_every_fourth_time():
    assert [number for number in range(20) if offers.is_due(number)] == [1, 2, 3, 4, 8, 12, 16]
