# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services with `plane: direct`: what the plane gets, how VRRP reacts to its loss, and what no plane can do."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import config
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import direct
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import member, pair

API = {"name": "api", "port": 6443, "plane": "direct", "servers": ["192.0.2.21", "192.0.2.22"]}
WEB = {"name": "web", "port": 80, "servers": ["192.0.2.31"]}


def plan(*services, **settings):
    return _pair.plan(pair(services=[*services] or [API], **settings))


def planned(given, name="lb1"):
    """The configuration of a member's plane, which the plane itself accepts."""
    assert given.faults == []
    content = given.members[name].direct["content"]
    assert config.parse(content)[1] == []
    return json.loads(content)


def lost(given):
    """What becomes of the VIPs when a plane stops."""
    return [line for line in given.outages if line["event"] == "direct_down"]


def test_the_plane_gets_the_direct_services_with_the_vips_of_their_servers_family():
    found = planned(plan(API, WEB, vips=["192.0.2.10", "192.0.2.11", "2001:db8::10"]))
    assert found["interface"] == "eth0"
    assert [(each["name"], each["bind"]) for each in found["services"]] == [("api", ["192.0.2.10", "192.0.2.11"])]


def test_the_memory_that_a_plane_may_have_follows_its_services():
    services = [{**API, "name": f"s{number}", "port": 7000 + number} for number in range(255)]
    given = [plan(*services[:count]).members["lb1"].direct_memory for count in (1, 16, 64, 128, 255)]
    assert given == [256, 256, 512, 1024, 2048]
    assert plan(WEB).members["lb1"].direct_memory == 0


def test_a_check_that_the_plane_shares_keeps_its_own_pace():
    given, proxied = (
        [service["check"] for service in plan(each, WEB).members["lb1"].balancer.services]
        for each in (API, {**API, "plane": "proxy"})
    )
    assert [(check["interval"], check["fall"]) for check in given] == [(2, 3), (0.2, 6)]
    assert [(check["interval"], check["fall"]) for check in proxied] == [(0.2, 6), (0.2, 6)]


def test_the_balancer_serves_the_same_service_as_the_fallback():
    paced = {**API, "check": {"interval": 1}}
    given, without = plan(paced, WEB), plan({**paced, "plane": "proxy"}, WEB)
    assert given.members["lb1"].balancer == without.members["lb1"].balancer
    assert without.members["lb1"].direct == {}
    assert [file["name"] for file in without.members["lb1"].router.track_files] == ["haproxy_down", "haproxy_answers"]


def test_a_service_that_is_bound_to_one_vip_is_direct_at_that_one_alone():
    found = planned(plan({**API, "bind": ["192.0.2.11"]}, vips=["192.0.2.10", "192.0.2.11"]))
    assert found["services"][0]["bind"] == ["192.0.2.11"]


def test_each_member_has_the_plane_on_its_own_interface():
    members = pair(services=[API])
    for address in members[1]["host"]["addresses"][1:]:
        address["interface"] = "ens3"
    given = _pair.plan(members)
    assert [planned(given, name)["interface"] for name in ("lb1", "lb2")] == ["eth0", "ens3"]


def test_the_vip_moves_to_a_member_whose_plane_runs_and_its_clients_are_served_meanwhile():
    (line,) = lost(plan())
    assert (line["before"], line["after"], line["back"], line["outage_ms"]) == ("lb1", "lb2", "lb1", 60)
    assert line["lasts_ms"] > 3004, "a Backup takes over when Active_Down_Interval is over, and a drill waits for that"


@pytest.mark.parametrize(
    "count, priorities, lowered", [(2, [], 252), (4, [], 202), (2, [200, 100], 99), (2, [254, 1], 1), (2, [9, 1], 1)]
)
def test_members_that_have_lost_their_planes_are_equals_below_every_other_and_in_no_fault(count, priorities, lowered):
    settings = {"services": [API], "priorities": priorities}
    given = _pair.plan([member(number, **settings) for number in range(1, count + 1)])
    assert given.faults == []
    for each in given.members.values():
        instance = each.router.instances[0]
        (weight,) = [file["weight"] for file in instance["track_files"] if file["name"] == "direct_down"]
        assert tracking.effective(instance["priority"], {"direct_down": tracking.file(weight, 1)}) == lowered
    (line,) = lost(given)
    has_no_room = lowered == 1
    assert (line["after"] == "lb1") == has_no_room
    assert any("choose priorities above 1" in said for said in given.warnings) == has_no_room


@pytest.mark.parametrize("settings", [{"preempt": False}, {"sync": True, "vips": ["192.0.2.10", "192.0.2.11"]}])
def test_where_no_weight_counts_the_vip_stays_and_a_warning_says_so(settings):
    given = plan(**settings)
    assert all(each.router.track_files[2:] == [] for each in given.members.values())
    assert {(line["before"], line["after"], line["outage_ms"]) for line in lost(given)} == {("lb1", "lb1", 0)}
    assert any("no VIP moves when a member's direct return stops" in sentence for sentence in given.warnings)


def test_only_the_vips_of_direct_services_move():
    given = plan({**API, "bind": ["192.0.2.11"]}, WEB, vips=["192.0.2.10", "192.0.2.11"])
    assert [line["vip"] for line in lost(given)] == ["192.0.2.11"]


def test_the_forecast_says_whose_lasting_connections_are_kept():
    given = plan(API, {**WEB, "bind": ["192.0.2.11"]}, vips=["192.0.2.10", "192.0.2.11", "2001:db8::10"])
    said = [line.split(maxsplit=2)[2] for line in given.table if line.startswith("  lasting connections")]
    lost = "lost when the VIP moves or the balancer ends"
    assert said == ["kept: api", f"kept: api; {lost}: web", f"{lost}: api"]
    assert "lasting connections" not in "".join(plan({**API, "plane": "proxy"}).table)
    assert [line for line in plan(API).table if "server cut" in line] == []  # which has no second server to try


