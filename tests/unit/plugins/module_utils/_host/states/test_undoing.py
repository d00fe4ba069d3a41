# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a router that was stopped may start again."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import undoing
from support.states import INSTANCE

HEARD = {
    "vrid": 51,
    "version": 2,
    "addresses": ["192.0.2.10"],
    "interval": 1.0,
    "auth_pass": "secret",
    "source": "192.0.2.12",
}
NOBODY = undoing.Seen([], {"192.0.2.10": []})


@pytest.mark.parametrize(
    "role, booted, waits",
    [
        ("alone", False, False),
        ("alone", True, False),
        ("first", False, False),
        ("first", True, True),
        ("other", False, True),
    ],
)
def test_a_router_waits_unless_it_is_the_first_or_nothing_changes_on_the_link(role, booted, waits):
    assert undoing.waits(role, booted) is waits


def test_the_first_comes_after_the_others_have_stopped():
    assert undoing.delay("first", 40, 5) >= undoing.delay("other", 40, 5) + 5


@pytest.mark.parametrize("after", [1, 40, 155, 600])
@pytest.mark.parametrize("interval", [1, 2, 10, 40])
def test_however_a_heartbeat_comes_the_first_returns_between_the_others_stop_and_their_start(after, interval):
    """The first one gets it at 0, the others at once, or as late as they accept it. A look lasts 1.5 intervals."""
    settle = 4 * interval + 1
    latest = next(at for at in range(10000) if not undoing.is_in_time("other", after, settle, at / 10)) / 10
    first = undoing.delay("first", after, settle)
    for got in (0, latest):
        looks = got + undoing.delay("other", after, settle)
        assert looks + 1.5 * interval + 2 < first < looks + undoing.first_is_over(after, settle)


def test_all_have_returned_once_the_others_may_trust_the_first_and_have_taken_their_step():
    assert [undoing.returned_within(role, 40, 5) for role in undoing.ROLES] == [48, 63, 63]


def test_a_heartbeat_that_was_not_announced_is_none():
    assert [undoing.is_in_time(role, 40, 5, None) for role in undoing.ROLES] == [True, True, False]


def test_it_trusts_a_router_with_the_same_settings_when_no_run_can_change_it_any_more():
    patience = undoing.Patience([INSTANCE], 5, trusts_from=15)
    seen = undoing.Seen([HEARD], {"192.0.2.10": ["aa:bb"]})
    assert patience.hindrance(seen, 14) == "a run may still change the settings of the first member"
    assert patience.hindrance(seen, 15) == ""


def test_it_starts_beside_a_router_with_the_same_settings():
    assert undoing.Patience([INSTANCE], 5).hindrance(undoing.Seen([HEARD], {"192.0.2.10": ["aa:bb"]}), 0) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"auth_pass": "other"},
        {"vrid": 52},
        {"version": 3},
        {"interval": 2.0},
        {"addresses": ["192.0.2.10", "192.0.2.11"]},
    ],
)
def test_it_does_not_start_beside_one_with_other_settings_however_long(changes):
    patience, seen = undoing.Patience([INSTANCE], 5), undoing.Seen([{**HEARD, **changes}], {"192.0.2.10": ["aa:bb"]})
    said = {patience.hindrance(seen, now) for now in range(1000)}
    assert said == {"192.0.2.10 is held with other settings, by 192.0.2.12"}


def test_it_does_not_start_while_another_host_answers_for_its_vip():
    patience = undoing.Patience([INSTANCE], 5)
    assert "by aa:bb" in patience.hindrance(undoing.Seen([], {"192.0.2.10": ["aa:bb"]}), 100)


def test_it_starts_once_the_vips_were_free_for_twice_as_long_as_a_router_waits():
    patience = undoing.Patience([INSTANCE], 5)
    assert [bool(patience.hindrance(NOBODY, now)) for now in (0, 5, 9.9, 10)] == [True, True, True, False]


@pytest.mark.parametrize("heard", [[], [HEARD]], ids=["other settings", "the same settings"])
def test_a_holder_in_between_lets_it_wait_anew(heard):
    """One with the same settings may have got others since, and may be about to advertise them."""
    patience = undoing.Patience([INSTANCE], 5, trusts_from=100)
    patience.hindrance(NOBODY, 0)
    patience.hindrance(undoing.Seen(heard, {"192.0.2.10": ["aa:bb"]}), 5)
    assert patience.hindrance(NOBODY, 10) and not patience.hindrance(NOBODY, 20)


def test_each_vip_must_have_been_free_for_itself():
    other = {**INSTANCE, "vrid": 52, "addresses": ["192.0.2.11"]}
    patience = undoing.Patience([INSTANCE, other], 5, trusts_from=100)
    looks = [(0, [HEARD]), (9, [HEARD]), (10, []), (19, []), (20, [])]
    assert [bool(patience.hindrance(undoing.Seen(heard, {}), now)) for now, heard in looks] == [True] * 4 + [False]


def test_one_vip_with_the_same_settings_does_not_make_up_for_another():
    other = {**INSTANCE, "vrid": 52, "addresses": ["192.0.2.11"]}
    seen = undoing.Seen([HEARD], {"192.0.2.10": ["aa:bb"], "192.0.2.11": ["aa:bb"]})
    assert (
        undoing.Patience([INSTANCE, other], 5).hindrance(seen, 0) == "192.0.2.11 is held with other settings, by aa:bb"
    )


