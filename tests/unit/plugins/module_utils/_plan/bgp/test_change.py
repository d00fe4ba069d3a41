"""On the way from VRRP to BGP and back somebody carries the VIPs at every step, and at every step of an undo."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import change

MEMBERS = ["lb2", "lb3", "lb1"]
REACHES = ["bgp", "vrrp"]


class State:
    """Who carries the VIPs by which of the two, and who is quiet about lo."""

    def __init__(self, to):
        self.vrrp, self.bgp = ({*MEMBERS}, set()) if to == "bgp" else (set(), {*MEMBERS})
        self.quiet = set()

    def take(self, step):
        names = {*step.members}
        changes = {
            change.ANNOUNCE: lambda: self.bgp.update(names),
            change.WITHDRAW: lambda: self.bgp.difference_update(names),
            change.START_VRRP: lambda: self.vrrp.update(names),
            change.STOP_VRRP: lambda: self.vrrp.difference_update(names),
            change.QUIET: lambda: self.quiet.update(names),
            change.LOUD: lambda: self.quiet.difference_update(names),
        }
        changes[step.verb]()
        assert self.vrrp or self.bgp, f"nobody carries the VIPs after {step}"
        assert not (self.vrrp and self.bgp) or self.quiet == {*MEMBERS}, f"a Backup answers ARP after {step}"


@pytest.mark.parametrize("to", REACHES)
def test_somebody_carries_the_vips_at_every_step_and_the_other_one_is_gone_at_the_end(to):
    state = State(to)
    for step in change.steps(to, MEMBERS):
        state.take(step)
    assert (bool(state.bgp), bool(state.vrrp), state.quiet) == (to == "bgp", to == "vrrp", set())


@pytest.mark.parametrize("to", REACHES)
@pytest.mark.parametrize("taken", range(9))
def test_and_at_every_step_back_from_wherever_it_ended(to, taken):
    state = State(to)
    done = change.steps(to, MEMBERS)[:taken]
    for step in [*done, *change.undo(done)]:
        state.take(step)
    before = State(to)
    assert (state.vrrp, state.bgp, state.quiet) == (before.vrrp, before.bgp, before.quiet)


@pytest.mark.parametrize("to", REACHES)
def test_nothing_stops_before_all_that_takes_its_place_is_proved(to):
    given = change.steps(to, MEMBERS)
    proved, stopping = (change.ANNOUNCE, change.STOP_VRRP) if to == "bgp" else (change.START_VRRP, change.WITHDRAW)
    first_stop = next(at for at, step in enumerate(given) if step.verb == stopping)
    before = [name for step in given[:first_stop] if step.verb == proved for name in step.members]
    assert sorted(before) == sorted(MEMBERS)
    assert all(bool(step.proof) == (step.verb == proved) for step in given)
    assert [step.members for step in given if step.verb == stopping][-1] == ["lb1"]  # the holder goes last


@pytest.mark.parametrize("answers", [*itertools.product([True, False, None], repeat=2)])
def test_what_is_not_known_proves_nothing(answers):
    step = change.Step(change.START_VRRP, ["lb1", "lb2"])
    assert change.may_go_on(step, dict(zip(step.members, answers))) == (answers == (True, True))
    assert not change.may_go_on(step, {"lb1": True})
    assert change.may_go_on(change.Step(change.STOP_VRRP, ["lb1"]), {})


@pytest.mark.parametrize("came_from", REACHES)
def test_both_is_the_middle_of_the_way_and_everybody_stays_quiet(came_from):
    state = State("bgp" if came_from == "vrrp" else "vrrp")
    for step in change.steps("both", MEMBERS, came_from):
        state.take(step)
    assert (state.vrrp, state.bgp, state.quiet) == ({*MEMBERS}, {*MEMBERS}, {*MEMBERS})


def test_the_holder_announces_first_and_withdraws_last_so_that_routers_go_on_to_send_to_it():
    announcing = [step.members for step in change.steps("bgp", MEMBERS) if step.verb == change.ANNOUNCE]
    withdrawing = [step.members for step in change.steps("vrrp", MEMBERS) if step.verb == change.WITHDRAW]
    assert announcing[0] == withdrawing[-1] == ["lb1"]


def test_each_step_says_who_serves_and_what_it_costs():
    held = {"lb1": ["192.0.2.10"], "lb2": []}
    assert change.told(change.steps("bgp", ["lb2", "lb1"]), held, "vrrp", "bgp") == [
        "From VRRP to BGP. Each step waits until the one before is proved:",
        "  1. lb2, lb1 answer ARP for no address of lo: from routers to VRRP's holder, on the link to VRRP's holder",
        "  2. lb1 announces: from routers to lb1, on the link to VRRP's holder; no lasting connection is lost",
        "  3. lb2 announces: from routers to lb1, lb2, on the link to VRRP's holder; up to 50 % of lasting connections "
        "from routers are lost",
        "  4. lb2 leaves VRRP: from routers to lb1, lb2, on the link to VRRP's holder",
        "  5. lb1 leaves VRRP: from routers to lb1, lb2, on the link to whoever answers first",
        "  6. lb2, lb1 answer ARP as before: from routers to lb1, lb2, on the link to whoever answers first",
    ]
    back = change.told(change.steps("vrrp", ["lb2", "lb1"]), {"lb1": [], "lb2": []}, "bgp", "vrrp")
    assert [line.partition(": ")[2] for line in back[1:]] == [
        "from routers to lb2, lb1, on the link to whoever answers first",
        "from routers to lb2, lb1, on the link to VRRP's holder",
        "from routers to lb1, on the link to VRRP's holder; up to 50 % of lasting connections from routers are lost",
        "from routers to VRRP's holder, on the link to VRRP's holder; no lasting connection is lost",
        "from routers to VRRP's holder, on the link to VRRP's holder",
    ]


def test_vips_of_several_holders_lose_what_lasts_where_one_of_them_announces_first():
    held = {"lb1": ["192.0.2.10"], "lb2": ["192.0.2.11"]}
    (line,) = [each for each in change.told(change.steps("bgp", ["lb2", "lb1"]), held, "vrrp", "bgp") if " 2. " in each]
    assert line.endswith("; lasting connections of 192.0.2.11 are lost")
