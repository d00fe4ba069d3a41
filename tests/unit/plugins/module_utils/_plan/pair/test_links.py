# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members advertise on one link, and hold the VIPs on another."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner, several
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.plans.pairs import member, on_two_links

WEB = {"name": "web", "port": 80, "servers": ["192.0.2.50"]}
ALLOWED = {**WEB, "allow": ["203.0.113.0/24"]}
GATEWAY = {"gateway": "192.0.2.254"}
SPLIT = "pair_vrrp_interface: while that link alone is cut, each member holds"
BEYOND = "pair_vrrp_interface: a failure of the clients' network beyond"


def members(**settings):
    return [on_two_links(number, **{"services": [WEB], "vrrp_interface": "eth1", **settings}) for number in (1, 2)]


def instances(plan, name="lb1"):
    assert plan.faults == []
    return plan.members[name].router.instances


@pytest.mark.parametrize("engine", ["native", "agent"])
@pytest.mark.parametrize(
    "vip, held, own, other",
    [
        ("192.0.2.10", "192.0.2.10/32 dev eth0", "198.51.100.1", "198.51.100.2"),
        ("192.0.2.10/24", "192.0.2.10/24 dev eth0", "198.51.100.1", "198.51.100.2"),
        ("2001:db8::10", "2001:db8::10/128 dev eth0", "2001:db8:0:1::1", "2001:db8:0:1::2"),
    ],
)
def test_the_address_is_on_the_clients_link_and_the_rest_on_the_named_one(engine, vip, held, own, other):
    (found,) = instances(pair.plan(members(vips=[vip], engine=engine)))
    assert (found["interface"], found["addresses"]) == ("eth1", [held])
    assert (found["source"], found["peers"]) == (own, [other])


def test_a_vip_on_the_named_interface_is_an_ordinary_one():
    (found,) = instances(pair.plan(members(vips=["198.51.100.10"])))
    (ordinary,) = instances(pair.plan(members(vips=["198.51.100.10"], vrrp_interface="")))
    assert found == ordinary
    assert not any(SPLIT in each for each in pair.plan(members(vips=["198.51.100.10"])).warnings)


def test_the_own_link_of_vrrp_is_not_tracked_because_the_other_member_may_be_off():
    """On a cable its carrier ends with the other host: a FAULT would take the last member away that serves."""
    (found,) = instances(pair.plan(members()))
    assert found["dont_track_primary"] is True
    (tracking,) = instances(pair.plan(members(checks=[{"interface": "eth1"}])))
    assert tracking["track_interfaces"] == [{"name": "eth1", "weight": 0}], "whoever has a switch there may say so"


def test_each_member_may_call_it_otherwise():
    plan = pair.plan([on_two_links(number, services=[WEB], vrrp_interface="eth1") for number in (1, 2, 3)])
    assert [instances(plan, name)[0]["interface"] for name in plan.members] == ["eth1", "eth1", "ens7"]
    assert {each["eth1" if name != "lb3" else "ens7"] for name, each in plan.links.items()} == {0}


def test_the_firewall_lets_vrrp_in_from_there_and_members_as_clients_from_the_other():
    firewall = pair.plan(members(services=[ALLOWED])).members["lb1"].firewall
    assert firewall.vrrp_peers == ["198.51.100.2"]
    assert firewall.interfaces == ["eth0", "eth1"]
    assert {"192.0.2.2", "198.51.100.2"} <= {*firewall.restricted_ports[0]["networks"]}


def test_the_record_has_both_addresses_so_that_a_silent_member_has_its_place():
    record = pair.plan(members()).record
    assert record["lb2"] == ["lb2", "198.51.100.2", "192.0.2.2"]
    one, two = members(vrrp_interface="eth1", interface="eth0")
    one["host"]["members"] = {name: record[name] for name in ("lb1", "lb2")}
    two.update(host=None, silent=True, outside_limit=True, address="lb2")
    plan = pair.plan([one, two])
    assert plan.faults == []
    assert [instances(plan, "lb2")[0][key] for key in ("interface", "source")] == ["eth1", "198.51.100.2"]


REFUSED = {
    "no such interface": (
        {"vrrp_interface": "eth9"},
        "lb1: pair_vrrp_interface is 'eth9', which is not there: there are eth0, eth1, lo.",
    ),
    "the loopback": ({"vrrp_interface": "lo"}, "lb1: pair_vrrp_interface is 'lo', which has no address"),
    "a list": ({"vrrp_interface": ["eth1"]}, "pair_vrrp_interface"),
    "a mapping": ({"vrrp_interface": {"eth1": 1}}, "pair_vrrp_interface"),
    "two names": ({"vrrp_interface": "eth1 eth2"}, "pair_vrrp_interface"),
    "a line break": ({"vrrp_interface": "eth1\n"}, "pair_vrrp_interface"),
    "a brace": ({"vrrp_interface": "eth1{"}, "pair_vrrp_interface"),
    "a number": ({"vrrp_interface": 1}, "pair_vrrp_interface"),
}


