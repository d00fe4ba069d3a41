# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several pairs in one run: each is planned, and no two of them share a host, a VIP, or a VRID on one link."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner, several
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.plans.pairs import member, running


def of(*numbers, subnet="192.0.2", **settings):
    """The members of a pair: lb1 has the address 192.0.2.1, and so on."""
    found = []
    for number in numbers:
        each = member(number, **{"vrid": None, **settings})
        for info in each["host"]["addresses"]:
            info["address"] = info["address"].replace("192.0.2", subnet).replace("db8", f"db8:{len(subnet)}")
        found.append({**each, "address": f"{subnet}.{number}", "members": [f"lb{other}" for other in numbers]})
    return found


def drawn(*pairs, draw=planner.plan):
    return several.draw(pair.LAYOUT, [each for members in pairs for each in members], draw)


def vrids(found):
    return [vip.vrid for plan in found.plans for vip in plan.vips]


ONE, OTHER = of(1, 2), of(3, 4, vips=["192.0.2.58"])
FREE = 160  # the next of the pool


def test_each_pair_has_a_plan_of_its_own_under_its_members_names():
    found = drawn(ONE, OTHER)
    assert found.faults == []
    assert [list(plan.members) for plan in found.plans] == [["lb1", "lb2"], ["lb3", "lb4"]]
    assert [[vip.address for vip in plan.vips] for plan in found.plans] == [["192.0.2.10"], ["192.0.2.58"]]
    assert [line for line in found.lines if line.endswith(":")] == ["lb1, lb2:", "lb3, lb4:"]
    assert "192.0.2.58 (VRID 160): held by lb3, then lb4" in found.lines


def test_one_pair_has_no_heading():
    found = drawn(ONE)
    assert found.lines == [*found.plans[0].warnings, *found.plans[0].table, *found.plans[0].engines]


def test_what_clusters_must_know_stands_under_the_names_of_the_pairs_that_serve_one():
    k3s, rke2 = of(1, 2, preset="k3s"), of(5, 6, preset="rke2", vips=["192.0.2.90"])
    found = drawn(k3s, OTHER, rke2)
    one, _other, another = (plan.snippet for plan in found.plans)
    assert found.snippets == ["lb1, lb2:", *one, "lb5, lb6:", *another]
    assert drawn(k3s).snippets == one


def test_the_members_are_in_the_order_of_their_list_whatever_the_order_of_the_play():
    assert list(drawn(list(reversed(ONE))).plans[0].members) == ["lb1", "lb2"]


def test_pairs_get_vrids_of_their_own():
    """Both VIPs would get the same: it follows from the address."""
    assert vrids(drawn(ONE)) == vrids(drawn(OTHER)) == [144]
    assert vrids(drawn(ONE, OTHER)) == [144, FREE]


def test_a_new_pair_leaves_the_vrid_of_a_later_one_that_runs_alone():
    later = of(3, 4, vips=["192.0.2.58"])
    for each in later:
        each["host"]["instances"] = [running("vip-192.0.2.58", vrid=144, addresses=["192.0.2.58/32"])]
    assert vrids(drawn(ONE, later)) == [FREE, 144]


def test_two_pairs_on_one_link_may_not_have_one_vrid():
    found = drawn(of(1, 2, vrid=77), of(3, 4, vips=["192.0.2.58"], vrid=77))
    assert found.faults == [
        "lb1, lb2 and lb3, lb4 are on one link, and 192.0.2.10 and 192.0.2.58 both have VRID 77: "
        "give one of them another."
    ]


def test_two_pairs_on_different_links_may_have_one_vrid():
    other = of(3, 4, subnet="198.51.100", vips=["198.51.100.20"], vrid=77)
    assert vrids(drawn(of(1, 2, vrid=77), other)) == [77, 77]


def test_two_pairs_may_not_have_one_vip():
    assert drawn(ONE, of(3, 4)).faults == ["lb1, lb2 and lb3, lb4 both have VIP 192.0.2.10: give each its own."]


def test_two_pairs_may_not_be_on_one_host():
    same = of(3, 4, vips=["192.0.2.58"])
    same[0]["host"]["addresses"][1]["address"] = "192.0.2.2"
    assert drawn(ONE, same).faults == [
        "lb2 and lb3 both have the address 192.0.2.2: give each a host of its own (ansible_host)."
    ]


@pytest.mark.parametrize(
    "others, shared, shown",
    [((2, 3), "lb2", "lb2, lb3"), ((2, 1), "lb1", "lb2, lb1")],
    ids=["a host of two pairs", "another order"],
)
def test_all_hosts_of_a_pair_name_the_same_members(others, shared, shown):
    assert drawn(ONE[:1], of(*others)[:1]).faults[0] == (
        f"pair_members: {shared} is in 'lb1, lb2' and in '{shown}'. Set it once for each group, so that all of its "
        "hosts have the same list."
    )


def test_a_fault_says_in_which_pair_it_is():
    (fault,) = drawn(ONE, of(3, 4, vips=[])).faults
    assert fault.startswith("lb3, lb4: pair_vips is []")


