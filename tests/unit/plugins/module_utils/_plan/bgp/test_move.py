# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A living pair goes from VRRP to BGP, to both, and back: what its plan has on the way, and what a run refuses."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp.refused import refused
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import handed
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Move, as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import NATIVE, UNITS
from ansible_collections.onprem.lb.plugins.module_utils._shared.paths import GATE
from support.plans.pairs import pair

VIP, ROUTER = "192.0.2.10", "192.0.2.254"
BGP = {"asn": 64512, "peers": [{"address": ROUTER, "asn": 64601}]}
BALANCER, KEEPALIVED = UNITS[NATIVE]
NEITHER, VRRP, ANNOUNCES, BOTH = itertools.product([False, True], repeat=2)
VRRP, ANNOUNCES = (True, False), (False, True)


def living(reach, lb1, lb2, holder="lb1", **settings):
    """Return a pair that has, or has not, VRRP and BGP on each member, and the settings of a run."""
    runs = layout.plan(pair()).members
    members = pair(reach=reach, bgp=BGP, **settings)
    for member, (routes, announces) in zip(members, (lb1, lb2)):
        name, host = member["name"], member["host"]
        units = [BALANCER, *([KEEPALIVED] if routes else []), *(["frr.service"] if announces else [])]
        host.update(own_units=units, active_units=units, existing_units=[*units, *([GATE] if announces else [])])
        host.update(keepalived_version="2.2.7", on_loopback=["127.0.0.1", *([VIP] if announces else [])])
        if routes:
            host["instances"] = [{"auth_pass": "", **each} for each in runs[name].router.instances]
        if routes and name == holder:
            host["addresses"] += [{**host["addresses"][1], "address": VIP, "prefix": 32}]
    return members


def plan(*arguments, **settings):
    found = layout.plan(living(*arguments, **settings))
    assert found.faults == []
    return found


def test_nothing_moves_where_the_reach_stays_or_all_are_new():
    for reach, now in (("vrrp", VRRP), ("bgp", ANNOUNCES), ("both", BOTH)):
        assert plan(reach, now, now).move == plan(reach, NEITHER, NEITHER).move == Move()


def test_to_bgp_vrrp_stays_as_it_is_until_the_end():
    found = plan("bgp", VRRP, VRRP)
    assert (found.move.announcing, found.move.stopping) == (["lb1", "lb2"], ["lb2", "lb1"])
    assert found.order == [["lb2"], ["lb1"]], "the balancers, the holder's last"
    assert not (found.sole_router or found.leaving or found.joining or found.routers_together)
    for member in found.members.values():
        assert member.quiet and member.router.instances == [] and member.unused == ["keepalived"]
        assert member.meanwhile.firewall.keep and not member.firewall.keep
        assert member.expected.every_path and not member.expected.elects and member.expected.announced == [VIP]
        assert member.proof.units == [BALANCER, KEEPALIVED] and member.proof.sessions == member.proof.announced == []
        assert member.proof.elects and [vip.address for vip in member.proof.vips] == [VIP]
    assert found.undo.members == []


def test_back_the_routers_start_together_and_bgp_stays_until_the_end():
    found = plan("vrrp", ANNOUNCES, ANNOUNCES)
    assert (found.move.announcing, found.move.stopping) == ([], ["lb2", "lb1"])
    assert found.order == [["lb1"], ["lb2"]] and found.routers_together
    for member in found.members.values():
        assert member.quiet and member.router.instances and member.bgp == {} and member.unused == ["frr"]
        assert member.meanwhile.firewall.keep and member.expected.elects and not member.expected.every_path
        assert member.proof.units == [BALANCER] and member.proof.vips == []
        assert VIP not in [address for address, _port in member.proof.targets]
    assert found.undo.members == []


@pytest.mark.parametrize("now, announcing", [(VRRP, ["lb1", "lb2"]), (ANNOUNCES, [])])
def test_both_adds_the_other_one_and_ends_nothing(now, announcing):
    found = plan("both", now, now)
    assert (found.move.to, found.move.announcing, found.move.stopping) == ("both", announcing, [])
    assert found.routers_together == (now == ANNOUNCES)
    for member in found.members.values():
        assert member.quiet and member.router.instances and member.bgp and member.unused == []
        assert member.expected.elects and member.expected.sessions == [ROUTER]


@pytest.mark.parametrize("reach, now", [("both", BOTH), ("bgp", VRRP), ("vrrp", ANNOUNCES)])
def test_where_there_are_both_or_will_be_for_a_while_both_go_on(reach, now):
    found = plan(reach, now, now).undo
    assert found.members == [] and found.reason.startswith("VRRP and BGP both go on")


def test_a_pair_with_both_stays_quiet_and_has_a_forecast_for_either_kind_of_client():
    found = plan("both", BOTH, BOTH)
    assert all(member.quiet and member.meanwhile is None for member in found.members.values())
    by_bgp = found.table.index("Clients that come through a router, by BGP:")
    assert found.table[0] == "Clients on the members' link, by VRRP:" and by_bgp > 1
    assert not [said for said in found.warnings if "ARP" in said or "no effect" in said]
    firewall = found.members["lb1"].firewall
    assert firewall.vrrp_peers == ["192.0.2.2"] and {"protocol": "tcp", "port": 179, "networks": [ROUTER]} in (
        firewall.restricted_ports
    )


