# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is interrupted at each of its steps, and the members return by themselves: never do two hold the VIP.

The order of the steps is that of `roles/layout/tasks`: arm, announce, postpone, stop the routers of the others, change
the first one, change and start the others, announce, postpone, verify, confirm. Each test plays many orders.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from support import orders
from support.undos import AFTER_S, SECOND, VIPS, World

# With another Virtual Router both engines begin anew, so that their worlds are the same.
CHANGES = {
    "password": ({"password": "new"}, (engines.NATIVE, engines.AGENT)),
    "interval": ({"interval": 2}, (engines.NATIVE, engines.AGENT)),
    "VRIDs": ({"vrids": (77, 78)}, (engines.NATIVE,)),
    "VRID of one VIP": ({"vrids": (51, 78)}, (engines.NATIVE,)),
    "version": ({"version": 3}, (engines.NATIVE,)),
}
NAMES = ("lb1", "lb2", "lb3")
STEP_S = 1.0  # of a fast host
HANDOVER_S = 0.001  # an Advertisement travels that long at most
BACK_S = 63.0  # where `undo_after` is AFTER_S
AS_PREFERRED = {vip: {name} for vip, name in zip(VIPS, NAMES)}


class Case(NamedTuple):
    """What the orders are played with. Pauses and waits are those of AFTER_S, and as many times longer as `after`."""

    change: str
    engine: str
    after: float
    is_slow: bool

    def world(self):
        return World(CHANGES[self.change][0], engine=self.engine, after=self.after, is_slow=self.is_slow)


RUNS = ((AFTER_S, False), (155.0, False), (155.0, True))
CASES = [Case(change, engine, *run) for change, (_new, each) in CHANGES.items() for engine in each for run in RUNS]


def in_each_order(*axes):
    """Make one test of a function that is called with a world of each case and an order."""

    def decorate(judge):
        @functools.wraps(judge)
        def in_a_world(case, *order):
            judge(case.world(), *order)

        return orders.in_each_order(CASES, *axes)(in_a_world)

    return decorate


def steps(world):
    """Yield the steps of a run, each a function that returns False where the run fails."""
    others, first = NAMES[1:], NAMES[0]
    for name in NAMES:
        yield f"arm {name}", lambda name=name: world.arm(name)
    yield from heartbeats(world, first, others)
    for name in others:
        yield f"stop {name}", lambda name=name: world.stop(name)
    yield f"change {first}", lambda: world.write(first) and world.load(first)
    for name in others:
        yield f"change {name}", lambda name=name: world.write(name) and world.load(name)
    yield from heartbeats(world, first, others)
    yield "verify", lambda: world.passes(5) or not world.are_failing
    for name in (first, *others):
        yield f"confirm {name}", lambda name=name: world.confirm(name)


def heartbeats(world, first, others):
    """Yield the steps of a heartbeat, until all others accept it: they hear of it before the first one gets it."""
    is_accepted = False
    while not is_accepted:
        for name in others:
            yield f"announce {name}", lambda name=name: world.announce(name)
        for name in (first, *others):
            yield f"postpone {name}", lambda name=name: world.postpone(name)
        is_accepted = not world.late()


COUNT = len(list(steps(World({}))))  # if no heartbeat takes too long
STEPS, BEFORE_CONFIRMED = range(COUNT), range(COUNT - len(NAMES))
SIGN = range(len(NAMES), len(NAMES) + 2 * len(NAMES) - 1)  # the steps of the first one
BEFORE_CHANGES = range(SIGN.stop)


def play(world, until=None, pause_at=None, pause=0.0, then_s=STEP_S):
    """Run the steps; return whether the run succeeded. A living controller abandons a run that fails.

    :param then_s: how long each step takes after the first heartbeat
    """
    for at, (_name, step) in enumerate(steps(world)):
        if at == until:
            return False
        if at == pause_at:
            wait(world, pause)
        else:
            world.passes(world.pace * (STEP_S if at in BEFORE_CHANGES else then_s))
        if step() is False:
            world.abandon()
            return False
    return True


def wait(world, seconds):
    world.passes(seconds * world.after / AFTER_S)


def ends(world, seconds):
    world.ends(seconds * world.after / AFTER_S)


def each_has_one_holder(world):
    return all(len(members) == 1 for members in world.holders().values())