def test_what_all_hosts_have_wrong_is_said_once_beside_the_rest():
    misspelt = "pairvrid is not a variable of the role: did you mean pair_vrid?"
    given = [{**each, "faults": [misspelt]} for each in [*ONE, *of(3, 4, vips=[])]]
    first, second = several.draw(pair.LAYOUT, given, planner.draft).faults
    assert first == misspelt and second.startswith("lb3, lb4: pair_vips is []")
    disputed = [{**each, "faults": [misspelt]} for each in [*ONE[:1], *of(2, 3)[:1]]]
    assert several.draw(pair.LAYOUT, disputed, planner.draft).faults[0] == misspelt


def test_what_no_host_was_asked_for_is_judged_too():
    """In a forecast no address is known but those of the inventory."""
    unread = [[{**each, "host": None} for each in members] for members in (ONE, OTHER)]
    assert drawn(*unread, draw=planner.draft).faults == []
    assert vrids(drawn(*unread, draw=planner.draft)) == [144, FREE]


# -- pairs that --limit leaves out: the address of each VIP alone would give it 144


def left_out(*numbers, vip="192.0.2.58", vrid=""):
    names = [f"lb{number}" for number in numbers]
    return [[name, names, [vip], vrid] for name in names]


def beside(others, *pairs):
    given = [each for members in pairs or (ONE,) for each in members]
    return several.draw(pair.LAYOUT, given, planner.draft, others)


def test_a_new_pair_leaves_the_vrids_that_a_pair_outside_the_run_may_have():
    """It has 144 if it was set up alone, and the next one if it was set up beside the pair of this run."""
    found = beside(left_out(3, 4))
    assert found.faults == [] and vrids(found) == [176]


def test_a_vrid_that_the_inventory_gives_to_a_pair_outside_the_run_is_left_too():
    assert vrids(beside(left_out(3, 4, vrid="144"))) == [FREE]


def test_several_pairs_outside_the_run_have_vrids_apart_from_each_other():
    found = beside([*left_out(3, 4), *left_out(5, 6, vip="192.0.2.84")])
    assert vrids(found) == [192]  # of those two, 144 and 160 if they were set up without this one, else 160 and 176


def test_a_pair_that_runs_keeps_its_vrid_whatever_a_pair_outside_the_run_may_have():
    living = of(1, 2)
    for each in living:
        each["host"]["instances"] = [running(vrid=144)]
    assert vrids(beside(left_out(3, 4), living)) == [144]


@pytest.mark.parametrize("others", [left_out(1, 2), [["lb3", "x", "y", []]], [["lb3", ["lb3"], {}, "no"]]])
def test_what_is_no_other_pair_changes_nothing(others):
    found = beside(others)
    assert found.faults == [] and vrids(found) == [144]


# -- more pairs than the pool has VRIDs: one is unique on a link, and not in an inventory

SUBNETS = [f"10.0.{number}" for number in range(50)]


def many(*subnets):
    """A pair in each subnet, with IPv4 alone."""
    pairs = []
    for at, subnet in enumerate(subnets):
        pairs.append(of(2 * at + 1, 2 * at + 2, subnet=subnet, vips=[f"{subnet}.{200 + at % 50}"]))
        for each in pairs[-1]:
            each["host"]["addresses"] = [info for info in each["host"]["addresses"] if ":" not in info["address"]]
    return pairs


def test_fifty_pairs_in_fifty_subnets_are_planned_and_forecast():
    unread = [[{**each, "host": None} for each in members] for members in many(*SUBNETS)]
    for found in (drawn(*many(*SUBNETS)), drawn(*unread, draw=planner.draft)):
        assert found.faults == []
        assert len(vrids(found)) == 50 and len({*vrids(found)}) == 30  # each has its own, as far as the pool reaches


def test_pairs_in_one_subnet_still_have_vrids_of_their_own():
    found = drawn(*many(*["10.0.0"] * 30))
    assert found.faults == [] and len({*vrids(found)}) == 30
    assert "All 30 VRIDs of the pool are taken" in drawn(*many(*["10.0.0"] * 31)).faults[0]


def test_a_pair_beside_forty_others_avoids_those_of_its_own_link():
    others = [row for at, subnet in enumerate(SUBNETS) for row in left_out(1000 + at, 2000 + at, vip=f"{subnet}.9")]
    assert vrids(beside(others)) == [144]
    read = several.draw(pair.LAYOUT, of(1, 2), planner.plan, [*others, *left_out(98, 99, vrid="144")])
    assert read.faults == [] and vrids(read) != [144]


def test_a_pair_that_is_adopted_keeps_one_vrid_on_two_links():
    members = of(1, 2, vips=["192.0.2.10", "198.51.100.10"])
    for number, each in enumerate(members, 1):
        second = {
            "interface": "eth1",
            "address": f"198.51.100.{number}",
            "prefix": 24,
            "mac": f"02:00:00:00:01:0{number}",
        }
        each["host"]["addresses"].append(second)
        each["host"]["instances"] = [
            running("VI_1", vrid=51, interface="eth0", addresses=["192.0.2.10/32"]),
            running("VI_2", vrid=51, interface="eth1", addresses=["198.51.100.10/32"]),
        ]
    assert drawn(members).faults == [] and vrids(drawn(members)) == [51, 51]
    both = [{"address": vip, "vrid": 51} for vip in ("192.0.2.10", "198.51.100.10")]
    fresh = [{**each, "settings": {**each["settings"], "vips": both}} for each in members]
    for each in fresh:
        each["host"] = {**each["host"], "instances": []}
    assert drawn(fresh).faults == [] and vrids(drawn(fresh)) == [51, 51]
