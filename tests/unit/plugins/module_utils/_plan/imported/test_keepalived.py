# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VIPs of what is written have the members, links and VRIDs of those in the files, by the plan of the pair."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.filter import imported
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf
from ansible_collections.onprem.lb.plugins.module_utils._plan.imported import keepalived
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout
from ansible_collections.onprem.lb.plugins.module_utils._shared.membership import carriers
from support import rendering
from support.inventories import Inventory

from .tools import slurped

FOLDER = Path(__file__).parent / "routers"
NAMES = sorted({file.name.split(".")[0] for file in FOLDER.glob("*.conf")})
WEB = "listen web\n bind :80\n server one 192.0.2.31:80 check\n"


def texts(name):
    return {member: (FOLDER / f"{name}.{member}.conf").read_text() for member in ("lb1", "lb2")}


def host(name, number):
    """What is known of a host on two links."""
    links = [("192.0.2", name), ("198.51.100", "eth1"), ("2001:db8:", name), ("2001:db8:1:", "eth1")]
    return {
        "addresses": [
            {
                "interface": link,
                "address": f"{net}:{number}" if ":" in net else f"{net}.{number}",
                "prefix": 64 if ":" in net else 24,
                "mac": f"02:00:00:00:00:{number}",
            }
            for net, link in links
        ],
        "listeners": [],
        "answering": {},
        "instances": [],
        "problems": [],
    }


def planned(name, tmp_path):
    """Return the inventory, and the plan of the pair for hosts that have the links."""
    given = texts(name)
    hosts = [
        {"name": member, "address": f"192.0.2.1{at}", "files": [slurped("haproxy", WEB), slurped("keepalived", text)]}
        for at, (member, text) in enumerate(given.items(), 1)
    ]
    made = imported.imported_inventory(hosts)
    assert made["faults"] == []
    file = tmp_path / "inventory.yml"
    file.write_text(made["text"])
    inventory = Inventory(file)
    interface = next(iter(carriers(conf.instances(given["lb1"])[0]).values()))
    names = inventory.hosts("pair")
    members = []
    for member in names:
        variables = inventory.variables(member, "pair_")
        settings = {key[len("pair_") :]: value for key, value in variables.items()}
        members.append({"name": member, "settings": settings, "host": host(interface, 10 + int(member[-1]))})
    return made, layout.plan(members)


@pytest.mark.parametrize("name", NAMES)
def test_each_vip_is_where_it_was(name, tmp_path):
    _made, plan = planned(name, tmp_path)
    assert plan.faults == []
    given = {member: conf.instances(text) for member, text in texts(name).items()}
    for instance in given["lb1"]:
        for address in (*instance["addresses"], *instance["excluded_addresses"]):
            order = sorted(given, key=lambda member: -priority(given[member], instance["name"]))
            (vip,) = [each for each in plan.vips if each.address == address.partition("/")[0]]
            assert vip.order == order, address
            on = {member: router_of(plan, member, vip) for member in given}
            assert {each["interface"] for each in on.values()} == {instance["interface"]}
            every = [*instance["addresses"], *instance["excluded_addresses"]]
            carrier = carriers({**instance, "addresses": every})[vip.address]
            assert {carriers(each)[vip.address] for each in on.values()} == {carrier}
            ranks = [on[member]["priority"] for member in order]
            assert ranks == sorted(ranks, reverse=True)
            if address == instance["addresses"][0] or plan.members["lb1"].router.instances[1:] == []:
                assert {each["vrid"] for each in on.values()} == {instance["vrid"]}


def priority(instances, name):
    return next(each["priority"] for each in instances if each["name"] == name)


def router_of(plan, member, vip):
    """Return the instance of a VIP in the keepalived.conf that the role writes."""
    text = rendering.keepalived({**plan.members[member].router._asdict(), "auth_pass": "0f3a9c1e"}, member)
    return next(each for each in conf.instances(text) if vip.address in str(each["addresses"]))


