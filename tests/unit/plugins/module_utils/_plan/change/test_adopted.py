# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pair that was set up by hand keeps its VRIDs and its password, whatever its instances are called."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf as keepalived_conf
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import hosts as _members
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import member, pair

# As in the cluster load balancer's page of the RKE2 documentation, with a password.
BY_HAND = """\
vrrp_instance haproxy-vip {
    interface eth0
    state MASTER
    priority 200
    virtual_router_id 77
    authentication {
        auth_type PASS
        auth_pass byhand12
    }
    virtual_ipaddress {
        192.0.2.10/24
    }
}
"""
OTHER = """\
vrrp_instance other {
    virtual_router_id 9
    authentication {
        auth_type PASS
        auth_pass other123
    }
    virtual_ipaddress {
        192.0.2.99
    }
}
"""


def adopted(*texts, **settings):
    members = [member(number, **{"vrid": None, **settings}) for number in range(1, len(texts) + 1)]
    for one, text in zip(members, texts):
        one["host"]["instances"] = keepalived_conf.instances(text)
        one["host"]["takeover"] = {"keepalived": {"keep": ["/etc/keepalived/keepalived.conf"]}}
    return members


def password(members):
    return _members.auth_pass(members, new_uuid=lambda: "0f3a9c1e-77aa-4d")


def test_the_vrid_and_the_password_are_kept():
    members = adopted(BY_HAND, BY_HAND)
    plan = _pair.plan(members)
    assert plan.faults == [] and [(vip.name, vip.vrid) for vip in plan.vips] == [("vip-192.0.2.10", 77)]
    assert password(members) == "byhand12"
    assert plan.sole_router == "lb1", "it sent by multicast, and the plan is unicast"


def test_an_ipv6_address_is_recognised_in_every_spelling():
    text = BY_HAND.replace("192.0.2.10/24", "2001:0DB8:0::10/64 dev eth0")
    plan = _pair.plan(adopted(text, text, vips=["2001:db8::10"]))
    assert plan.faults == [] and [vip.vrid for vip in plan.vips] == [77]


def test_of_two_vips_in_one_instance_the_first_keeps_the_vrid():
    text = BY_HAND.replace("192.0.2.10/24", "192.0.2.11\n        192.0.2.10/24")
    plan = _pair.plan(adopted(text, text, vips=["192.0.2.10", "192.0.2.11"]))
    assert plan.faults == [] and plan.vips[0].vrid == 77 != plan.vips[1].vrid


def test_a_vrid_of_the_user_comes_before_the_living_one():
    assert [vip.vrid for vip in _pair.plan(adopted(BY_HAND, BY_HAND, vrid=51)).vips] == [51]


def test_the_password_is_that_of_the_layouts_own_vip_whatever_else_is_in_the_file():
    assert password(adopted(OTHER + BY_HAND, OTHER + BY_HAND)) == "byhand12"
    assert password(adopted(OTHER, BY_HAND)) == "byhand12"
    assert password(adopted(OTHER, OTHER)) == "other123", "there is none of the VIP's own"


def test_a_living_pair_without_a_password_keeps_none_because_its_members_would_not_hear_each_other():
    without = BY_HAND.replace("auth_pass byhand12", "")
    assert password(adopted(without, without)) == password(adopted(OTHER + without, without)) == ""
    version_3 = without.replace("virtual_router_id", "version 3\n    virtual_router_id")
    assert password(adopted(version_3, version_3)) == "0f3a9c1e", "version 3 has no passwords"
    assert password(pair()) == "0f3a9c1e"


@pytest.mark.parametrize("instances, faults", [(BY_HAND, 0), ("", 1)])
def test_a_vip_that_the_living_pair_holds_with_the_links_prefix_is_not_the_hosts_own(instances, faults):
    members = adopted(instances, instances)
    members[0]["host"]["addresses"].append(
        {"interface": "eth0", "address": "192.0.2.10", "prefix": 24, "mac": "02:00:00:00:00:01"}
    )
    assert len(_pair.plan(members).faults) == faults


def test_a_vip_that_only_the_living_pair_has_is_named_before_it_is_given_up():
    members = adopted(BY_HAND + OTHER, BY_HAND)
    sentence = "lb1: VIP 192.0.2.99 is in its keepalived.conf but not in the plan, so this member gives it up."
    assert [each for each in _pair.plan(members).warnings if "192.0.2.99" in each] == [sentence]
    members[0]["host"]["takeover"]["keepalived"]["keep"] = []
    assert not [each for each in _pair.plan(members).warnings if "192.0.2.99" in each], "it is this collection's file"


