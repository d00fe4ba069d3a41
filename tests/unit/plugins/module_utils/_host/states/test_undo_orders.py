# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is interrupted at each of its steps, and the members return by themselves: never do two hold the VIP.

The order of the steps is that of `roles/layout/tasks`: arm, announce, postpone, stop the routers of the others, change
the first one, change and start the others, announce, postpone, verify, confirm.
"""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from support.undos import VIPS, World

CHANGES = {
    "password": {"password": "new"},
    "VRIDs": {"vrids": (77, 78)},
    "VRID of one VIP": {"vrids": (51, 78)},
    "version": {"version": 3},
    "interval": {"interval": 2},
}
NAMES = ("lb1", "lb2", "lb3")
STEP_S = 1.0
HANDOVER_S = 0.001  # an Advertisement travels that long at most
BACK_S = 60.0
AS_PREFERRED = {vip: {name} for vip, name in zip(VIPS, NAMES)}


def steps(world):
    """Yield the steps of a run, each a function that returns False where the run fails."""
    others, first = NAMES[1:], NAMES[0]
    for name in NAMES:
        yield f"arm {name}", lambda name=name: world.arm(name)
    yield from signs_of_life(world, first, others)
    for name in others:
        yield f"stop {name}", lambda name=name: world.stop(name)
    yield f"change {first}", lambda: world.write(first) and world.load(first)
    for name in others:
        yield f"change {name}", lambda name=name: world.write(name) and world.load(name)
    yield from signs_of_life(world, first, others)
    yield "verify", lambda: world.wait(5)
    for name in (first, *others):
        yield f"confirm {name}", lambda name=name: world.confirm(name)


def signs_of_life(world, first, others):
    """Yield the steps of a sign of life: the others hear of it before the first one gets it, and get it after that."""
    for name in others:
        yield f"announce {name}", lambda name=name: world.announce(name)
    for name in (first, *others):
        yield f"postpone {name}", lambda name=name: world.postpone(name)
    yield "give another one", lambda: repeat_where_late(world, first, others)


def repeat_where_late(world, first, others):
    """Give signs of life until none takes too long; return False once a member has begun to return."""
    while world.late():
        for _name, step in list(signs_of_life(world, first, others))[:-1]:
            world.wait(STEP_S)
            if step() is False:
                return False
    return True


COUNT = len(list(steps(None)))


def play(world, until=COUNT, pause_at=None, pause=0.0):
    """Run the steps; return whether the run succeeded. A living controller abandons a run that fails."""
    for at, (_name, step) in enumerate(steps(world)):
        if at == until:
            return False
        world.wait(pause if at == pause_at else STEP_S)
        if step() is False:
            world.abandon()
            return False
    return True


def each_has_one_holder(world):
    return all(len(members) == 1 for members in world.holders().values())


@pytest.fixture(params=itertools.product(CHANGES, engines.UNITS), ids="-".join)
def world(request):
    change, engine = request.param
    return World(CHANGES[change], engine=engine)


def test_a_run_that_nobody_interrupts_ends_with_the_new_settings(world):
    assert play(world)
    world.wait(120)
    assert set(world.runs().values()) == {"new"} and world.holders() == AS_PREFERRED
    assert world.two_held() < HANDOVER_S


@pytest.mark.parametrize("until", range(COUNT))
def test_a_controller_that_dies_at_any_step_leaves_members_that_return_within_a_minute(world, until):
    play(world, until)
    world.wait(BACK_S)
    confirmed = any(member.confirmed for member in world.members.values())
    assert world.two_held() < HANDOVER_S
    if confirmed:  # those that were not told stay stopped, until the next run
        assert each_has_one_holder(world)
        assert {*world.runs().values()} <= {"new", ""} and world.runs()["lb1"] == "new"
        return
    assert world.holders() == AS_PREFERRED
    if until:
        assert world.runs() == dict.fromkeys(NAMES, "old")


@pytest.mark.parametrize("lost", NAMES)
@pytest.mark.parametrize("until", range(COUNT - 3))
def test_a_host_that_is_lost_with_the_controller_does_not_split_the_others_when_it_boots(world, until, lost):
    play(world, until)
    world.crash(lost)
    world.wait(2 * BACK_S)
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert world.runs() == dict.fromkeys(NAMES, "old")


@pytest.mark.parametrize("lost", NAMES)
@pytest.mark.parametrize("until", range(COUNT - 3))
def test_without_a_host_that_does_not_come_back_the_others_serve(world, until, lost):
    play(world, until)
    world.crash(lost, boots=False)
    world.wait(BACK_S + 15)  # the VIPs must be free for twice as long as any router waits
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert {which for name, which in world.runs().items() if name != lost} == {"old"}


@pytest.mark.parametrize("pause", [39.0, 45.0, 49.0, 53.0, 70.0])
@pytest.mark.parametrize("at", range(COUNT))
def test_a_controller_that_lives_but_is_too_slow_splits_nothing(world, at, pause):
    play(world, pause_at=at, pause=pause)
    world.wait(2 * BACK_S)
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
    assert len({which for which in world.runs().values() if which}) == 1


@pytest.mark.parametrize("pause", [6.0, 11.0, 20.0])
@pytest.mark.parametrize("at", range(COUNT))
def test_a_slow_step_does_not_end_a_run_within_the_time_of_the_members(world, at, pause):
    assert play(world, pause_at=at, pause=pause)
    world.wait(2 * BACK_S)
    assert set(world.runs().values()) == {"new"} and world.holders() == AS_PREFERRED
    assert world.two_held() < HANDOVER_S


@pytest.mark.parametrize("pause", [11.0, 25.0, 36.0])
@pytest.mark.parametrize("at", range(COUNT))
def test_a_controller_that_dies_after_a_slow_step_splits_nothing(world, at, pause):
    play(world, until=at + 1, pause_at=at, pause=pause)
    world.wait(3 * BACK_S)
    assert world.two_held() < HANDOVER_S
    assert each_has_one_holder(world)
