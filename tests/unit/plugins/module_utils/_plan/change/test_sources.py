# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members whose own address has changed since their routers started: nobody is believed to hear what he does not hear.

Found on hosts: the plan took the new address for the one that runs, so the run was harmless, and split the pair.
"""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import play as transition
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import turns
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import running
from support.plans.transitions import VIP, living, to_play, turns_of, without_care
from support.scope import FULL

WAYS = [{"vrrp_version": version, "multicast": way} for version in (2, 3) for way in (False, True)]
UNICAST = [way for way in WAYS if not way["multicast"]]
EVERY = [*itertools.product((2, 3), ("native", "agent"))]
FAULTS = {2: 2, 3: 2} if FULL else {2: 1, 3: 0}  # by the number of members
every_pair = pytest.mark.parametrize("count, engine", EVERY)


def members(count, engine, before, **changes):
    return living(count, engine, before=before, **{**before, **changes})


def row_of(given):
    """The line of the plan about the source."""
    (line,) = [line.split() for line in _pair.plan(given).warnings if line.startswith("  source ")]
    return line


@every_pair
@pytest.mark.parametrize("before", WAYS)
@pytest.mark.parametrize("keeps", [True, False])
def test_no_order_splits_members_of_which_any_has_another_address(count, engine, before, keeps):
    names = [f"lb{number}" for number in range(1, count + 1)]
    for moved in (some for size in range(1, count + 1) for some in itertools.combinations(names, size)):
        for holder in names if FULL else (names[0], names[-1]):
            if keeps or holder not in moved:
                given = members(count, engine, before, moved=moved, keeps_source=keeps, holder=holder)
                assert _pair.plan(given).faults == []
                assert transition.counterexample(to_play(given), FAULTS[count]) == []


@every_pair
@pytest.mark.parametrize("before", UNICAST)
def test_one_whose_router_is_heard_by_nobody_changes_when_all_others_send_to_its_new_address(count, engine, before):
    last = f"lb{count}"
    given = members(count, engine, before, moved=[last])
    plan = _pair.plan(given)
    assert (plan.joining, plan.sole_router, plan.members[last].proof) == ([last], "", None)
    kind = ["at", "most", "0", "ms", "harmless,", "on", last]
    assert row_of(given) == ["source", f"192.0.2.{count}", "->", f"192.0.2.10{count}", *kind]
    (*_play, wrong) = transition.counterexample(without_care(given), 1)
    assert last in wrong and f"{VIP} is held by " in wrong


@every_pair
@pytest.mark.parametrize("before", UNICAST)
def test_a_router_that_still_sends_from_its_old_address_is_no_stranger(count, engine, before):
    """Found on hosts: keepalived did so after its host had lost the address, and the run wanted it in the inventory."""
    last = f"lb{count}"
    given = members(count, engine, before, moved=[last])
    (living_one,) = (one["host"]["instances"] for one in given if one["name"] == last)
    heard = [
        {**each, "family": 4, "auth_type": "simple", "source": f"192.0.2.{count}", "interface": "eth0"}
        for each in living_one
    ]
    given[0]["host"].update(heard=heard)
    assert heard and _pair.plan(given).faults == []


@every_pair
@pytest.mark.parametrize("before", UNICAST)
def test_while_one_changes_that_is_still_heard_one_router_runs_alone(count, engine, before):
    last = f"lb{count}"
    given = members(count, engine, before, moved=[last], keeps_source=True)
    assert (_pair.plan(given).sole_router, _pair.plan(given).joining) == ("lb1", [])
    assert row_of(given)[-6:] == ["splits", "while", "members", "differ,", "on", last]
    (*_play, wrong) = transition.counterexample(without_care(given))
    assert wrong.endswith(f"{VIP} is held by lb1 and {last}.")


@every_pair
@pytest.mark.parametrize("before", [way for way in WAYS if way["multicast"]])
def test_multicast_is_heard_from_any_address(count, engine, before):
    given = members(count, engine, before, moved=["lb2"], keeps_source=True)
    plan = _pair.plan(given)
    assert (plan.sole_router, plan.joining) == ("", []) and "harmless," in row_of(given)
    assert transition.counterexample(without_care(given), FAULTS[count]) == []


@pytest.mark.parametrize("before", WAYS)
def test_on_another_link_nobody_hears_it_whatever_it_sends_by(before):
    given = members(2, "native", before)
    for one in given:
        on_link = {"interface": "eth1", "prefix": 24, "mac": f"02:00:00:00:01:0{one['name'][-1]}"}
        one["host"]["addresses"].append({**on_link, "address": f"192.0.2.10{one['name'][-1]}"})
        one["settings"]["interface"] = "eth1"
    assert _pair.plan(given).sole_router == "lb1"


@pytest.mark.parametrize(
    "instance, source",
    [
        ({}, "192.0.2.1"),
        ({"source": "192.0.2.9"}, "192.0.2.9"),
        ({"interface": "eth9"}, "0.0.0.0"),
        ({"addresses": ["2001:db8::10/128"]}, "fe80::1"),
        ({"addresses": ["2001:db8::10/128"], "interface": "eth9"}, "::"),
    ],
)
def test_the_source_of_a_router_that_runs_is_its_own_or_the_first_of_its_interface(instance, source):
    given = living()
    plan, host = turns_of(given)[1], given[0]["host"]
    link = host["addresses"][1]
    host["addresses"] = [{**link, "address": VIP}, *host["addresses"], {**link, "address": "fe80::1"}]
    host["instances"] = [running(**instance)]
    first, _second = turns.turns(given, plan.members, "", plan.vips)
    assert [each["source"] for each in first.before] == [source]


def test_one_with_another_address_that_limit_leaves_out_is_refused():
    given = living(moved=["lb2"], keeps_source=True)
    given[1]["outside_limit"] = True
    (fault,) = _pair.plan(given).faults
    assert fault.startswith(
        "--limit leaves lb2 out, and 192.0.2.10 would keep the source 192.0.2.2 there instead of 192.0.2.102: "
        "both sides would hold the VIP."
    )


def test_one_that_is_heard_by_nobody_is_not_changed_before_the_others_that_limit_leaves_out():
    given = living(moved=["lb2"])
    given[0]["outside_limit"] = True
    assert _pair.plan(given).faults[-1].endswith("192.0.2.10 is held by lb1 and lb2.")


def test_the_old_address_of_a_member_is_no_former_member():
    given = living(moved=["lb2"])
    assert _pair.plan(given).departed == []