INTERRUPTED = [*itertools.product([VRRP, ANNOUNCES, BOTH], repeat=2)]


@pytest.mark.parametrize("lb1, lb2", INTERRUPTED)
@pytest.mark.parametrize("reach", ["vrrp", "bgp", "both"])
def test_a_run_that_was_interrupted_anywhere_is_completed_by_the_next_one_to_any_reach(reach, lb1, lb2):
    holder = next((name for name, now in (("lb1", lb1), ("lb2", lb2)) if now[0]), "")
    found = plan(reach, lb1, lb2, holder=holder)
    stays = {"vrrp": VRRP, "bgp": ANNOUNCES, "both": BOTH}[reach]
    assert bool(found.move.to) == ((lb1, lb2) != (stays, stays))
    for name, now in (("lb1", lb1), ("lb2", lb2)):
        member = found.members[name]
        assert member.quiet == ("always" if reach == "both" else "meanwhile" if found.move.to else "")
        assert ("keepalived" in member.unused, "frr" in member.unused) == (
            now[0] and reach == "bgp",
            now[1] and reach == "vrrp",
        )
        if reach != "both":
            assert not member.unused or name in found.move.stopping


def said(*arguments, **settings):
    members = living(*arguments, **settings)
    return refused(members, layout.plan(members), "pair")


def test_clients_on_the_link_are_asked_for_first():
    assert said("bgp", VRRP, VRRP) == [
        f"VIP {VIP} is inside 192.0.2.0/24, and its clients there would lose what VRRP gives them: use pair_reach: "
        "both, which keeps VRRP for them, or accept that with -e pair_accept_routed_only=true."
    ]
    assert said("bgp", VRRP, VRRP, accept_routed_only="true") == said("both", VRRP, VRRP) == []
    assert (
        said("vrrp", ANNOUNCES, ANNOUNCES) == said("bgp", ANNOUNCES, ANNOUNCES) == said("bgp", NEITHER, NEITHER) == []
    )


@pytest.mark.parametrize("reach, now", [("bgp", VRRP), ("vrrp", ANNOUNCES), ("both", VRRP), ("both", ANNOUNCES)])
def test_nobody_stays_behind(reach, now):
    members = living(reach, now, now, accept_routed_only=True)
    members[1]["outside_limit"] = True
    (one,) = refused(members, layout.plan(members), "pair")
    assert one.startswith("--limit leaves lb2 out, and the way between VRRP and BGP needs every member")
    planned = layout.plan(members)
    members[1].update(silent=True, host=None)
    assert refused(members, planned, "pair") == [
        "lb2 does not answer, and the way between VRRP and BGP needs every member: wait until it does."
    ]


AGENT = [*UNITS[engines.AGENT]]


def agent_of(planned, member):
    """Return what the role of the agent is handed."""
    about = handed.About("pair", member["host"], auth_pass="", raw={}, waits=False, before=False)
    return handed.to_components(as_data(planned)["members"][member["name"]], about)["agent"]


@pytest.mark.parametrize("verify", [False, "false", "no"])
def test_nothing_ends_that_no_verification_precedes(verify):
    (one,) = said("vrrp", ANNOUNCES, ANNOUNCES, verify=verify)
    assert one.startswith("pair_verify is false, and neither VRRP nor BGP ends before the other one is verified")
    assert said("bgp", ANNOUNCES, ANNOUNCES, verify=verify) == []


def test_a_router_of_others_would_stay_and_is_adopted_first():
    members = living("bgp", VRRP, VRRP, accept_routed_only=True)
    for member in members:
        member["host"]["own_units"] = [BALANCER]
    assert [fault.split(":")[0] for fault in refused(members, layout.plan(members), "pair")] == [
        f"{name} has a VRRP router of others that carries these VIPs, and would keep it" for name in ("lb1", "lb2")
    ]


@pytest.mark.parametrize("reach", ["bgp", "both"])
def test_the_agent_moves_as_well_and_its_router_ends_last(reach):
    members = living(reach, VRRP, VRRP, engine="agent", accept_routed_only=True)
    for member in members:
        member["host"].update(own_units=AGENT, active_units=AGENT)
    planned = layout.plan(members)
    assert planned.faults == [] and refused(members, planned, "pair") == []
    assert planned.move.announcing == ["lb1", "lb2"]
    assert planned.move.stopping == (["lb2", "lb1"] if reach == "bgp" else [])
    kept = {"bgp": ["vrrp"], "both": []}[reach]
    for member in members:
        assert agent_of(planned, member)["keep"] == kept
        member["host"]["own_units"] = AGENT[:1]
        assert agent_of(planned, member)["keep"] == [], "there is nothing to keep"


@pytest.mark.parametrize(
    "reach, now, words", [("bgp", VRRP, "and its reach in one run"), ("both", BOTH, "VRRP beside BGP")]
)
def test_with_vrrp_a_change_of_the_engine_waits_for_a_run_of_its_own(reach, now, words):
    found = said(reach, now, now, engine="agent", accept_routed_only=True)
    assert [fault.split(" would")[0] for fault in found] == ["lb1", "lb2"] and words in found[0]


def test_a_vip_that_vrrp_holds_is_nobodys_own_address():
    members = living("bgp", VRRP, VRRP)
    members[0]["host"]["addresses"][-1]["prefix"] = 24
    assert layout.plan(members).faults == []
