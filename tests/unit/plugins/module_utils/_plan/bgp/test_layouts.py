"""Both layouts with BGP: what they refuse for now, what a plan has then, and that VRRP's plan stays as it was."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.filter import plan as filters
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import announcing
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp.gate import Gate
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp.refused import refused
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import unused
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Meanwhile, Move, as_data, member_of
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared.paths import GATE
from support.plans.clusters import cluster
from support.plans.pairs import pair, running
from support.plans.racks import VIP, plan, racks

PEERS = [{"address": "10.0.0.1", "asn": 64601}]


def in_bgp(**settings):
    vips = {"api_vips": ["203.0.113.10"], "ingress_vips": ["203.0.113.11"]}
    return cluster(reach="bgp", bgp={"asn": 64512, "peers": PEERS}, **{**vips, **settings})


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"preset": "upstream"}, "ipi_preset is 'upstream', whose checks elect a holder by weights"),
        ({"preset": "ocp45"}, "ipi_preset is 'ocp45', whose checks elect a holder by weights"),
        (
            {"delivery": "pod"},
            "ipi_delivery is pod, and a run cannot ask FRR in a pod yet: use unit, have onprem.lb.pods write the pods",
        ),
    ],
)
def test_what_a_cluster_cannot_have_yet_is_named(settings, words):
    assert [fault for fault in _ipi.plan(in_bgp(**settings)).faults if fault.startswith(words)]


def test_no_warning_speaks_of_vips_that_move():
    nodes = in_bgp()
    assert _ipi.plan(nodes).faults == [] and not any("move" in said for said in _ipi.plan(nodes).warnings)


def bootstrapping(**settings):
    """Return a cluster of which master-0 is the bootstrap host, and announces the API's VIP."""
    nodes = in_bgp(bootstrap="master-0", **settings)
    units = ["haproxy.service", "frr.service", GATE]
    nodes[0]["host"].update(own_units=units, existing_units=units, on_loopback=["203.0.113.10"], unremovable={})
    return nodes


def test_a_bootstrap_host_announces_the_api_vip_beside_the_masters_and_serves_as_a_backup():
    found = _ipi.plan(bootstrapping())
    assert found.faults == []
    api, _ingress = found.vips
    assert api.order[-1] == "master-0" and len(api.order) > 1
    assert found.members["master-0"].expected.announced == ["203.0.113.10"]
    assert _ipi.plan(in_bgp(bootstrap="10.0.0.20")).faults == [], "one that is no member is a server alone"


def test_it_leaves_at_the_end_of_a_run_that_has_verified_the_masters():
    nodes = bootstrapping(bootstrap_complete=True)
    found = _ipi.plan(nodes)
    assert found.faults == [] and refused(nodes, found, "ipi") == []
    assert found.move == Move(came_from="bgp", stopping=["master-0"])
    assert found.members["master-0"].unused[0] == "frr" and "master-0" not in found.vips[0].order
    for name in found.vips[0].order:
        assert found.members[name].proof.announced == found.members[name].expected.announced != []


@pytest.mark.parametrize("verify", [False, "no"])
def test_it_does_not_leave_unless_they_are_verified(verify):
    nodes = bootstrapping(bootstrap_complete=True, verify=verify)
    (one,) = refused(nodes, _ipi.plan(nodes), "ipi")
    assert one.startswith("ipi_verify is false, and master-0 would announce 203.0.113.10 no more")
    nodes[0]["host"]["on_loopback"] = []
    assert refused(nodes, _ipi.plan(nodes), "ipi") == []


def test_an_unknown_reach_is_a_sentence():
    assert plan(racks(reach="ospf")).faults[:1] == ["pair_reach is 'ospf': one of vrrp, bgp, both is required."]


def test_no_member_has_a_router_and_all_that_serve_have_the_vips():
    planned = plan(racks())
    for member in planned.members.values():
        assert member.router.instances == [] and member.expected.sessions and member.expected.peers == {}
        assert member.expected.units == ["haproxy.service", "frr.service", "onprem-lb-anycast.service"]
        assert member.bgp["frr"]["asn"] == 64512
    assert [(vip.vrid, vip.order) for vip in planned.vips] == [(0, ["lb1", "lb2"])]
    assert planned.record["lb1"] == ["10.0.1.11"]
    assert planned.engines == ["lb1: native, its packages are installed", "lb2: native, its packages are installed"]


def test_each_vip_is_announced_by_all_in_their_order():
    planned = plan(racks(3, vips=[VIP, "203.0.113.11"]))
    assert [vip.order for vip in planned.vips] == [["lb1", "lb2", "lb3"]] * 2
    assert [vip["address"] for vip in planned.members["lb3"].bgp["anycast"]["vips"]] == [VIP, "203.0.113.11"]


def test_what_only_vrrp_has_is_said_once_and_refuses_nothing():
    planned = plan(racks(vrid=7, auth_pass="far-too-long-for-vrrp", advert_interval=0.01, multicast=True, sync=True))
    assert planned.faults == []
    assert planned.warnings == [
        f"pair_{key} has no effect with pair_reach bgp: leave it out."
        for key in ("vrid", "auth_pass", "advert_interval", "multicast", "sync")
    ]
    assert not any("far-too-long" in said for said in planned.warnings)


def test_two_vips_may_be_one_address_in_no_other_way():
    assert plan(racks(vips=[VIP, VIP])).faults == [f"pair_vips[1] is {VIP} again: name each VIP once."]


