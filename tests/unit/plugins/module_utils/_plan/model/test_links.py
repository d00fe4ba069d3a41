# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VRID identifies a router on its link alone: on two links two routers have one, and never mix."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import transition, turns
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import links
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans import clusters
from support.plans.living import living
from support.plans.pairs import on_two_links
from support.plans.variables import draft

FIRST, SECOND = {4: "192.0.2.10", 6: "2001:db8::10"}, {4: "198.51.100.10", 6: "2001:db8:0:1::10"}
NEAR = {4: "192.0.2.11", 6: "2001:db8::11"}  # on the link of the first one
FAMILIES = [4, 6]
ENGINES = ["native", "agent"]
WAYS = [{}, {"multicast": True}, {"vrrp_version": 3}, {"sync": True}]


def with_one_vrid(*addresses, vrid=51):
    return {"vips": [{"address": each, "vrid": vrid} for each in addresses], "vrid": None}


def interfaces(number):
    """The interfaces of a member on both links; those of lb2 are called the other way round."""
    return {1: ("eth0", "eth1"), 2: ("eth1", "eth0"), 3: ("eth0", "ens7")}[number]


def host(number, **settings):
    found = on_two_links(number, **settings)
    names = dict(zip(interfaces(1), interfaces(2))) if number == 2 else {}
    for info in found["host"]["addresses"]:
        info["interface"] = names.get(info["interface"], info["interface"])
    return found


# No node carries VIPs of both roles.
APART = {"masters": ["master-0", "master-2"], **dict.fromkeys(("workers", "ingress_members"), ["master-1", "worker-0"])}
ONE_INSTANCE = """\
vrrp_instance VI_1 {{
    interface eth0
    virtual_router_id 51
    priority {}
    virtual_ipaddress {{
        192.0.2.10
        198.51.100.10 dev eth1
    }}
}}
"""


def by_hand(number, family, *vips):
    """What somebody has written: keepalived's own format, and one VRID on each link."""
    sections = [
        f"vrrp_instance VI_{at} {{\n interface {interface}\n virtual_router_id 51\n priority {200 - number}\n"
        f" version {3 if family == 6 else 2}\n virtual_ipaddress {{\n {vip}\n }}\n}}"
        for at, (interface, vip) in enumerate(zip(interfaces(number), vips))
    ]
    return "\n".join(sections)


def adopted(family, engine, **settings):
    """Three members that run keepalived as somebody has set it up, lb1 with both VIPs."""
    vips = FIRST[family], SECOND[family]
    members = [host(number, engine=engine, vips=[*vips], vrid=None, **settings) for number in (1, 2, 3)]
    for number, one in enumerate(members, 1):
        one["host"].update(
            instances=conf.instances(by_hand(number, family, *vips)),
            active_units=["keepalived.service"],
            takeover={"keepalived": {"keep": ["/etc/keepalived/keepalived.conf"], "restart": True}},
            keepalived_version="2.2.7",
        )
    length = 128 if family == 6 else 32
    for vip, name in zip(vips, interfaces(1)):
        members[0]["host"]["addresses"].append({"interface": name, "address": vip, "prefix": length, "mac": "02:00"})
    return members


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_one_vrid_on_two_links_is_planned_and_forecast_as_two_routers(engine, family, way):
    settings = {"engine": engine, **with_one_vrid(FIRST[family], SECOND[family]), **way}
    plan = _pair.plan([host(number, **settings) for number in (1, 2, 3)])
    other = _pair.plan([host(number, **{**settings, **apart(family)}) for number in (1, 2, 3)])
    assert plan.faults == [] and [vip.vrid for vip in plan.vips] == [51, 51]
    assert plan.outages == other.outages, "as with two VRIDs"
    assert [line.replace("VRID 52", "VRID 51") for line in other.table] == plan.table


def apart(family):
    return {"vips": [{"address": FIRST[family], "vrid": 51}, {"address": SECOND[family], "vrid": 52}]}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
