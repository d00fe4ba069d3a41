# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One VRRP instance carries all VIPs of a family."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import NATIVE, UNITS
from support.plans.pairs import member, on_two_links

WEB = {"name": "web", "port": 80, "servers": ["192.0.2.50"]}
MANY = [f"192.0.2.{number}" for number in range(100, 140)]
MANY6 = [f"2001:db8::{number}" for number in range(100, 140)]


def plan(*vips, of=member, **settings):
    given = {"services": [WEB], "masters": [], "infra_nodes": [], "one_instance": True, "vips": [*vips], **settings}
    return pair.plan([of(number, **given) for number in (1, 2)])


def instances(found, name="lb1"):
    assert found.faults == []
    return found.members[name].router.instances


@pytest.mark.parametrize("engine", ["native", "agent"])
def test_forty_vips_have_one_vrid_and_one_holder(engine):
    found = plan(*MANY, engine=engine)
    (first,), (second,) = instances(found), instances(found, "lb2")
    assert first["addresses"] == second["addresses"] == MANY
    assert (first["vrid"], first["priority"] > second["priority"]) == (51, True)
    assert [vip.address for vip in found.vips] == MANY and {vip.vrid for vip in found.vips} == {51}
    assert found.targets == [[address, 80] for address in MANY]
    assert [vip.address for vip in found.members["lb1"].expected.vips] == MANY


def test_the_forecast_has_them_once():
    found = plan(*MANY)
    assert found.table[0].startswith("192.0.2.100 and 39 more (VRID 51): held by lb1, then lb2")
    assert {line["vip"] for line in found.outages} == {MANY[0]}
    alone = plan(MANY[0])
    assert [line for line in found.table[1:] if "VRID" in line] == []
    assert found.outages == alone.outages


def test_each_family_has_its_own_with_the_same_vrid():
    found = plan(*MANY, *MANY6, sync=True)
    assert [(each["addresses"], each["vrid"]) for each in instances(found)] == [(MANY, 51), (MANY6, 51)]
    (group,) = found.members["lb1"].router.sync_groups
    assert group["instances"] == ["vip-192.0.2.100", "vip-2001:db8::100"]


def test_one_instance_needs_no_sync_group():
    assert plan(*MANY, sync=True).members["lb1"].router.sync_groups == []


def test_a_check_and_a_direct_service_of_any_of_them_are_tracked_once():
    service = {**WEB, "servers": ["192.0.2.50", "192.0.2.51"], "plane": "direct", "bind": [MANY[7]]}
    found = plan(*MANY, services=[service], checks=[{"gateway": "192.0.2.254"}])
    (own,) = instances(found)
    assert [each["name"] for each in own["track_files"]].count("direct_down") == 1
    assert found.watched["direct"]["instances"] == [own["name"]]
    (check,) = (each for name, each in found.watched.items() if name.startswith("gateway"))
    assert check["instances"] == [own["name"]]


@pytest.mark.parametrize(
    "second, sentence",
    [
        (
            {"vrid": 77},
            "pair_vips[1].vrid is 77, and with pair_one_instance it is 51 as that of 192.0.2.10: leave it out.",
        ),
        (
            {"first": "lb2"},
            "pair_vips[1].first is lb2, and with pair_one_instance it is lb1 as that of 192.0.2.10: leave it out.",
        ),
    ],
)
def test_what_would_make_one_of_them_another_instance_is_refused(second, sentence):
    assert plan("192.0.2.10", {"address": "192.0.2.11", **second}).faults == [sentence]
    same = {key: {"vrid": 51, "first": "lb1"}[key] for key in second}
    assert plan("192.0.2.10", {"address": "192.0.2.11", **same}).faults == []


def test_vips_of_two_links_are_refused_because_an_instance_watches_one():
    found = plan("192.0.2.10", "198.51.100.10", "198.51.100.11", of=on_two_links)
    assert found.faults == [
        "pair_one_instance: lb1 carries 192.0.2.10 on eth0, 198.51.100.10 on eth1, and an instance watches one "
        "interface: set it to false."
    ]


@pytest.mark.parametrize("start, most", [("10.0.{}.{}", 255), ("2001:db8::{}:{}", 89)])
def test_more_than_an_advertisement_has_room_for_are_refused(start, most):
    vips = [start.format(1 + at // 200, 1 + at % 200) for at in range(most + 1)]

    def of(number, **settings):
        found = member(number, **settings)
        found["host"]["addresses"].append({"interface": "eth0", "address": f"10.0.0.{number}", "prefix": 16, "mac": ""})
        return found

    assert plan(*vips[:-1], of=of).faults == []
    (fault,) = plan(*vips, of=of).faults
    assert f"there are {most + 1} IPv" in fault and f"an advertisement has room for {most}" in fault


def living(before, **after):
    """Return the plan of a pair that runs, with one holder of all VIPs but one."""
    vips = MANY[:3]
    runs = plan(*vips, one_instance=before)

    def of(number, **settings):
        found = member(number, **settings, auth_pass="")
        host, units = found["host"], [*UNITS[NATIVE]]
        host.update(own_units=units, active_units=units, existing_units=units, keepalived_version="2.2.7")
        host["instances"] = [{"auth_pass": "", **each} for each in instances(runs, found["name"])]
        held = [vip for vip in vips if (number == 1) == (before or vip != vips[1])]
        host["addresses"] += [{**host["addresses"][1], "address": vip, "prefix": 32} for vip in held]
        return found

    return plan(*vips, of=of, **after)


@pytest.mark.parametrize("before", [False, True])
def test_a_living_pair_gets_one_instance_and_others_again(before):
    """The router that gets the VIPs of others goes on with its own: it is no other one."""
    found = living(before, one_instance=not before)
    assert found.faults == []
    (start,) = (at for at, line in enumerate(found.warnings) if line.startswith("192.0.2.100 during the transition"))
    assert "VIPs of one VRID" in found.warnings[start + 1] and "at most     0 ms" in found.warnings[start + 1]
    assert any("only lb1's router runs" in line for line in found.warnings)