def test_a_plan_survives_as_data():
    planned = plan(racks())
    data = json.loads(json.dumps(as_data(planned)))
    assert member_of(data["members"]["lb1"]).bgp == planned.members["lb1"].bgp


@pytest.mark.parametrize("given", [pair(), cluster()], ids=["pair", "ipi"])
def test_with_vrrp_nothing_is_announced_or_open_and_settings_of_bgp_change_nothing(given):
    layout = _pair.LAYOUT if given[0]["name"] == "lb1" else _ipi.LAYOUT
    usual = planner.plan(layout, given)
    assert usual.faults == [] and all(member.bgp == {} for member in usual.members.values())
    assert all(member.expected.sessions == [] for member in usual.members.values())
    for each in given:
        each["settings"].update(reach="vrrp", bgp={"asn": "wrong"})
    prefix = layout.prefix
    said = f"{prefix}_bgp has no effect with {prefix}_reach vrrp: set {prefix}_reach to bgp."
    found = planner.plan(layout, given)
    assert found.warnings == [said, *usual.warnings]
    assert found._replace(warnings=usual.warnings) == usual


def test_members_may_differ_in_their_routers_and_in_nothing_else():
    members = racks()
    members[1]["settings"]["bgp_peers"] = [{"address": "10.0.2.254", "asn": 64602}]
    planned = plan(members)
    assert planned.faults == []
    assert [peer["address"] for peer in planned.members["lb2"].bgp["frr"]["peers"]] == ["10.0.2.254"]
    members[1]["settings"]["reach"] = "vrrp"
    said = "pair_reach: lb1 and lb2 disagree ('bgp' and 'vrrp'): set it once, for the whole group."
    assert said in plan(members).faults


def test_a_member_that_announces_keeps_its_balancer_and_loses_its_router():
    host = {"own_units": ["haproxy.service", "keepalived.service"]}
    assert unused.unused(host, "native", serves=True, routes=False, announces=True) == ["keepalived"]
    assert unused.unused(host, "native", serves=False, routes=False, announces=True) == ["keepalived", "haproxy"]
    agents = {"own_units": ["onprem-lb-proxy.service", "onprem-lb-vrrp.service"]}
    assert unused.unused(agents, "agent", serves=True, routes=False, announces=True) == []


def as_recorded(members):
    return [
        {**each, "members": ["lb1", "lb2"], "groups": [], "settings": json.dumps(each["settings"])} for each in members
    ]


def test_a_run_sets_up_what_the_forecast_shows():
    found = filters.layout_plans(as_recorded(racks()), "pair")
    assert found["faults"] == [] and all(member["bgp"] for member in found["plans"][0]["members"].values())
    shown = filters.layout_forecast(as_recorded(racks()), "pair")
    assert shown["faults"] == [] and any(line.startswith(f"{VIP}: announced by lb1, lb2") for line in shown["lines"])


def test_a_pair_that_lives_with_vrrp_can_be_forecast_with_bgp():
    members = racks(vips=["10.0.1.200"])
    for each in members:
        each["host"]["instances"] = [running("vip-10.0.1.200", addresses=["10.0.1.200/32"], source=each["address"])]
        each["host"].update(own_units=["haproxy.service", "keepalived.service"], active_units=["keepalived.service"])
    planned = plan(members)
    assert planned.faults == []
    assert planned.members["lb1"].unused == ["keepalived"]


def test_masters_that_are_servers_of_direct_return_are_refused():
    """They have the VIPs on lo whatever their balancers do."""
    said = [fault for fault in _ipi.plan(in_bgp(plane="direct")).faults if "is a server of direct return" in fault]
    assert {fault.partition(" ")[0] for fault in said} == {"master-0", "master-1", "master-2"}


def test_a_member_has_to_show_its_own_vips_and_the_way_to_those_alone():
    planned = _ipi.plan(in_bgp(ingress_members=["master-0", "worker-0"]))
    assert planned.faults == []
    own = {name: {vip.address for vip in each.expected.vips} for name, each in planned.members.items()}
    both = {"203.0.113.10", "203.0.113.11"}
    assert own == {
        "master-0": both,
        **dict.fromkeys(("master-1", "master-2"), {"203.0.113.10"}),
        "worker-0": {"203.0.113.11"},
    }
    for name, each in planned.members.items():
        assert {target[0] for target in each.expected.targets} & both == own[name]


def test_the_sessions_stay_open_while_old_ports_are_kept():
    """A run that keeps an old port of the balancer must not close BFD meanwhile: routers would withdraw the path."""
    members = racks(services=[{"name": "https", "port": 8443, "servers": ["10.0.1.31"]}])
    planned = plan(members).members["lb1"]
    without = planned.firewall._replace(restricted_ports=[])
    kept = planned._replace(firewall=without, meanwhile=Meanwhile(planned.balancer, without))
    speaker = announcing.read(members, plan(members).vips, members[0]["settings"], "pair", [])
    found = speaker.announced("lb1", kept, Gate({VIP: ["haproxy_down"]}, [], {VIP: "vip"}))
    for opened in (found.firewall, found.meanwhile.firewall):
        assert [each["port"] for each in opened.restricted_ports] == [179, 3784, 3785]


def test_a_run_says_why_no_member_that_announces_returns():
    assert plan(racks()).undo.reason.startswith("no member announces its VIPs yet.")