def test_a_vip_that_is_not_advertised_is_one_and_keeps_its_vrid():
    text = BY_HAND.replace(
        "virtual_ipaddress {", "virtual_ipaddress_excluded {\n 2001:db8::10/64\n }\n virtual_ipaddress {"
    )
    members = adopted(text, text, vips=["192.0.2.10", "2001:db8::10/64"])
    mac = "02:00:00:00:00:01"
    members[0]["host"]["addresses"].append({"interface": "eth0", "address": "2001:db8::10", "prefix": 64, "mac": mac})
    plan = _pair.plan(members)
    assert (plan.faults, [vip.vrid for vip in plan.vips]) == ([], [77, 77])
    plan = _pair.plan(adopted(text, text))
    sentence = "lb1: VIP 2001:db8::10 is in its keepalived.conf but not in the plan, so this member gives it up."
    assert sentence in plan.warnings


def test_what_goes_with_the_old_file_is_named_with_the_members_and_the_variable():
    members = adopted(BY_HAND, BY_HAND)
    for one, lost in zip(
        members, ([["a of b", "notify"], ["use_vmac of b", ""]], [["a of b", "notify"], ["c", "keepalived_x"]])
    ):
        one["host"]["takeover"]["keepalived"]["lost"] = lost
    found = [each for each in _pair.plan(members).warnings if "lost with the adoption" in each]
    assert found == [
        "lb1, lb2: keepalived.conf has a of b, which is lost with the adoption: set pair_notify to keep what it does.",
        "lb1: keepalived.conf has use_vmac of b, which is lost with the adoption: no variable replaces it.",
        "lb2: keepalived.conf has c, which is lost with the adoption: add its lines to keepalived_x.",
    ]


# -- a keepalived that others have started is restarted


def restarted(*texts, holder="lb1", **settings):
    members = adopted(*texts, **settings)
    for one in members:
        one["host"]["takeover"]["keepalived"]["restart"] = True
        one["host"].update(active_units=["keepalived.service"], keepalived_version="2.2.7")
        if one["name"] == holder:
            mac = one["host"]["addresses"][1]["mac"]
            one["host"]["addresses"].append({"interface": "eth0", "address": "192.0.2.10", "prefix": 24, "mac": mac})
    return members


def announced(plan):
    return [each.strip() for each in plan.warnings if " is restarted " in each]


def unicast(number):
    """The settings of the new file, so that nothing splits."""
    return BY_HAND.replace("virtual_ipaddress", f"unicast_peer {{\n 192.0.2.{3 - number}\n }}\n virtual_ipaddress")


def test_the_sole_router_that_is_restarted_is_announced_with_its_restart_and_an_active_down_interval():
    plan = _pair.plan(restarted(BY_HAND, BY_HAND))
    assert (plan.faults, plan.sole_router) == ([], "lb1")
    assert announced(plan) == ["keepalived           runs -> is restarted     at most  5560 ms   moves the VIP, on lb1"]


@pytest.mark.parametrize("texts, units", [((BY_HAND, BY_HAND), 1), ((unicast(1), unicast(2)), 2)])
def test_what_others_have_started_need_not_have_loaded_a_file_of_ours_before_it_is_restarted(texts, units):
    plan = _pair.plan(restarted(*texts))
    assert plan.routers_together == (units == 1)
    assert plan.members["lb2"].proof.units == ["haproxy.service", "keepalived.service"][:units]


def test_where_nothing_splits_the_holder_is_restarted_last_and_its_vips_are_taken_over():
    plan = _pair.plan(restarted(unicast(1), unicast(2)))
    assert (plan.faults, plan.sole_router, plan.order) == ([], "", [["lb2"], ["lb1"]])
    (line,) = announced(plan)
    assert int(line.split("at most")[1].split()[0]) < 1100 and line.endswith("moves the VIP, on lb1")


def test_a_lone_member_that_is_restarted_is_announced_with_its_restart_and_an_active_down_interval():
    members = restarted(unicast(1), unicast(2))
    members[1]["host"].update(active_units=[], instances=[])
    (line,) = announced(_pair.plan(members))
    assert "at most  5560 ms" in line


def test_with_the_agent_no_keepalived_is_restarted():
    assert announced(_pair.plan(restarted(unicast(1), unicast(2), engine="agent"))) == []


def test_of_members_that_hold_nothing_a_restart_is_not_announced():
    assert announced(_pair.plan(restarted(unicast(1), unicast(2), holder=""))) == []


@pytest.mark.parametrize(
    "where, taken",
    [("", False), ("haproxy.service", False), ("the docker container 4f2a", True), ("kolla-haproxy.service", True)],
)
def test_a_haproxy_of_others_on_a_port_of_the_services_is_named_by_what_it_runs_in(where, taken):
    members = pair()
    listener = {"address": "0.0.0.0", "port": 80, "program": "haproxy", "pid": 99, "runs_in": where}
    members[1]["host"]["listeners"].append(listener)
    sentence = (
        f"lb2: port 80 of service infra_nodes-80 is already taken by haproxy in {where} (pid 99): "
        "stop that program or move the service."
    )
    assert _pair.plan(members).faults == [sentence] * taken