@in_each_order()
def test_a_run_that_nobody_interrupts_ends_with_the_new_settings(world):
    assert play(world)
    ends(world, 120)
    assert set(world.runs().values()) == {"new"} and world.holders() == AS_PREFERRED
    assert world.two_held() < HANDOVER_S


@in_each_order(STEPS)
def test_a_controller_that_dies_at_any_step_leaves_members_that_return_within_a_minute(world, until):
    play(world, until)
    ends(world, BACK_S)
    confirmed = any(member.confirmed for member in world.members.values())
    assert world.two_held() < HANDOVER_S
    if confirmed:  # those that were not told stay stopped, until the next run
        assert each_has_one_holder(world)
        assert {*world.runs().values()} <= {"new", ""} and world.runs()["lb1"] == "new"
        return
    assert world.holders() == AS_PREFERRED
    if until:
        assert world.runs() == dict.fromkeys(NAMES, "old")


@in_each_order(BEFORE_CONFIRMED, NAMES)
def test_a_host_that_is_lost_with_the_controller_does_not_split_the_others_when_it_boots(world, until, lost):
    play(world, until)
    world.crash(lost)
    ends(world, 2 * BACK_S)
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert len({which for which in world.runs().values() if which}) == 1


@in_each_order(BEFORE_CONFIRMED, NAMES)
def test_without_a_host_that_does_not_come_back_the_others_serve(world, until, lost):
    play(world, until)
    world.crash(lost, boots=False)
    ends(world, BACK_S + 15)  # the VIPs must be free for twice as long as any router waits
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert len({which for name, which in world.runs().items() if which and name != lost}) == 1


@in_each_order(STEPS)
def test_where_the_first_is_gone_no_return_takes_the_vips_from_those_that_serve(world, until):
    play(world, until)
    if not all(world.runs().values()):
        return  # the run itself had stopped them
    world.crash(NAMES[0], boots=False)
    world.passes(15 * world.pace)  # until the others have taken over
    taken = world.sim.now
    ends(world, 2 * BACK_S)
    assert not world.spans(lambda count: count != 1, since=taken)
    assert all(world.runs()[name] for name in NAMES[1:])


@in_each_order(STEPS, [39.0, 45.0, 49.0, 53.0, 70.0])
def test_a_controller_that_lives_but_is_too_slow_splits_nothing(world, at, pause):
    play(world, pause_at=at, pause=pause)
    ends(world, 2 * BACK_S)
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert len({which for which in world.runs().values() if which}) == 1


@in_each_order(STEPS, [6.0, 11.0, 20.0])
def test_a_slow_step_does_not_end_a_run_within_the_time_of_the_members(world, at, pause):
    assert play(world, pause_at=at, pause=pause)
    ends(world, 2 * BACK_S)
    assert set(world.runs().values()) == {"new"} and world.holders() == AS_PREFERRED
    assert world.two_held() < HANDOVER_S


@in_each_order(SIGN, range(1, 2 * len(SIGN)))
def test_a_controller_that_dies_while_it_gives_another_heartbeat_splits_nothing(world, at, later):
    play(world, until=at + later, pause_at=at, pause=6.0)
    ends(world, 2 * BACK_S)
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert world.runs() == dict.fromkeys(NAMES, "old")


@in_each_order([35.5, 36.0, 36.5, 37.0, 37.5], [3.0, 6.0, 9.0, 12.0])
def test_a_slow_run_whose_heartbeat_comes_as_members_begin_to_return_splits_nothing(world, pause, then_s):
    play(world, pause_at=SIGN[0], pause=pause, then_s=then_s)
    ends(world, 3 * BACK_S)
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert len({which for which in world.runs().values() if which}) == 1


@in_each_order(STEPS, [11.0, 25.0, 36.0])
def test_a_controller_that_dies_after_a_slow_step_splits_nothing(world, at, pause):
    play(world, until=at + 1, pause_at=at, pause=pause)
    ends(world, 3 * BACK_S)
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)


@in_each_order(STEPS, [5.0, 20.0, 40.0, 60.0, 80.0, 200.0])
def test_settings_whose_checks_fail_for_a_while_split_nothing_and_the_old_ones_serve_again(world, at, lasts):
    begin = world.sim.now + round(at * STEP_S * world.pace * SECOND)
    world.sim.call_at(begin, lambda _sim: world.checks_fail(lasts * world.after / AFTER_S))
    is_proved = play(world)
    ends(world, BACK_S + (lasts if is_proved else 0))
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert set(world.runs().values()) == ({"new"} if is_proved else {"old"})
