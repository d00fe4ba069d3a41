# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member that announces its VIPs gives up on the way back, by what it knows of itself."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import serving, undoing
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import order
from support.states import GATE_CONF, R1, R2, RUNS, STOPPED, VIP, VIP6, announcing, frr, gate, native

ON_LO = ["127.0.0.1", VIP]
SERVES = serving.Seen(ON_LO, [R1], frr())
ASKS_MORE = [{"name": "haproxy_down", "type": "file", "file": "/run/other.down"}]


def without(snapshot, *paths):
    return snapshot._replace(files=[each for each in snapshot.files if each.path not in paths])


def damaged(snapshot, path=GATE_CONF):
    return snapshot._replace(
        files=[each._replace(content=b"{") if each.path == path else each for each in snapshot.files]
    )


@pytest.mark.parametrize(
    "seen, vips",
    [
        (SERVES, [VIP]),
        (SERVES._replace(on_lo=None), [VIP]),
        (SERVES._replace(established=None), [VIP]),
        (serving.Seen(), [VIP]),
        (SERVES._replace(on_lo=["127.0.0.1"]), []),
        (SERVES._replace(established=[]), []),
        (serving.Seen(None, []), []),
    ],
)
def test_what_is_not_known_may_serve(seen, vips):
    assert serving.served(announcing(), seen) == vips


def test_of_vips_that_cannot_be_read_it_is_not_known_that_they_are_not_served():
    assert serving.served(damaged(announcing()), SERVES) == ["its VIPs"]
    assert serving.served(without(announcing(), GATE_CONF), SERVES) == ["its VIPs"]
    assert serving.served(damaged(announcing()), SERVES._replace(established=[])) == []


def test_whoever_serves_nobody_returns_wholly_whatever_it_ran_before():
    down = SERVES._replace(on_lo=["127.0.0.1"])
    for then in (announcing(gate=STOPPED), damaged(announcing()), announcing(config=gate(checks=ASKS_MORE)), native()):
        assert serving.reason_to_stay(announcing(), then, down) == ""
    assert serving.reason_of_frr(announcing(), announcing(conf=frr(password="two")), down) == ""


@pytest.mark.parametrize(
    "then",
    [announcing()._replace(served=[]), announcing()._replace(files=[], units={}, served=[])],
    ids=["broken or not known", "nothing"],
)
@pytest.mark.parametrize("seen", [SERVES, serving.Seen()])
def test_whoever_serves_does_not_return_to_what_served_nobody(then, seen):
    assert serving.reason_to_stay(announcing(), then, seen) == serving.NOBODY_BEFORE


def test_whoever_serves_does_not_return_to_what_did_not_serve_one_of_its_vips():
    both = gate([VIP, VIP6])
    seen = SERVES._replace(on_lo=[*ON_LO, VIP6])
    assert serving.reason_to_stay(announcing(config=both), announcing(config=both), seen) == (
        f"it did not serve {VIP6} when the run began"
    )
    assert serving.reason_to_stay(announcing(config=both), announcing(config=both), SERVES) == ""


@pytest.mark.parametrize(
    "seen, vips",
    [
        (SERVES, [VIP]),
        (SERVES._replace(on_lo=None), []),
        (SERVES._replace(established=None), []),
        (SERVES._replace(established=[]), []),
        (SERVES._replace(on_lo=["127.0.0.1"]), []),
    ],
)
def test_a_state_has_the_vips_that_it_served_for_certain(seen, vips):
    assert serving.certain(announcing(), seen) == vips


@pytest.mark.parametrize("damage", [damaged, lambda given: without(given, GATE_CONF)])
def test_a_gate_that_cannot_be_read_goes_on(damage):
    assert serving.reason_to_stay(announcing(), damage(announcing()), SERVES) == (
        f"{GATE_CONF} cannot be read, as it was before"
    )
    assert serving.reason_to_stay(damage(announcing()), announcing(), SERVES) == f"{GATE_CONF} cannot be read, now"


def test_whoever_serves_with_other_checks_stays_because_those_of_before_are_not_known_to_succeed():
    then = announcing(config=gate(checks=ASKS_MORE))
    assert serving.reason_to_stay(announcing(), then, SERVES).startswith(f"it serves {VIP} with other checks")
    assert serving.reason_to_stay(announcing(), announcing(config=gate([VIP6], ASKS_MORE)), SERVES) == ""