def test_one_vrid_on_one_link_is_refused(engine, family):
    settings = {"engine": engine, **with_one_vrid(FIRST[family], NEAR[family])}
    assert _pair.plan([host(number, **settings) for number in (1, 2)]).faults == [
        f"pair_vips[1] has VRID 51, which {FIRST[family]} has too: give one of them another vrid."
    ]


def cluster(ingress, **settings):
    """A cluster whose API has VRID 77, and the ingress too; each node is on two links."""
    vips = {"api_vips": [{"address": "10.0.0.200", "vrid": 77}], "ingress_vips": [{"address": ingress, "vrid": 77}]}
    nodes = clusters.cluster(**vips, **settings)
    for number, node in enumerate(nodes, 1):
        second = {"interface": "ens224", "address": f"198.51.100.{number}", "prefix": 24, "mac": f"02:01:{number}"}
        node["host"]["addresses"].append(second)
    return nodes


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("nodes", [{}, APART], ids=["on all nodes", "on workers alone"])
@pytest.mark.parametrize("preset", ["default", "ocp45"])
def test_the_vips_of_a_cluster_may_have_one_vrid_on_two_links_and_not_on_one(engine, preset, nodes):
    settings = {"engine": engine, "preset": preset, **nodes}
    plan = ipi.plan(cluster("198.51.100.201", **settings))
    assert plan.faults == [] and [vip.vrid for vip in plan.vips] == [77, 77]
    assert ipi.plan(cluster("10.0.0.201", **settings)).faults == [
        "ipi_ingress_vips[0] has VRID 77, which 10.0.0.200 has too: give one of them another vrid."
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_adopted_pair_keeps_one_vrid_on_two_links_and_each_member_gives_up_none(engine, family):
    members = adopted(family, engine, accept_split=False)
    plan = planner.draft(_pair.LAYOUT, members)
    assert plan.faults == [] and [vip.vrid for vip in plan.vips] == [51, 51]
    assert (plan.leaving, plan.joining) == ([], [])
    found = turns.turns(members, plan.members, "", plan.vips)
    for one, other in itertools.permutations(found, 2):
        mine, theirs = (turn.routers([*turn.before, *turn.after]) for turn in (one, other))
        assert mine.keys() == theirs.keys() and len(mine) == 2
        assert all(set(mine[each]["addresses"]) == set(theirs[each]["addresses"]) for each in mine)


@pytest.mark.parametrize("version", ["2.2.7", "2.3.4"])
@pytest.mark.parametrize("engine", ENGINES)
def test_of_two_vips_in_one_instance_that_are_on_two_links_each_keeps_the_vrid(engine, version):
    """The router of the second link is a new one: the members change while one router alone runs."""
    members = adopted(4, engine)[:2]
    for number, one in enumerate(members, 1):
        interface = dict(zip(interfaces(1), interfaces(number)))
        text = ONE_INSTANCE.format(200 - number).replace("eth1", "other").replace("eth0", interface["eth0"])
        instances = conf.instances(text.replace("other", interface["eth1"]))
        one["host"].update(instances=instances, keepalived_version=version)
    plan = planner.draft(_pair.LAYOUT, members)
    assert plan.faults == [] and [vip.vrid for vip in plan.vips] == [51, 51] and plan.sole_router == "lb1"


@pytest.mark.parametrize("family", FAMILIES)
def test_of_an_adopted_pair_with_one_vrid_on_one_link_the_second_vip_gets_another(family):
    members = adopted(family, "native")
    for one in members:
        one["settings"]["vips"] = [FIRST[family], NEAR[family]]
        for each, vip in zip(one["host"]["instances"], (FIRST[family], NEAR[family])):
            each.update(addresses=[vip])
    first, second = planner.draft(_pair.LAYOUT, members).vips
    assert first.vrid == 51 != second.vrid


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_member_that_takes_a_router_over_on_one_link_does_not_run_that_of_the_other(engine, family):
    """The third member runs the router of the first link alone, with the VRID that the second link has, too."""
    settings = {"engine": engine, **with_one_vrid(FIRST[family], SECOND[family])}
    found = living("pair", settings, settings)
    found.members[2]["host"]["instances"] = [
        each for each in found.members[2]["host"]["instances"] if FIRST[family] in str(each["addresses"])
    ]
    plan = draft("pair", found.members)
    (_one, _two, third) = turns.turns(found.members, plan.members, found.auth_pass, plan.vips)
    new = third.routers(third.after).keys() - third.routers(third.before).keys()
    assert [each.vrid for each in new] == [51]


@pytest.mark.parametrize(
    "vips, vrid",
    [
        pytest.param([{"address": FIRST[4], "vrid": 77}, {"address": SECOND[4], "vrid": 51}], 77, id="first link"),
        pytest.param([{"address": FIRST[4], "vrid": 51}, {"address": SECOND[4], "vrid": 77}], 77, id="second link"),
    ],
)
def test_a_router_that_starts_anew_on_one_link_does_not_on_the_other(vips, vrid):
    before = {"engine": "agent", **with_one_vrid(FIRST[4], SECOND[4])}
    found = living("pair", before, {**before, "vips": vips})
    plan = draft("pair", found.members)
    given = turns.turns(found.members, plan.members, found.auth_pass, plan.vips)
    anew = transition.to_play(given, plan.sole_router, plan.migration_order).starts_anew
    (changed,) = (vip["address"] for vip in vips if vip["vrid"] == vrid)
    link = {each["interface"]: number for each, number in zip(given[0].after, (0, 1))}
    (own,) = (each for each in given[0].after if changed in str(each["addresses"]))
    assert anew == {(turn.name, links.VirtualRouter(link[own["interface"]], vrid, 4)) for turn in given}


def test_where_no_host_was_read_one_vrid_is_refused_and_the_reason_said():
    members = [{**host(number, **with_one_vrid(FIRST[4], SECOND[4])), "host": None} for number in (1, 2)]
    members = [{**each, "address": each["name"]} for each in members]
    assert _pair.plan(members).faults == [
        "pair_vips[1] has VRID 51, which 192.0.2.10 has too, and no subnet of the members tells whether they are on "
        "two links: give one of them another vrid."
    ]


def test_a_member_that_does_not_answer_has_both_routers_on_the_links_of_its_peers():
    settings = with_one_vrid(FIRST[4], SECOND[4])
    found = living("pair", settings, {**settings, "preempt": False})
    recorded = {f"lb{number}": [f"192.0.2.{number}", f"198.51.100.{number}"] for number in (1, 2, 3)}
    for each in found.members:
        each["host"]["members"] = recorded
    found.members[2].update(host=None, silent=True, outside_limit=True, address="lb3")
    plan = draft("pair", found.members)
    assert (plan.sole_router, plan.leaving, plan.joining) == ("", [], [])
    assert plan.links["lb3"] == {"eth0": plan.links["lb1"]["eth0"], "eth1": plan.links["lb1"]["eth1"]}


def ones_own(second):
    """A plan for the filter, which knows no subnet, with two routers on each of two members."""
    on_each_link = (("a", "eth0", 51, "192.0.2.{}", -1), ("b", "eth1", second, "198.51.100.{}", 1))
    return {
        f"m{number}": {
            "instances": [
                {
                    "name": name,
                    "interface": interface,
                    "vrid": vrid,
                    "multicast": True,
                    "priority": 150 + step * number,
                    "source": source.format(number),
                    "addresses": [source.format(10)],
                    "track_scripts": ["haproxy"],
                }
                for name, interface, vrid, source, step in on_each_link
            ]
        }
        for number in (1, 2)
    }


def test_a_plan_of_ones_own_may_have_one_vrid_on_two_links():
    found, other = (forecast.vrrp_forecast({"members": ones_own(second)}) for second in (51, 52))
    assert found["faults"] == [] and found["outages"] == other["outages"]


def instance(interface, *vips, vrid=51):
    return {"interface": interface, "vrid": vrid, "addresses": [*vips]}


def numbers(subnets, instances):
    known = {
        name: links.subnets(
            {"interface": interface, "address": address.split("/")[0], "prefix": int(address.split("/")[1])}
            for interface, address in some
        )
        for name, some in subnets.items()
    }
    found = links.of_members(known, instances)
    return [found[name][interface] for name, some in instances.items() for interface in (i["interface"] for i in some)]


@pytest.mark.parametrize(
    "subnets, instances, same",
    [
        pytest.param(
            {"a": [("eth0", "192.0.2.1/24")], "b": [("ens3", "192.0.2.129/25")]},
            {"a": [instance("eth0")], "b": [instance("ens3")]},
            True,
            id="two lengths of one prefix",
        ),
        pytest.param(
            {"a": [("eth0", "192.0.2.1/24")], "b": [("eth0", "198.51.100.1/24")]},
            {"a": [instance("eth0")], "b": [instance("eth0")]},
            False,
            id="one name on two links",
        ),
        pytest.param(
            {"a": [("eth0", "192.0.2.1/24")], "b": [("eth0", "203.0.113.7/32")]},
            {"a": [instance("eth0", "192.0.2.10")], "b": [instance("eth0", "192.0.2.10")]},
            True,
            id="a host route, and a VIP in the other's subnet",
        ),
        pytest.param(
            {"a": [("eth0", "203.0.113.6/32")], "b": [("eth0", "203.0.113.7/32")]},
            {"a": [instance("eth0", "192.0.2.10")], "b": [instance("wan", "192.0.2.10/32")]},
            True,
            id="host routes, and one VIP",
        ),
        pytest.param(
            {},
            {"a": [instance("eth0", "192.0.2.10")], "b": [instance("eth0", "198.51.100.10")]},
            True,
            id="nothing known",
        ),
        pytest.param(
            {},
            {"a": [instance("eth0", "192.0.2.10"), instance("eth1", "198.51.100.10")]},
            False,
            id="nothing known, and one host on both",
        ),
        pytest.param(
            {"a": [("eth0", "fe80::1/64")], "b": [("eth1", "fe80::2/64")]},
            {"a": [instance("eth0", "2001:db8::10")], "b": [instance("eth1", "2001:db8::10")]},
            True,
            id="link-local addresses, and one VIP",
        ),
        pytest.param(
            {"a": [("eth0", "fe80::1/64"), ("eth1", "fe80::2/64")]},
            {"a": [instance("eth0", "2001:db8::10"), instance("eth1", "2001:db8:0:1::10")]},
            False,
            id="link-local addresses, which every link has",
        ),
        pytest.param({}, {"a": [instance("eth0", "no address")], "b": [instance("eth0")]}, True, id="no address"),
    ],
)
def test_two_interfaces_are_on_one_link_if_their_subnets_or_their_vips_tell(subnets, instances, same):
    one, other = numbers(subnets, instances)
    assert (one == other) == same


def test_where_no_subnet_is_known_the_vips_tell_which_interface_is_on_which_link():
    one, two = "192.0.2.10", "198.51.100.10"
    instances = {
        "a": [instance("eth0", one), instance("eth1", two)],
        "b": [instance("eth0", two), instance("eth1", one)],
    }
    first, second, third, fourth = numbers({}, instances)
    assert (first, second) == (fourth, third) and first != second


def test_a_subnet_that_joins_two_links_makes_them_one():
    subnets = {
        "a": [("eth0", "192.0.2.1/25")],
        "b": [("eth0", "192.0.2.129/25")],
        "c": [("eth0", "192.0.2.3/24")],
    }
    assert len({*numbers(subnets, {name: [instance("eth0")] for name in subnets})}) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_reads_both_routers_back_and_finds_nothing_to_change(engine, family):
    settings = {"engine": engine, **with_one_vrid(FIRST[family], SECOND[family])}
    found = living("pair", settings, {**settings, "vips": [FIRST[family], SECOND[family]]})
    read = [(each["interface"], each["vrid"]) for each in found.members[2]["host"]["instances"]]
    assert read == [("eth0", 51), ("ens7", 51)]
    plan = draft("pair", found.members)
    assert [member.router for member in plan.members.values()] == [
        member.router for member in found.plan.members.values()
    ]
    assert (plan.sole_router, plan.leaving, plan.joining) == ("", [], [])