@pytest.mark.parametrize(
    "name, variables",
    [
        ("tutorial", {"pair_multicast": True, "pair_auth_pass": "s3cr3tpw", "pair_priorities": [101, 100]}),
        ("two-vips", {"pair_priorities": [150, 50]}),
        (
            "dual-stack",
            {
                "pair_vrrp_version": 3,
                "pair_advert_interval": 0.5,
                "pair_preempt": False,
                "pair_checks": [{"interface": "eth1"}],
                "pair_sync": True,
            },
        ),
        ("group", {"pair_sync": True, "pair_multicast": True}),
        ("link-of-vrrp", {"pair_interface": "eth0", "pair_vrrp_interface": "eth1", "pair_checks": None}),
        ("several-addresses", {"pair_one_instance": True, "pair_sync": None, "pair_preempt_delay": 30}),
    ],
)
def test_what_a_pair_has_once_is_a_variable(name, variables):
    found = keepalived.convert([keepalived.Member(member, "", text) for member, text in texts(name).items()])
    assert {key: found.variables.get(key) for key in variables} == variables


def test_what_is_left_out_is_named_with_its_line_once_for_a_block():
    found = keepalived.convert([keepalived.Member("lb1", "", texts("tutorial")["lb1"])])
    said = {
        "27 (notify_master)": "is left out: set pair_notify to keep what it does.",
        "24 (192.0.2.10/24):": "label is left out: a VIP of a pair is an address on one interface.",
    }
    assert found.lost == [f"lb1: keepalived.conf, line {place} {rest}" for place, rest in said.items()]
    raw = {
        "4 (notification_email)": "global",
        "5 (vrrp_garp_interval)": "global",
        "29 (virtual_server)": "extra",
    }
    assert found.raw == [f"lb1: keepalived.conf, line {at} is in keepalived_{of}_lines." for at, of in raw.items()]
    assert found.variables["keepalived_global_lines"] == [
        "notification_email {",
        "    ops@example.com",
        "}",
        "vrrp_garp_interval 0",
    ]
    assert found.variables["keepalived_extra_lines"] == [
        "virtual_server 192.0.2.10 80 {",
        "    lb_algo rr",
        "    real_server 192.0.2.31 80 {",
        "        weight 1",
        "    }",
        "}",
    ]


def test_a_link_of_vrrp_loses_neither_the_lines_that_name_it_nor_their_interface():
    found = keepalived.convert([keepalived.Member("lb1", "", texts("link-of-vrrp")["lb1"])])
    assert found.variables["pair_vips"] == [{"address": "192.0.2.10/24", "vrid": 51}]
    (lost,) = found.lost
    assert lost.startswith("lb1: keepalived.conf, line 19 (192.0.2.10/24): brd is left out")
    alone = texts("link-of-vrrp")["lb1"].replace(" dev eth0", "")
    assert "line 7 (dont_track_primary)" in keepalived.convert([keepalived.Member("lb1", "", alone)]).lost[0]


def test_members_whose_interfaces_have_other_names_have_them_as_their_own():
    two = texts("link-of-vrrp")
    two["lb2"] = two["lb2"].replace("eth1", "ens7").replace("dev eth0", "dev ens3")
    found = keepalived.convert([keepalived.Member(name, "", text) for name, text in two.items()])
    keys = ("pair_interface", "pair_vrrp_interface")
    assert not {*keys} & {*found.variables}
    names = {name: [found.hosts[name][key] for key in keys] for name in found.hosts}
    assert names == {"lb1": ["eth0", "eth1"], "lb2": ["ens3", "ens7"]}


def test_instances_that_advertise_on_several_links_are_named():
    second = (
        texts("two-vips")["lb1"].replace("vrrp_instance web", "vrrp_instance own").replace("192.0.2.10", "192.0.2.11")
    )
    found = keepalived.convert([keepalived.Member("lb1", "", texts("link-of-vrrp")["lb1"] + second)])
    assert any("pair_vrrp_interface is that of the first one" in note for note in found.notes)
    assert found.variables["pair_vrrp_interface"] == "eth1"


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "no vrrp_instance, so that there is no VIP to convert"),
        ("vrrp_instance a {\n", "no virtual_router_id, in vrrp_instance a: write one"),
        ("$VRID=51\n", "the definition $VRID, which is not evaluated: write its value where it is used"),
        (
            "include /etc/other.conf\n",
            "include /etc/other.conf, and the VIPs, VRIDs and passwords in there are not read: ",
        ),
        ("\0", "a NUL byte, at which keepalived ends the line: take it out"),
    ],
)
def test_what_is_not_understood_is_refused_in_a_sentence(text, said):
    (fault,) = keepalived.convert([keepalived.Member("lb1", "", text)]).faults
    assert fault.startswith(f"lb1: keepalived.conf has {said}")