def test_a_vip_that_the_run_has_brought_goes_with_it():
    now = announcing(config=gate([VIP, VIP6]))
    seen = SERVES._replace(on_lo=[*ON_LO, VIP6])
    assert serving.reason_to_stay(now, announcing(), seen) == ""
    assert serving.of_both(serving.served(now, seen), announcing()) == [VIP]


@pytest.mark.parametrize(
    "established, then, ends",
    [
        ([R1], frr(password="two"), True),
        ([], frr(password="two"), False),
        ([R1], frr(vips=[VIP6]), False),
        ([R1], frr([R1, R2]), False),
        ([R1], frr([R2]), True),
        ([R1], "!", True),
    ],
    ids=["its password", "no session", "prefixes alone", "a router more", "another router", "nothing"],
)
def test_no_session_ends_that_a_router_has_accepted(established, then, ends):
    reason = serving.reason_of_frr(announcing(), announcing(conf=then), SERVES._replace(established=established))
    assert bool(reason) is ends
    assert not ends or reason == f"the session with {R1} is established, and would end"


def test_a_session_with_another_router_may_begin_anew_if_there_is_none():
    now = announcing(conf=frr([R1, R2]))
    seen = serving.Seen(ON_LO, [R1], frr([R1, R2]))
    assert serving.reason_of_frr(now, announcing(), seen) == ""
    assert R2 in serving.reason_of_frr(now, announcing(), seen._replace(established=[R1, R2]))


def test_an_frr_that_says_nothing_goes_on_unless_its_files_are_as_they_were():
    silent = SERVES._replace(established=None, running="")
    assert serving.reason_of_frr(announcing(), announcing(conf=frr([R1, R2])), silent) == (
        "FRR does not say which sessions it has"
    )
    assert serving.reason_of_frr(announcing(served="two"), announcing(), silent) == ""


def test_no_vip_returns_that_an_frr_which_goes_on_would_not_announce():
    """Then the balancer stays as well: what it served would be on lo, and nowhere else."""
    then = announcing(conf=frr([R2], [VIP, VIP6]), config=gate([VIP, VIP6]))
    assert VIP6 in serving.reason_to_stay(announcing(), then, SERVES)
    assert serving.reason_to_stay(announcing(), announcing(conf=frr([R2])), SERVES) == ""


@pytest.mark.parametrize(
    "seen, vips",
    [
        (SERVES, []),
        (serving.Seen(), []),
        (SERVES._replace(on_lo=["127.0.0.1"]), [VIP]),
        (SERVES._replace(established=[]), [VIP]),
        (SERVES._replace(on_lo=None), []),
    ],
)
def test_what_is_not_known_is_not_lost(seen, vips):
    assert serving.lost([VIP], seen) == vips


@pytest.mark.parametrize(
    "now, then, is_so",
    [
        (announcing(), announcing(), True),
        (announcing(), native(keepalived=STOPPED), True),
        (announcing(keepalived=RUNS), announcing(), False),
        (native(), native(), False),
    ],
)
def test_beside_a_router_of_vrrp_its_rules_count(now, then, is_so):
    assert serving.concerns(now, then) is is_so


def test_frr_that_systemd_does_not_know_is_not_known_to_be_off():
    assert serving.is_without_frr(announcing(frr=STOPPED)) and serving.is_without_frr(native())
    assert not serving.is_without_frr(announcing())
    assert not serving.is_without_frr(announcing()._replace(units={}))


@pytest.mark.parametrize("noticed", [1.0, 2.7, 10.0])
@pytest.mark.parametrize("after", [35.0, 155.0])
def test_the_others_have_returned_or_gone_forth_again_before_the_first_one_begins(noticed, after):
    """A heartbeat may reach the others as late as `undoing.is_in_time` allows."""
    settle = order.settle(noticed)
    latest = undoing.later(after, settle) / 2
    assert serving.proof_s(settle) == pytest.approx(noticed)
    assert undoing.is_in_time(undoing.OTHER, after, settle, latest)
    others = latest + undoing.delay(undoing.OTHER, after, settle) + undoing.RETURN_S + serving.proof_s(settle)
    assert others <= 1e-6 + undoing.delay(undoing.FIRST, after, settle)