def test_vips_are_looked_for_on_their_own_link_and_routers_on_that_of_vrrp():
    apart = {**INSTANCE, "interface": "eth1", "addresses": ["192.0.2.10/32 dev eth0", "198.51.100.10/24"]}
    assert undoing.links([apart]) == {"eth0": ["192.0.2.10"], "eth1": ["198.51.100.10"]}
    assert undoing.interfaces([apart, {**apart, "vrid": 52}]) == ["eth1"]


def test_version_3_has_no_password_and_learns_the_interval():
    third = {**INSTANCE, "version": 3}
    assert undoing.agrees({**HEARD, "version": 3, "auth_pass": "", "interval": 7.0}, third)


OTHER = {**INSTANCE, "vrid": 52, "addresses": ["192.0.2.20/24"]}
PRESENT = [{**INSTANCE, "auth_pass": "new"}, {**OTHER, "auth_pass": "new"}]


def advertising(*addresses, source="192.0.2.12", **values):
    return {**HEARD, "addresses": list(addresses), "source": source, **values}


@pytest.mark.parametrize(
    "heard, unserved",
    [
        ([], ["192.0.2.10", "192.0.2.20"]),
        ([advertising("192.0.2.10")], ["192.0.2.20"]),
        ([advertising("192.0.2.10"), advertising("192.0.2.20", source="192.0.2.13", vrid=99)], []),
    ],
)
def test_a_vip_is_served_by_another_one_only_if_that_advertises_it(heard, unserved):
    """An answer to a request for the address is none: it may be this host's own, or a switch's."""
    assert undoing.unserved([INSTANCE, OTHER], undoing.Seen(heard, {"192.0.2.20": ["aa:bb"]})) == unserved


@pytest.mark.parametrize(
    "router, heard",
    [
        (advertising("192.0.2.20"), True),
        (advertising("192.0.2.20", source="192.0.2.13"), False),
        (advertising("198.51.100.1"), False),
    ],
)
def test_the_first_one_is_heard_with_any_vip_of_these_routers_and_nobody_else_is(router, heard):
    seen = undoing.Seen([router], {})
    assert undoing.hears_first(["192.0.2.12", "fe80::12"], [INSTANCE, OTHER], seen) is heard


@pytest.mark.parametrize(
    "seen, waited, reason",
    [
        (undoing.Seen([advertising("192.0.2.20")], {}), 0.0, ""),
        (undoing.Seen([], {}, serves=True), 100.0, "the member that returns first is not heard"),
        (undoing.Seen([advertising("192.0.2.20", source="192.0.2.13")], {}), 100.0, "is not heard"),
        (undoing.Seen([], {"192.0.2.10": ["aa:bb"]}), 100.0, "is not heard"),
        (NOBODY, 4.9, None),
        (NOBODY, 5.0, ""),
    ],
    ids=["first", "itself", "third", "answer", "about to take over", "FAULT"],
)
def test_without_the_first_one_only_a_router_that_serves_nobody_may_stop(seen, waited, reason):
    found = undoing.reason_not_to_stop(["192.0.2.12"], [INSTANCE, OTHER], seen, waited)
    assert reason in found if reason else found == reason


def test_one_that_served_nobody_waits_for_the_time_of_the_first_one_to_be_over():
    """The first one may be in FAULT with the new settings, which may end until it returns."""
    waiting = undoing.Patience([INSTANCE], 5, [{**INSTANCE, "auth_pass": "new"}], 100, 115, served=False)
    assert [bool(waiting.hindrance(NOBODY, at)) for at in (100, 110, 114, 115)] == [True, True, True, False]
    assert waiting.reason_to_stay(NOBODY, 114) == ""


def patience(stopped_at=100.0, stays_from=200.0):
    return undoing.Patience([INSTANCE, OTHER], 5, PRESENT, stopped_at, 115.0, stays_from)


def test_a_router_whose_vip_nobody_takes_goes_on_with_its_present_settings():
    waiting, taken = patience(), undoing.Seen([advertising("192.0.2.10", auth_pass="new")], {})
    assert [waiting.reason_to_stay(taken, at) for at in (101, 104.9)] == ["", ""]
    assert waiting.reason_to_stay(taken, 105) == "nobody has taken 192.0.2.20"


def test_a_vip_that_was_taken_once_is_taken():
    waiting, taken = patience(), undoing.Seen([], {"192.0.2.10": ["aa:bb"], "192.0.2.20": ["aa:bb"]})
    waiting.reason_to_stay(taken, 101)
    assert waiting.reason_to_stay(NOBODY, 150) == "" and waiting.untaken(NOBODY) == []


def test_a_router_that_this_return_has_not_stopped_owes_its_vips_to_nobody():
    assert patience(stopped_at=None).reason_to_stay(NOBODY, 150) == ""


def test_it_goes_on_beside_one_with_its_present_settings_once_that_keeps_them():
    waiting = patience(stopped_at=None)
    seen = undoing.Seen([advertising("192.0.2.10", auth_pass="new")], {})
    assert [bool(waiting.reason_to_stay(seen, at)) for at in (199, 200)] == [False, True]


def test_it_never_goes_on_beside_one_that_its_present_settings_disagree_with():
    """Although nobody has taken the other VIP: two that disagree would both hold the first."""
    waiting, old = patience(), undoing.Seen([advertising("192.0.2.10")], {})
    assert [waiting.reason_to_stay(old, at) for at in (105, 150, 1000)] == ["", "", ""]
