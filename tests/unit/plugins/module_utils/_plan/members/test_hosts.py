# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every layout asks of its members: priorities, VRIDs in use, addresses of a link, passwords."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import hosts as _members
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import answers
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrrp_routers
from support.plans.pairs import member, pair, running

VIP6 = "2001:db8::10"
LINK_LOCAL = "fe80::1"


def with_link_local(**settings):
    """Two members; eth0 names its link-local address before the others, as `ip address` may."""
    members = pair(vips=[VIP6], **settings)
    for one in members:
        mac = one["host"]["addresses"][1]["mac"]
        one["host"]["addresses"].insert(1, {"interface": "eth0", "address": LINK_LOCAL, "prefix": 64, "mac": mac})
    return members


def of_members_that_live_by(*vrids):
    members = [member(number, vrid=None) for number in range(1, len(vrids) + 1)]
    for one, vrid in zip(members, vrids):
        one["host"]["instances"] = [running(vrid=vrid)] if vrid else []
    return members


@pytest.mark.parametrize("vrids, kept", [((51, 52), 51), ((52, 51), 52), ((0, 52, 53), 52), ((53, 0, 51), 53)])
def test_of_several_living_vrids_the_first_members_word_counts(vrids, kept):
    members = of_members_that_live_by(*vrids)
    assert _members.find_existing(members).current_vrids == {"vip-192.0.2.10": kept, "192.0.2.10": kept}
    plan = _pair.plan(members)
    assert plan.faults == [] and [vip.vrid for vip in plan.vips] == [kept]


@pytest.mark.parametrize("interface", ["", "eth0"])
def test_a_member_sends_from_an_address_of_its_own_that_its_peers_can_be_told_never_a_link_local_one(interface):
    plan = _pair.plan(with_link_local(interface=interface))
    assert plan.faults == []
    (first,), (second,) = (plan.members[name].router.instances for name in ("lb1", "lb2"))
    assert (first["source"], first["peers"]) == ("2001:db8::1", ["2001:db8::2"])
    assert (second["source"], second["peers"]) == ("2001:db8::2", ["2001:db8::1"])


def test_an_interface_with_a_link_local_address_alone_carries_no_vip():
    members = with_link_local(interface="eth0")
    for one in members:
        one["host"]["addresses"] = [info for info in one["host"]["addresses"] if "2001" not in info["address"]]
    assert _pair.plan(members).faults == [
        f"{name}: pair_interface is 'eth0', which has no address of VIP {VIP6}'s family: give it one."
        for name in ("lb1", "lb2")
    ]


@pytest.mark.parametrize(
    "theirs, whose", [("secret78", "our"), ("secret79", "another"), ("secret7", "another"), ("tecret78", "another")]
)
def test_all_eight_characters_of_a_password_are_compared_and_no_ninth(theirs, whose):
    place = {"interface": "eth0", "family": 4, "vrid": 51, "source": "192.0.2.99", "addresses": ["192.0.2.77"]}
    router = {**place, "priority": 100, "auth_type": "simple", "auth_pass": theirs}
    for ours in ("secret78", "secret789"):
        (sentence,) = vrrp_routers.conflicts([router], [], [], [51], ours)
        assert f", with {whose} password)" in sentence and "secret" not in sentence


def test_a_password_that_is_read_back_keeps_all_its_eight_characters():
    members = pair()
    members[1]["host"]["instances"] = [running(auth_pass="secret78")]
    assert _members.auth_pass(members, new_uuid=lambda: "unused00") == "secret78"


@pytest.mark.parametrize("count", [1, 2, 3, 5, 12, 40, 253])
def test_priorities_fall_from_254_and_are_all_different(count):
    found = _members.priorities(count)
    assert found[:2] == [254, 253][:count]
    assert len(set(found)) == count and found == sorted(found, reverse=True) and found[-1] >= 1


@pytest.mark.parametrize("preempt", [False, True])
@pytest.mark.parametrize("count", [*range(2, 20), 40, 127])
def test_however_many_members_there_are_a_check_that_fails_is_no_fault(count, preempt):
    found = _members.priorities(count)
    assert max(found) + answers.weight(found, preempt) < min(found)


def test_from_the_third_on_no_member_can_be_as_quick_as_the_second():
    second, third, fourth = _members.priorities(4)[1:]
    assert second - third == third - fourth == 25


EXPIRED = {"key": "services[0] (web).tls.certificate", "value": "/web.pem", "wrong": "it expired.", "expired": "1" * 64}
SERVING = {"active_units": ["haproxy.service"], "served_files": ["1" * 64]}


@pytest.mark.parametrize(
    "other, refused",
    [
        (SERVING, False),
        ({}, True),
        ({**SERVING, "served_files": ["2" * 64]}, True),
        ({**SERVING, "active_units": ["keepalived.service"]}, True),  # nobody gets it from there
    ],
)
def test_an_expired_certificate_is_refused_unless_another_member_serves_it(other, refused):
    given = [member(1), member(2)]
    given[0]["host"]["unfit"] = [EXPIRED]
    given[1]["host"].update(other)
    found = planner.draft(_pair.LAYOUT, given)
    assert found.faults == (
        ["lb1: pair_services[0] (web).tls.certificate is '/web.pem': it expired."] if refused else []
    )
    if not refused:
        served = {name: each.balancer.served_elsewhere for name, each in found.members.items()}
        assert served == {"lb1": ["1" * 64], "lb2": []}


def test_what_is_unfit_for_another_reason_is_refused_whoever_serves_it():
    given = [member(1), member(2)]
    given[0]["host"]["unfit"] = [{**EXPIRED, "expired": ""}, {"key": "notify", "value": "/x", "wrong": "it is gone."}]
    given[1]["host"].update({**SERVING, "served_files": ["", "1" * 64]})
    assert len(planner.draft(_pair.LAYOUT, given).faults) == 2
