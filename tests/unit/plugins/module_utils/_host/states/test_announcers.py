# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is interrupted at each of its steps, and members that announce return: the last one that serves goes on.

The steps are those of `roles/layout/tasks`. Each test plays many orders.
"""

from __future__ import annotations

import pytest
from support.announcers import CHANGES, CONNECTS_S, World
from support.orders import in_each_order
from support.states import announcing
from support.undos import AFTER_S

NAMES = ("lb1", "lb2", "lb3")
OTHERS, FIRST = NAMES[:-1], NAMES[-1]
STEP_S = 1.0
BACK_S = 2.5 * AFTER_S
OLD, NEW, OTHER_CHECK = "one", "two", "/run/other.down"
EVERYWHERE = "*"


def heartbeat(world):
    """Yield the steps of a heartbeat, until all others accept it."""
    while True:
        for name in OTHERS:
            yield lambda name=name: world.announce(name)
        for name in (FIRST, *OTHERS):
            yield lambda name=name: world.postpone(name)
        if not world.late():
            return


def steps(world):
    """Yield the steps of a run, each a function that returns False where the run fails."""
    for name in NAMES:
        yield lambda name=name: world.save(name)
    yield from heartbeat(world)
    for name in NAMES:
        yield lambda name=name: world.change(name)
        yield from heartbeat(world)
        yield lambda name=name: world.proved(name)
        yield from heartbeat(world)
    for name in (FIRST, *OTHERS):
        yield lambda name=name: world.confirm(name)


COUNT = len(list(steps(World())))
STEPS, BEFORE_CONFIRMED = range(COUNT), range(COUNT - len(NAMES))
CHANGED = COUNT - len(NAMES)  # all of them have the new settings


def play(world, until=None, pause_at=None, pause=0.0):
    """Run the steps; return whether the run succeeded. A living controller abandons a run that fails."""
    for at, step in enumerate(steps(world)):
        if at == until:
            return False
        world.passes(pause if at == pause_at else STEP_S)
        if step() is False:
            world.abandon()
            return False
    return True


def given_up(world):
    """Return which members served until they returned, and when they ceased."""
    pairs = zip(world.history, world.history[1:])
    return [(at, who) for (_at, before, _who), (at, after, who) in pairs if before - after and "the return" in who]


def taken_away(world):
    """Return the same of the last one that served."""
    return [each for each in given_up(world) if each in gaps(world)]


def gaps(world):
    """Return when nobody served, from the beginning on."""
    return [(at, who) for at, serving, who in world.history if not serving]


def as_before(world, name):
    member = world.members[name]
    return member.runs.files == member.then.files


@in_each_order(CHANGES)
def test_a_run_that_nobody_interrupts_ends_with_the_new_settings(change):
    world = World(change)
    assert play(world)
    world.passes(BACK_S)
    assert all(member.runs.files == CHANGES[change].files for member in world.members.values())
    assert gaps(world) == [] and world.serving() == {*NAMES}


@in_each_order(CHANGES, STEPS)
def test_a_controller_that_dies_at_any_step_leaves_members_that_serve_all_the_time(change, until):
    world = World(change)
    play(world, until)
    world.passes(BACK_S)
    assert gaps(world) == given_up(world) == [] and world.serving() == {*NAMES}
    for name, member in world.members.items():
        assert member.confirmed or as_before(world, name) or member.stays_because or until == 0


@in_each_order(
    ["balancer", "balancer and password"], BEFORE_CONFIRMED, [NAMES[:1], NAMES[1:2], NAMES[2:], [EVERYWHERE]]
)
def test_a_change_that_serves_nobody_is_undone_where_it_was_made(change, until, where):
    world = World(change, broken=[(name, NEW) for name in where])
    play(world, until)
    world.passes(BACK_S)
    assert gaps(world) == given_up(world) == [] and world.serving() == {*NAMES}
    assert all(as_before(world, name) for name in NAMES if {name, EVERYWHERE} & {*where}) or until == 0


@in_each_order(["password", "balancer and password"], BEFORE_CONFIRMED)
def test_a_session_that_no_router_accepts_is_as_it_was(change, until):
    world = World(change, accepted=[OLD])
    play(world, until)
    world.passes(BACK_S)
    assert gaps(world) == given_up(world) == [] and world.serving() == {*NAMES}
    assert all(as_before(world, name) for name in NAMES)


MENDS = {
    "the password": ("password", [], [NEW]),
    "the balancer": ("balancer", [(EVERYWHERE, OLD)], [OLD, NEW]),
    "both": ("balancer and password", [(EVERYWHERE, OLD)], [NEW]),
    "the checks": ("checks", [(EVERYWHERE, "/run/haproxy.down")], [OLD]),
}


@in_each_order(MENDS, BEFORE_CONFIRMED)
def test_a_run_that_mends_what_served_nobody_leaves_whoever_serves_since(mends, until):
    change, broken, accepted = MENDS[mends]
    world = World(change, broken=broken, accepted=accepted)
    assert world.serving() == set()
    play(world, until)
    serve = world.serving()
    world.passes(BACK_S)
    assert taken_away(world) == [] and world.serving() >= serve


@in_each_order(["balancer", "everything"], STEPS, [(EVERYWHERE, OLD), ("lb1", OLD), ("lb3", OLD)])
def test_where_the_settings_of_before_serve_no_longer_those_that_have_others_go_forth_again(change, until, breaks):
    world = World(change)
    play(world, until)
    changed = {name for name in NAMES if not as_before(world, name)}
    world.breaks(*breaks)
    world.passes(6)
    serve = world.serving()
    world.passes(BACK_S)
    assert world.serving() >= serve
    if changed == {*NAMES}:
        assert taken_away(world) == []


@in_each_order(["checks", "everything"], BEFORE_CONFIRMED)
def test_no_member_gives_up_what_it_serves_for_checks_that_succeeded_before_the_run(change, until):
    world = World(change)
    play(world, until)
    changed = {name for name in NAMES if not as_before(world, name)}
    world.breaks(EVERYWHERE, "/run/haproxy.down")
    world.passes(BACK_S)
    assert given_up(world) == [] and world.serving() == changed


def test_the_others_are_there_again_before_the_first_one_tries():
    world = World("balancer")
    play(world, CHANGED)
    world.breaks(EVERYWHERE, OLD)
    world.passes(BACK_S)
    forth = [who for _at, _serving, who in world.history if "forth" in who]
    assert {*forth} == {f"{name} goes forth" for name in NAMES}
    assert min(len(serving) for _at, serving, _who in world.history) == 1 and gaps(world) == []


@in_each_order(CHANGES, BEFORE_CONFIRMED, [("established",), ("on_lo",), ("established", "on_lo")])
def test_what_cannot_be_read_takes_nothing_away(change, until, unknown):
    world = World(change)
    play(world, until)
    world.unknown = {*unknown}
    world.passes(BACK_S)
    assert gaps(world) == given_up(world) == [] and world.serving() == {*NAMES}


@in_each_order(CHANGES, BEFORE_CONFIRMED, [("established",), ("on_lo",)])
def test_members_of_which_nothing_was_known_when_the_run_began_stay_while_they_serve(change, until, unknown):
    world = World(change, unknown=unknown)
    play(world, until)
    world.unknown = set()
    changed = [name for name in NAMES if not as_before(world, name)]
    world.passes(BACK_S)
    assert gaps(world) == given_up(world) == [] and world.serving() == {*NAMES}
    assert not any(as_before(world, name) for name in changed)


@in_each_order(NAMES, BEFORE_CONFIRMED, [(), (EVERYWHERE,)])
def test_one_that_joins_goes_again_only_if_it_serves_nobody(joins, until, broken):
    world = World("balancer", broken=[(name, NEW) for name in broken], joins=joins)
    play(world, until)
    was_there = bool(world.members[joins].runs.files)
    world.passes(BACK_S)
    assert gaps(world) == given_up(world) == []
    assert (joins in world.serving()) is (not as_before(world, joins))
    assert as_before(world, joins) is (bool(broken) or not was_there)


@in_each_order(NAMES, BEFORE_CONFIRMED)
def test_where_the_others_are_broken_the_one_that_joined_goes_on(joins, until):
    """Nobody can tell it that it is the last one."""
    world = World("balancer", joins=joins)
    play(world, until)
    others = [name for name in NAMES if name != joins]
    for name in others:
        for text in (OLD, NEW):
            world.breaks(name, text)
    world.passes(BACK_S)
    assert taken_away(world) == []
    assert world.serving() == ({joins} if world.members[joins].runs.files else set())


@in_each_order(CHANGES, STEPS, [39.0, 45.0, 49.0, 53.0, 70.0])
def test_a_controller_that_lives_but_is_too_slow_takes_nothing_away(change, at, pause):
    world = World(change)
    play(world, pause_at=at, pause=pause)
    world.passes(2 * BACK_S)
    assert gaps(world) == given_up(world) == [] and world.serving() == {*NAMES}


@in_each_order(CHANGES, BEFORE_CONFIRMED, NAMES, [True, False])
def test_a_host_that_is_lost_with_the_controller_takes_no_other_one_along(change, until, lost, boots):
    world = World(change)
    play(world, until)
    world.crash(lost, boots)
    world.passes(BACK_S)
    assert gaps(world) == [] and world.serving() == {*NAMES} - ({lost} if not boots else set())


@pytest.mark.parametrize("change", CHANGES)
def test_a_session_that_begins_anew_needs_a_while(change):
    """Otherwise the tests above would judge nothing."""
    world = World(change)
    world.change("lb1")
    assert ("lb1" in world.serving()) is ("password" not in change and change != "everything")
    world.passes(CONNECTS_S)
    assert world.serving() == {*NAMES} and world.members["lb1"].runs != announcing()
