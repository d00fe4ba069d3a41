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


def test_clients_on_the_members_links_are_asked_for_first():
    said = ["VIP 10.0.1.200 is inside 10.0.1.0/24, where clients look for it by ARP."]
    assert change.asked_first(said, accepted=False) == said
    assert change.asked_first(said, accepted=True) == change.asked_first([], accepted=False) == []
