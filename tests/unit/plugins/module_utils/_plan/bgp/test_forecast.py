"""What each failure costs where BGP carries the VIPs, and what the routers must do."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import forecast as _forecast
from ansible_collections.onprem.lb.plugins.module_utils._shared import events
from support.plans.racks import ROUTER_ASN, VIP, plan, racks, router, with_peer


def outages(members):
    planned = plan(members)
    assert planned.faults == []
    return {line["event"]: line for line in planned.outages}


def costs(line):
    return line["share"], line["outage_ms"], line["lost"], line["lost_at_most"], line["back_lost"]


# The bounds that were asked for: 200 ms for a balancer that is killed, 3 s for one that hangs, 250 ms for a lost host.
def test_what_each_failure_costs_two_members():
    found = outages(racks())
    assert costs(found[events.HAPROXY_KILLED]) == (50, 200, 50, 50, 50)
    assert costs(found[events.HAPROXY_HUNG]) == (50, 2700, 50, 50, 50)
    assert costs(found[events.HOST_CUT]) == (50, 250, 50, 50, 50)
    assert costs(found[_forecast.DRAINED]) == (0, 0, 50, 50, 50)
    assert costs(found[events.BGP_KILLED]) == (0, 0, 50, 50, 50)
    assert costs(found[events.HAPROXY_RELOADED]) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_of_n_members_one_costs_a_part_and_what_lasts_at_most_all_but_one(count):
    line = outages(racks(count))[events.HOST_CUT]
    share, most = round(100 / count), round(100 * (count - 1) / count)
    assert costs(line) == (share, 250, share, most, most)
    assert line["left"] == [f"lb{at}" for at in range(2, count + 1)] and len(line["before"]) == count


@pytest.mark.parametrize("count", [2, 3, 5])
def test_whatever_fails_somebody_is_left(count):
    assert all(line["left"] for line in outages(racks(count)).values())


@pytest.mark.parametrize(
    "bfd, hold_time, expected",
    [
        ({"interval": 50}, 9, 250),  # measured: 204 to 216
        ({"interval": 100}, 9, 400),  # 281 to 348
        ({"interval": 300}, 9, 1000),  # 805 to 979
        (False, 9, 9000),  # 8400 to 8600
        (False, 90, 90000),
        ({"interval": 2000}, 3, 3000),  # whichever is first
    ],
)
def test_a_silent_host_keeps_its_path_until_bfd_or_the_hold_time_is_over(bfd, hold_time, expected):
    members = racks(bgp={"bfd": bfd, "hold_time": hold_time})
    for each in members:
        del each["settings"]["bgp"]["peers"][0]["bfd"]
    found = outages(members)
    assert found[events.HOST_CUT]["outage_ms"] == expected == found[events.PORT_DOWN]["outage_ms"]
    assert (events.BFD_LOST in found) == bool(bfd)


def test_the_slowest_router_of_the_slowest_member_counts():
    members = racks()
    members[1]["settings"]["bgp"]["peers"].append({"address": "10.0.2.2", "asn": ROUTER_ASN, "bfd": False})
    line = outages(members)[events.HOST_CUT]
    assert (line["member"], line["outage_ms"]) == ("lb2", 9000)


def test_without_the_event_the_polling_check_notices():
    assert outages(racks(track_events=False))[events.HAPROXY_KILLED]["outage_ms"] == 2200


def test_without_the_port_there_is_no_line_for_a_balancer_that_hangs():
    assert events.HAPROXY_HUNG not in outages(racks(answer_port=0))


def test_a_plan_in_which_nobody_notices_is_refused():
    planned = plan(racks())
    watched = {"haproxy": {"instances": [f"vip-{VIP}"], "fatal": ["haproxy_killed"], "harmless": {}}}
    watched["haproxy"]["blind_trackers"] = planned.members["lb1"].bgp["anycast"]["vips"][0]["track"]
    found = _forecast.forecast(planned._replace(watched=watched), {}, {})
    assert len(found.faults) == 2 and found.faults[0].startswith(f"{VIP}: when haproxy dies on lb1, none of its checks")


def rows(members, what):
    return [" ".join(line.split()) for line in plan(members).table if line.startswith(f"  {what} ")]


def test_a_router_that_all_depend_on_is_a_single_point_and_one_of_a_rack_is_not():
    both = racks()
    for each in both:
        each["settings"]["bgp"]["peers"] = [{"address": "10.9.9.1", "asn": ROUTER_ASN, "multihop": 2}]
    assert rows(both, "single point") == [f"single point 10.9.9.1: nobody reaches {VIP} without it"]
    assert rows(racks(), "single point") == []
    assert rows(racks(), "loss of a router") == [
        "loss of a router 10.0.1.1 takes lb1 with it, and the others have all",
        "loss of a router 10.0.2.1 takes lb2 with it, and the others have all",
    ]
    doubled = racks()
    for number, each in enumerate(doubled, 1):
        each["settings"]["bgp"]["peers"].append({"address": f"10.0.{number}.2", "asn": ROUTER_ASN})
    assert rows(doubled, "single point") == rows(doubled, "loss of a router") == []


def test_the_slower_side_of_bfd_decides_when_a_lost_host_is_noticed():
    def with_bfd(**bfd):
        members = racks()
        for member in members:
            member["settings"]["bgp"]["bfd"] = bfd
        found = outages(members)
        return {found[event]["outage_ms"] for event in (events.HOST_CUT, events.ROUTER_GONE)}, rows(members, "BFD")

    assert with_bfd(router_interval=20) == with_bfd() == ({250}, ["BFD 50 ms x 3, as the members have it"])
    assert with_bfd(router_interval=100) == ({400}, ["BFD 100 ms x 3, with router_interval"])
    assert with_bfd(interval=100, router_interval=50)[0] == {400}


def test_routers_need_as_many_paths_as_members_and_may_have_to_relax_the_comparison():
    assert "maximum-paths 3, hashed" in rows(racks(3), "share (ECMP)")[0]
    assert "multipath-relax" not in rows(racks(), "share (ECMP)")[0]
    members = racks()
    members[1]["settings"]["bgp"]["asn"] = 64513
    assert "multipath-relax" in rows(members, "share (ECMP)")[0]
    reflected = with_peer(racks(), asn=64512, route_reflector=True)
    assert "maximum-paths ibgp 2" in rows(reflected, "share (ECMP)")[0]


def test_routers_are_told_of_bfd_and_of_what_is_without():
    assert rows(racks(), "BFD") == ["BFD 50 ms x 3, as the members have it"] and rows(racks(), "no BFD") == []
    members = racks()
    members[0]["settings"]["bgp"]["peers"][0]["bfd"] = False
    assert rows(members, "no BFD") == ["no BFD a host that is silent keeps its path for the hold time, 9 s"]
    assert rows(members, "accept") == [f"accept {VIP}/32 from each member, and nothing else"]
    assert rows(racks(), f"{router(1)} (AS {ROUTER_ASN})") == ["10.0.1.1 (AS 64601) peers with lb1"]