@pytest.mark.parametrize("settings, fault", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence_for_each_member(settings, fault):
    found = pair.plan(members(**settings)).faults
    assert (
        found
        and all(fault.replace("lb1", f"lb{number}") in each for number, each in enumerate(found, 1))
        or (len(found) == 1 and fault in found[0])
    )


def test_an_interface_without_an_address_of_the_vips_family_is_refused():
    found = members(vips=["2001:db8::10"])
    for each in found:
        each["host"]["addresses"] = [info for info in each["host"]["addresses"] if ":0:1::" not in info["address"]]
    assert pair.plan(found).faults[0] == (
        "lb1: pair_vrrp_interface is 'eth1', which has no address of VIP 2001:db8::10's family: give it one."
    )


def test_members_that_do_not_share_that_link_are_refused():
    one, two = members()
    for info in two["host"]["addresses"]:
        info["address"] = info["address"].replace("198.51.100.", "203.0.113.").replace(":0:1:", ":0:2:")
    (fault,) = pair.plan([one, two]).faults
    assert "share no subnet" in fault and fault.endswith("or correct pair_vrrp_interface.")


@pytest.mark.parametrize("is_read", [True, False])
def test_a_member_without_it_would_not_hear_the_others(is_read):
    one, two = members()
    two["settings"]["vrrp_interface"] = ""
    if not is_read:
        one, two = ({**each, "host": None, "address": each["name"]} for each in (one, two))
    sentence = "pair_vrrp_interface is empty for lb2, and the others advertise there: set it for each member."
    assert pair.plan([one, two]).faults == [sentence]


def test_two_hosts_with_one_address_there_are_refused():
    one, two = members()
    two["host"]["addresses"][-2]["address"] = "198.51.100.1"
    assert pair.plan([one, two]).faults == [
        "lb1 and lb2 both have the address 198.51.100.1: give each a host of its own (ansible_host)."
    ]


@pytest.mark.parametrize("checks, warned", [([], True), ([GATEWAY], False), ([{"interface": "eth2"}], True)])
def test_it_warns_of_what_neither_link_shows(checks, warned):
    warnings = pair.plan(members(checks=checks)).warnings
    assert any(each.startswith(SPLIT) for each in warnings)
    assert any(each.startswith(BEYOND) for each in warnings) is warned
    assert not any("vrrp_interface" in each for each in pair.plan(members(vrrp_interface="")).warnings)


def test_a_vrid_is_unique_on_the_link_of_vrrp():
    """Two VIPs on two links of clients have one link of VRRP."""
    two = [{"address": "192.0.2.10", "vrid": 51}, {"address": "203.0.113.10", "vrid": 51}]
    found = members(vips=two)
    for number, each in enumerate(found, 1):
        third = {
            "interface": "eth2",
            "address": f"203.0.113.{number}",
            "prefix": 24,
            "mac": f"02:00:00:00:02:0{number}",
        }
        each["host"]["addresses"].append(third)
    assert "has VRID 51, which 192.0.2.10 has too: give one of them another vrid." in pair.plan(found).faults[0]


def test_pairs_on_two_links_of_clients_and_one_of_vrrp_differ_in_their_vrids():
    def named(first):
        names = [f"lb{first}", f"lb{first + 1}"]
        vips = [f"192.0.2.{10 * first}"]
        found = [on_two_links(first + at, services=[WEB], vrrp_interface="eth1", vips=vips, vrid=None) for at in (0, 1)]
        return [{**each, "members": names, "address": each["name"]} for each in found]

    plans = several.draw(pair.LAYOUT, [*named(1), *named(4)], planner.draft)
    assert plans.faults == []
    assert len({plan.vips[0].vrid for plan in plans.plans}) == 2


def test_a_router_with_the_vrid_is_heard_on_the_link_of_vrrp():
    def heard(interface):
        found = members()
        stranger = {"family": 4, "vrid": 51, "source": "198.51.100.77", "mac": "02:00:00:00:09:09", "priority": 100}
        rest = {"addresses": ["198.51.100.99"], "version": 2, "interval": 1.0, "auth_pass": "", "interface": interface}
        found[0]["host"]["heard"] = [{**stranger, **rest}]
        return pair.plan(found).faults

    assert heard("eth0") == []
    assert "VRID 51" in heard("eth1")[0]


def test_the_forecast_of_hosts_that_were_not_read_has_the_interface():
    found = [{**member(number, services=[WEB], vrrp_interface="eth1"), "host": None} for number in (1, 2)]
    for each in found:
        each["address"] = each["name"]
    sources = [instances(pair.plan(found), name)[0]["source"] for name in ("lb1", "lb2")]
    assert len({*sources}) == 2


def test_a_port_that_is_down_is_heard_of_by_the_other_link():
    """Where VRRP is on the clients' link, the others wait as for a lost host."""

    def outage(**settings):
        plan = pair.plan(members(**settings))
        return next(line for line in plan.outages if line["event"] == "port_down")

    apart, together = outage(), outage(vrrp_interface="")
    assert apart["after"] == together["after"] == "lb2"
    assert apart["outage_ms"] < together["outage_ms"]
    assert apart["two_holders_ms"] == 0