@pytest.mark.parametrize("interval, pause", [(1, 5), (0.1, 2.3), (4, 17), (255, 60)])
def test_a_plane_that_stops_keeps_its_table_for_longer_than_the_vip_needs_to_move(interval, pause):
    assert planned(plan(advert_interval=interval, vrrp_version=2 if interval >= 1 else 3))[
        "stop_pause"
    ] == pytest.approx(pause)


REFUSED = [
    ({"plane": "fast"}, "pair_services[0] (api).plane is 'fast': choose one of proxy, direct, draining."),
    ({"mode": "http"}, ".mode is 'http': nobody between clients and servers reads HTTP here: write tcp, or leave"),
    ({"balance": "source"}, ".balance is 'source', which only a proxy can do: leave it out, or set plane to proxy."),
    ({"send_proxy": True}, ".send_proxy is true, which only a proxy can do: leave it out, or set plane to proxy."),
    ({"allow": ["10.0.0.0/8"]}, ".allow is ['10.0.0.0/8'], which only a proxy can do"),
    ({"tls": {"certificate": "/etc/a.pem"}}, ".tls is a mapping, which only a proxy can do"),
    ({"check": {"slow_start": 3}}, ".check.slow_start is 3: only a proxy can do that"),
    ({"servers": ["192.0.2.21"]}, ".servers has one: name at least two, or leave the service to a proxy."),
    ({"servers": ["192.0.2.21", {"address": "192.0.2.22", "port": 8443}]}, "192.0.2.22 has the port 8443"),
    ({"servers": ["192.0.2.21", {"address": "192.0.2.22", "backup": True}]}, "192.0.2.22 has backup true, which only"),
    ({"servers": ["192.0.2.21", "a.example.com"]}, "has the name a.example.com: write its address, or set plane"),
    ({"servers": ["192.0.2.21", "198.51.100.1"]}, "198.51.100.1 is in no subnet of eth0 of lb1, and direct return"),
    ({"servers": ["192.0.2.21", "2001:db8::21"]}, "make a service of each family"),
    ({"servers": ["2001:db8::21", "2001:db8::22"], "bind": ["::"]}, "has no VIP of its servers' family: add one, or"),
]


@pytest.mark.parametrize("change, sentence", REFUSED, ids=[next(iter(change)) for change, _sentence in REFUSED])
def test_what_no_plane_can_do_is_refused_with_its_place_and_the_mend(change, sentence):
    faults = plan({**API, **change}).faults
    assert [fault for fault in faults if sentence in fault and "pair_services[0] (api)" in fault], faults


def test_a_service_of_the_proxy_may_do_all_of_that():
    assert (
        plan({**API, "plane": "proxy", "balance": "source", "send_proxy": True, "servers": ["198.51.100.1"]}).faults
        == []
    )


def test_a_plane_has_one_interface():
    members = pair(services=[API], vips=["192.0.2.10", "198.51.100.10"])
    for number, each in enumerate(members, 1):
        each["host"]["addresses"].append(
            {**each["host"]["addresses"][1], "interface": "eth1", "address": f"198.51.100.{number}"}
        )
    (fault, *_more) = _pair.plan(members).faults
    assert fault.startswith("lb1: the VIPs of services with plane direct are on eth0 and eth1, and the plane has one")


def test_the_subnets_of_a_host_that_was_not_read_are_not_judged():
    members = pair(services=[{**API, "servers": ["192.0.2.21", "198.51.100.1"]}])
    assert _pair.plan([{**each, "host": None, "address": each["name"]} for each in members]).faults == []


@pytest.mark.parametrize("engine, missing", [("agent", 1), ("native", 0)])
def test_nft_is_no_package_that_the_agent_would_install(engine, missing):
    about = direct.Direct([], {}, 252, 5)
    host = {"name": "lb1", "host": {"missing_programs": ["nft"]}}
    assert len(direct.missing_programs(about, host, engine)) == missing
    assert direct.missing_programs(None, host, engine) == []


def test_a_service_that_drains_leaves_new_connections_to_the_balancer():
    given = plan({**API, "plane": "draining"})
    assert planned(given)["services"][0]["new_connections"] == "host"
    assert "new_connections" not in planned(plan())["services"][0]
    said = _pair.planner.forecast_input(given)["vips"][0]["lasting"]
    assert said == "kept: api from before it drained; lost when the VIP moves or the balancer ends: api"


def test_what_servers_do_not_reach_at_a_vip_that_they_have_on_lo_is_said():
    def warned(*services, **settings):
        return [line for line in plan(*services, **settings).warnings if "cannot reach" in line]

    assert warned(API) == warned(API, {**API, "name": "mcs", "port": 22623, "plane": "proxy"}) == []
    (said,) = warned(API, WEB, vips=["192.0.2.10", "2001:db8::10"])
    assert said == (
        "192.0.2.21, 192.0.2.22 cannot reach web at 192.0.2.10 port 80: as servers of direct return they have that VIP "
        "on lo. If they need to, bind web to another VIP."
    )
    both = {"vips": ["192.0.2.10", "192.0.2.11"]}
    assert warned({**API, "bind": ["192.0.2.10"]}, {**WEB, "bind": ["192.0.2.11"]}, **both) == []
    servers = [{"address": "192.0.2.21", "port": 8080}, "192.0.2.22"]
    (said,) = warned(API, {**WEB, "servers": servers})
    assert said.startswith("192.0.2.21 cannot reach web at 192.0.2.10 port 80")
