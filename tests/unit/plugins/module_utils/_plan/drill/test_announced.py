# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill where BGP carries the VIPs: on whom an event is injected, for how long, and what the measurements say."""

from __future__ import annotations

import random

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import announcing, forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import (
    announced,
    history,
    lost_servers,
    page,
    report,
    rounds,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, events
from support.drills import ASKED, simulated
from support.plans.clusters import cluster
from support.plans.racks import ROUTER_ASN, VIP, VIP6, plan, racks, router

EVERY = list(events.EVENTS)
DRILLED = {
    *("haproxy_killed", "haproxy_stopped", "haproxy_hung", "haproxy_reloaded", "host_cut", "port_down"),
    *("host_rebooted", "conntrack_full", "disk_full", *events.OF_BGP),
}


def planned(members):
    found = plan(members)
    assert found.faults == []
    return as_data(found)


def drilled(members, wanted=None, repeats=1):
    return rounds.rounds([planned(members)], members, wanted or EVERY, repeats)


def refused(members, wanted=None):
    return announced.refusals([planned(members)], members, wanted or EVERY)


def with_second_router(members, **changes):
    for number, each in enumerate(members, 1):
        each["settings"]["bgp"]["peers"].append({"address": f"10.0.{number}.2", "asn": ROUTER_ASN, **changes})
    return members


@pytest.mark.parametrize("count", [2, 3])
def test_every_event_that_the_forecast_has_is_drilled_on_the_member_that_it_names(count):
    members = racks(count)
    outages = {line["event"]: line for line in planned(members)["outages"]}
    found = drilled(members)
    assert {each["event"] for each in found} == DRILLED
    for each in found:
        assert each["on"] == outages[each["event"]]["member"] and each["holder"] == ""
        assert sorted(each["targets"]) == [f"lb{at}" for at in range(1, count + 1)]


@pytest.mark.parametrize("engine", [engines.NATIVE, engines.AGENT])
def test_each_vip_of_a_cluster_is_drilled_on_one_of_its_own_members(engine):
    vips = {"api_vips": [VIP], "ingress_vips": ["203.0.113.11"]}
    nodes = cluster(
        reach="bgp", engine=engine, bgp={"asn": 64512, "peers": [{"address": "10.0.0.1", "asn": ROUTER_ASN}]}, **vips
    )
    made = _ipi.plan(nodes)
    assert made.faults == []
    orders = {vip.address: vip.order for vip in made.vips}
    found = rounds.rounds([as_data(made)], nodes, [events.PATH_WITHDRAWN, events.PATH_BACK], 1)
    assert sorted({each["vip"] for each in found}) == sorted(orders)
    for each in found:
        assert each["on"] in orders[each["vip"]] and sorted(each["targets"]) == sorted(orders[each["vip"]])
        assert {target["engine"] for target in each["targets"].values()} == {engine}


def test_one_member_is_asked_for_each_event_and_the_router_that_is_gone_is_named():
    found = rounds.asked(drilled(racks()))
    assert {(each["event"], each["member"]) for each in found} == {(event, "lb1") for event in DRILLED}
    assert {each["event"]: each["router"] for each in found if each["router"]} == {events.ROUTER_GONE: router(1)}
    assert {each["interface"] for each in found} == {"eth0"}


def test_each_family_has_its_rounds():
    members = racks(vips=[VIP, VIP6])
    for number, each in enumerate(members, 1):
        each["settings"]["bgp"]["peers"].append({"address": f"2001:db8:{number}::1", "asn": ROUTER_ASN})
    gone = {each["vip"]: each["router"] for each in drilled(members, [events.ROUTER_GONE])}
    assert gone == {VIP: router(1), VIP6: "2001:db8:1::1"}


def test_a_dry_run_names_the_member():
    said = rounds.announced(drilled(racks(), [events.PATH_WITHDRAWN], 2))
    assert said[1:] == [f"path_withdrawn on lb1, {VIP}: 2 rounds"]


def test_the_probe_ends_before_the_event_is_reverted_and_sees_what_lasts_end():
    for each in drilled(racks()):
        if each["event"] in (events.PATH_BACK, events.HOST_REBOOTED):
            continue
        limit = each["forecast"]["outage_ms"] / 1000
        assert each["waits"] == 0
        assert each["minimum"] >= each["after"] + limit + announced.LASTING_S
        # The probe may start as late as the event.
        assert each["revert_after"] >= each["minimum"] + rounds.LATE_MS / 1000
        assert each["duration"] > each["minimum"]


def test_a_path_that_comes_back_is_withdrawn_before_the_probe_and_back_while_it_looks():
    (each,) = drilled(racks(), [events.PATH_BACK])
    back = each["after"] + each["revert_after"]
    assert each["waits"] > each["after"] + 1  # the routers have taken it out
    assert each["waits"] + rounds.START_DELAY < back < each["waits"] + each["minimum"] - announced.LASTING_S


def alone(members):
    """Return the plan of two members, of which one alone has the VIP, as of a cluster with one node for it."""
    found = plan(members)
    vip = found.vips[0]._replace(order=["lb1"])
    lines = forecast.forecast(found._replace(vips=[vip], watched=announcing.watched(found.watched, [])), {}, {}).outages
    return {**as_data(found), "outages": lines}


def test_the_only_member_is_never_drilled_but_by_what_costs_nothing():
    members = racks()
    found = rounds.rounds([alone(members)], members, EVERY, 1)
    assert {each["event"] for each in found} == {events.HAPROXY_RELOADED, events.DISK_FULL}
    said = announced.refusals([alone(members)], members, EVERY)
    assert {line.partition(" ")[0] for line in said} == DRILLED - {events.HAPROXY_RELOADED, events.DISK_FULL}
    assert {line.partition(": ")[2] for line in said} == {"lb1 is the only member that announces it."}


def test_what_one_vip_cannot_have_is_drilled_on_another_that_can():
    members = racks()
    assert announced.refusals([alone(members), planned(members)], members, EVERY) == []


@pytest.mark.parametrize("event", announced.ON_INTERFACE)
def test_a_member_with_routers_on_two_interfaces_is_not_cut_off_by_one(event):
    members = racks()
    for number, each in enumerate(members, 1):
        each["host"]["addresses"].append(
            {"interface": "eth1", "mac": "02:00:00:00:01:01", "address": f"10.1.{number}.11", "prefix": 24}
        )
    assert refused(members, [event]) == []  # its routers are on the first one
    for number, each in enumerate(members, 1):
        each["settings"]["bgp"]["peers"].append({"address": f"10.1.{number}.1", "asn": ROUTER_ASN})
    (said,) = refused(members, [event])
    assert said.startswith(f"{event} is not for {VIP}: the routers of lb1 are on eth0, eth1, and the drill takes one")
    assert drilled(members, [event]) == []
    assert refused(members, [events.PATH_WITHDRAWN]) == []


def test_a_router_that_is_further_away_may_be_on_any_interface():
    members = racks()
    for number, each in enumerate(members, 1):
        each["host"]["addresses"].append(
            {"interface": "eth1", "mac": "02:00:00:00:01:01", "address": f"10.1.{number}.11", "prefix": 24}
        )
        each["settings"]["bgp"]["peers"] = [{"address": "10.9.9.1", "asn": ROUTER_ASN, "multihop": 2, "bfd": True}]
    assert "are on eth0, eth1" in refused(members, [events.HOST_CUT])[0]
    assert drilled(members, [events.ROUTER_GONE]) == []


def test_the_router_that_is_gone_is_the_slowest_one_to_notice():
    (each,) = drilled(with_second_router(racks(), bfd=False), [events.ROUTER_GONE])
    assert (each["router"], each["forecast"]["outage_ms"]) == ("10.0.1.2", 9000)
    assert each["forecast"]["left"] == ["lb1", "lb2"]  # by the other router


def test_a_server_is_not_taken_away_where_every_member_has_a_balancer():
    members = racks()
    (said,) = lost_servers.refusals([planned(members)], members, [events.SERVER_CUT], "")
    assert said.startswith(f"server_cut is not for {VIP}: all members that announce it have balancers of their own")
    assert drilled(members, [events.SERVER_CUT]) == []


def tried(router="", reason="", vip=VIP):
    return {"item": {"vip": vip}, "router": router, "reason": reason}


def test_the_probe_must_be_behind_a_router():
    plans = [planned(racks())]
    assert announced.unrouted(plans, [tried("10.9.0.1")]) == []
    assert announced.unrouted(plans, [tried(vip="192.0.2.10")]) == []  # which VRRP carries
    on_link, own = (
        announced.unrouted(plans, [each, each]) for each in (tried(), tried(reason="This host holds the address."))
    )
    assert len(on_link) == len(own) == 1
    assert f"does not reach {VIP} through a router" in on_link[0] and "on a link of this host" in on_link[0]
    assert "This host holds the address." in own[0]


def seen(failed=0, attempts=0, window=0.0, lost=0, held=20, late=0, closed=0, opening=0):
    return {
        **simulated()[-1]["seen"],
        "impaired": {
            "late": late,
            "failed": failed,
            "open": opening,
            "window_ms": window,
            "attempts": attempts,
            "worst_ms": 300.0,
            "usual_ms": 2.0,
        },
        "lasting": {"held": held, "lost": lost, "closed": closed},
        "tried": 2000,
        "failed_attempts": failed + late,
        "holders_known": False,
        "holder_before": None,
        "holder_after": None,
        "timeline": [],
    }


def results(event, *seens, members=None, measured=True):
    (one,) = drilled(members or racks(), [event])
    common = {"member": one["on"], "interval_ms": 5.0, "injected_at": "2026-01-31T12:00:03+00:00"}
    return [{**one, **ASKED, "targets": one["targets"], **common, "measured": measured, "seen": each} for each in seens]


def judged(event, *seens, **options):
    (row,) = report.report(results(event, *seens, **options))["rows"]
    return row


def faults(event, *seens, **options):
    return [fault.partition(": ")[2] for fault in judged(event, *seens, **options)["broken"]]


def test_shares_stand_beside_the_forecast_each_in_a_column():
    found = report.report(results(events.PATH_WITHDRAWN, seen(15, 31, 150.0, 9), seen(16, 29, 145.0, 11)))
    (row,) = found["rows"]
    assert (row["new_failed"], row["lasting_share"]) == ("52 % (50 %)", "50 % (50 %)")
    assert (row["outage_ms"], row["worst_ms"], row["limit_ms"], row["unserved_ms"]) == (147.5, 150.0, 200, 150.0)
    assert (row["before"], row["after"], row["faults"]) == (["lb1", "lb2"], ["lb2"], [])
    head = found["table"][0]
    assert "new ones failed (plan)" in head and "lasting lost (plan)" in head


def test_a_table_of_vrrp_has_no_such_columns():
    assert "(plan)" not in str(report.report(simulated())["table"])


def test_what_is_longer_or_more_than_planned_is_a_fault():
    event = events.PATH_WITHDRAWN
    assert faults(event, seen(15, 31, 150.0, 9)) == []
    assert faults(event, seen(20, 41, 206.0, 9)) == ["new connections failed for 206 ms, the plan says at most 200 ms."]
    assert faults(event, seen(31, 31, 150.0, 9)) == ["31 of 31 new connections failed, the plan says 50 %."]
    assert faults(event, seen(15, 31, 150.0, 20)) == [
        "20 of 20 lasting connections were lost, the plan says 50 % at most."
    ]
    assert faults(events.BFD_LOST, seen(1, 1, 0.0, 9)) == ["1 new connections failed, the plan says none."]
    assert faults(events.PATH_BACK, seen(lost=9)) == []
    assert faults(events.PATH_BACK, seen(late=1, attempts=1)) != []


def test_what_a_balancer_has_closed_itself_is_not_lost_unless_the_balancer_was_what_failed():
    """haproxy ends a connection that has asked nothing for 10 s."""
    assert faults(events.PATH_BACK, seen(lost=20, closed=11)) == []
    assert judged(events.PATH_BACK, seen(lost=20, closed=11))["lasting_share"] == "45 % (50 %)"
    assert judged(events.HOST_CUT, seen(lost=20, closed=20))["outage_ms"] is None  # nobody met the member
    for event in (events.HAPROXY_KILLED, events.HAPROXY_STOPPED):
        assert judged(event, seen(15, 31, 150.0, lost=9, closed=9))["lasting_share"].startswith("45 %")


def test_a_connection_that_was_being_opened_counts_as_one_that_lasts():
    """Its first packets went to another member than the later ones."""
    assert faults(events.PATH_BACK, seen(opening=1, attempts=1, lost=9)) == []
    assert judged(events.PATH_BACK, seen(opening=1, attempts=1, lost=9))["new_failed"] == "none (0 %)"
    assert faults(events.PATH_BACK, seen(opening=1, failed=1, attempts=9, lost=9)) != []
    assert faults(events.HAPROXY_RELOADED, seen(opening=1, attempts=1)) != []
    assert judged(events.PATH_WITHDRAWN, seen(14, 31, 150.0, 9, opening=1))["new_failed"] == "48 % (50 %)"


def test_what_ends_by_itself_may_cost_what_a_return_costs_too():
    assert faults(events.HAPROXY_KILLED, seen(15, 31, 150.0, 19)) == []
    assert faults(events.HAPROXY_STOPPED, seen(15, 31, 150.0, 19)) != []


@pytest.mark.parametrize("count", [2, 3, 7])
def test_a_fair_draw_is_no_fault_and_everything_is_one(count):
    chance, members = random.Random(count), racks(count)
    for _round in range(40):
        hit = [True, *(chance.random() < 1 / count for _attempt in range(28)), True]
        lasts = sum(chance.random() < 1 / count for _one in range(20))
        assert faults(events.HOST_CUT, seen(sum(hit), len(hit), 150.0, lasts), members=members) == []
    assert faults(events.HOST_CUT, seen(30, 30, 150.0, 3), members=members) != []


def test_where_nobody_met_the_member_nothing_was_measured():
    row = judged(events.HOST_CUT, seen())
    assert (row["outage_ms"], row["broken"]) == (None, [])
    assert row["new_failed"] == "none (50 %): the probe met other members"
    assert judged(events.HAPROXY_RELOADED, seen())["outage_ms"] == 0
    assert judged(events.HOST_CUT, seen(lost=8))["outage_ms"] == 0


def with_direct_return(port, plane="direct"):
    """Members on one link with their servers."""
    members = racks(services=[{"name": "api", "port": port, "plane": plane, "servers": ["10.0.1.31", "10.0.2.31"]}])
    for each in members:
        each["host"]["addresses"][1]["prefix"] = 16
    return members


def test_what_direct_return_keeps_may_not_be_lost():
    members = with_direct_return(ASKED["question"]["port"])
    row = judged(events.HAPROXY_KILLED, seen(), members=members)
    assert (row["new_failed"], row["lasting_share"]) == (
        "none (50 %): direct return, or the probe met other members",
        "0 % (0 %)",
    )
    for event in (events.HOST_CUT, events.PATH_BACK):
        assert faults(event, seen(lost=9), members=members) == [
            "9 of 20 lasting connections were lost, the plan says 0 % at most."
        ]


@pytest.mark.parametrize(("port", "plane"), [(443, "direct"), (ASKED["question"]["port"], "draining")])
def test_what_the_probe_asks_is_lost_if_a_proxy_answers_it(port, plane):
    row = judged(events.HOST_CUT, seen(15, 31, 150.0, 9), members=with_direct_return(port, plane))
    assert row["lasting_share"] == "45 % (50 %)"


def test_no_lasting_connection_and_a_probe_that_only_connects_are_said():
    assert judged(events.HOST_CUT, seen(15, 31, 150.0, held=0))["lasting_share"] == "none held (50 %)"
    assert judged(events.HAPROXY_HUNG, seen(), measured=False)["outage_ms"] is None


@pytest.mark.parametrize("found", [seen(), seen(15, 31, 150.0, 9)])
def test_the_page_says_it_in_words(found):
    every = results(events.PATH_WITHDRAWN, found)
    told = report.report(every)
    about = {"at": 0, "layout": "pair", "ansible": "2", "interval_ms": 5, "plans": [], "members": {"lb1": [{}, {}]}}
    kept = history.history(told, about, [])._asdict()
    (event,) = page.page(every, told, kept).events
    assert "lb1, lb2 announced the VIP before, and by the plan lb2 after. Of new connections " in event.words[0]
    assert "of lasting ones" in event.words[0]
