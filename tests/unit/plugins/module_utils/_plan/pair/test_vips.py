"""Which VRIDs a pair gets, keeps and refuses to share."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrid as _vrid
from support.plans.pairs import pair, running

TWO = ["192.0.2.10", "192.0.2.11"]


def router(vrid=51, source="192.0.2.99", addresses=("192.0.2.77",), family=4, **changes):
    """Return a foreign router as `vrrp_info` returns it."""
    usual = {"interface": "eth0", "priority": 100, "auth_type": "simple", "auth_pass": "another1"}
    return {**usual, "vrid": vrid, "source": source, "addresses": list(addresses), "family": family, **changes}


def members(heard=(), living=None, **settings):
    made = pair(**{"vrid": None, **settings})
    instances = [running(name, vrid=vrid) for name, vrid in (living or {}).items()]
    made[1]["host"].update(heard=list(heard), instances=instances)
    return made


def vrids(*args, **kwargs):
    plan = _pair.plan(members(*args, **kwargs))
    assert plan.faults == []
    return [vip.vrid for vip in plan.vips]


def test_without_a_wish_a_pair_gets_what_no_openshift_cluster_can_have_and_always_the_same():
    assert set(vrids(vips=TWO)) < set(_vrid.POOL)
    assert vrids(vips=TWO) == vrids(vips=TWO)
    assert len(set(vrids(vips=TWO))) == 2


def test_a_wish_counts_up():
    assert vrids(vips=TWO, vrid=51) == [51, 52]


def test_ipv6_shares_the_vrid_of_its_twin():
    four, six = vrids(vips=["192.0.2.10", "2001:db8::10"])
    assert four == six


def test_a_new_pair_avoids_what_is_heard():
    (usual,) = vrids()
    assert vrids([router(vrid=usual)]) != [usual]
    assert vrids([router(vrid=usual, family=6)]) == [usual]


def test_a_living_pair_keeps_its_vrids_whatever_the_pool_would_give():
    assert vrids(living={"vip-192.0.2.10": 51}) == [51]
    assert vrids(living={"vip-192.0.2.10": 51}, vrid=60) == [60]


def test_what_the_members_themselves_advertise_is_not_foreign():
    own = router(vrid=51, source="192.0.2.1", addresses=["192.0.2.10"])
    assert vrids([own], living={"vip-192.0.2.10": 51}) == [51]


@pytest.mark.parametrize(
    "heard, sentence",
    [
        (router(), "192.0.2.99 already advertises VRID 51 on eth0 for 192.0.2.77 (priority 100"),
        (router(vrid=9, addresses=["192.0.2.10"]), "choose another VIP, or stop it there."),
        (router(auth_pass="secret77"), "it seems to be a member that the inventory lacks"),
    ],
)
def test_a_stranger_with_our_vrid_or_our_vip_stops_the_run_with_its_address(heard, sentence):
    faults = _pair.plan(members([heard], vrid=51, auth_pass="secret77")).faults
    assert len(faults) == 1 and sentence in faults[0]
    assert "secret77" not in faults[0]


def test_the_same_vrid_on_another_link_or_in_the_other_family_is_no_matter():
    assert vrids([router(interface="eth9"), router(family=6, source="fe80::9")], vrid=51) == [51]


def test_a_running_pair_whose_vrid_another_router_uses_is_refused():
    faults = _pair.plan(members([router()], living={"vip-192.0.2.10": 51})).faults
    assert len(faults) == 1 and "already advertises VRID 51" in faults[0]


def test_a_full_pool_is_said():
    faults = _pair.plan(members([router(vrid=vrid) for vrid in _vrid.POOL])).faults
    assert any("All 30 VRIDs of the pool are taken" in fault for fault in faults)
