"""The daemon on each member watches what its VRRP router would watch, and takes the VIPs away for that alone."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.filter import plan as filters
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import gate as _gate
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import wanted
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import paths
from support.plans.clusters import cluster
from support.plans.pairs import pair
from support.plans.racks import VIP, plan, racks

NAMES = ["haproxy_alive", "haproxy_down", "haproxy_answers"]


def anycast(planned, name="lb1"):
    assert planned.faults == []
    return planned.members[name].bgp["anycast"]


@pytest.mark.parametrize(
    "engine, process, kind", [("native", "haproxy", "haproxy"), ("agent", "onprem-lb-proxy", "http")]
)
def test_it_watches_the_event_the_process_and_the_answers_with_either_engine(engine, process, kind):
    found = anycast(plan(racks(engine=engine)))
    assert found["vips"][0]["address"] == VIP and sorted(found["vips"][0]["track"]) == sorted(NAMES)
    checks = {check["name"]: check for check in found["checks"]}
    assert checks["haproxy_down"] == {"name": "haproxy_down", "type": "file", "file": "/run/haproxy.down"}
    assert (checks["haproxy_alive"]["type"], checks["haproxy_alive"]["process"]) == ("process", process)
    answers = checks["haproxy_answers"]
    assert (answers["type"], answers["address"], answers["port"]) == (kind, "127.0.0.1", 9444)
    assert (answers["interval"], answers["timeout"], answers["fall"]) == (1, 0.5, 2)


def test_nobody_asks_a_second_time():
    assert plan(racks(engine="native")).members["lb1"].questions == []


CHECKS = [{"gateway": "10.9.9.9", "name": "uplink"}, {"interface": "eth1"}, {"script": "/usr/bin/true", "weight": -50}]


def test_the_users_checks_count_unless_they_have_a_weight_which_is_said():
    planned = plan(racks(checks=CHECKS))
    found = anycast(planned)
    assert sorted(found["vips"][0]["track"]) == sorted([*NAMES, "uplink", "link:eth1"])
    assert {"name": "link:eth1", "type": "interface", "interface": "eth1"} in found["checks"]
    assert {check["name"] for check in found["checks"]} == {*found["vips"][0]["track"]}
    assert [said for said in planned.warnings if "script-true" in said] == [
        "The check script-true has a weight, and BGP has no priorities: while it fails, the VIPs stay announced. "
        "Without a weight it withdraws them."
    ]
    failed = {line["event"]: line for line in planned.outages}
    assert failed["script-true_failed"]["share"] == 0 and failed["uplink_failed"]["share"] == 50


def test_what_is_watched_does_not_depend_on_a_weight_of_vrrp():
    assert anycast(plan(racks(track_weight=-20, priorities=[200, 100]))) == anycast(plan(racks()))


def test_each_vip_is_tracked_as_its_vrrp_instance_would_be():
    """The same layout, once with VRRP: what it tracks with the agent is what the daemon tracks."""
    by_vrrp = {}
    for each in _pair.plan(pair(engine="agent")).members["lb1"].router.instances:
        by_vrrp = {item["name"] for kind in ("track_scripts", "track_files") for item in each[kind]}
    assert by_vrrp == {*anycast(plan(racks(engine="agent")))["vips"][0]["track"]}


def in_bgp(**settings):
    peers = [{"address": "10.0.0.1", "asn": 64601, "bfd": True}]
    vips = {"api_vips": ["203.0.113.10"], "ingress_vips": ["203.0.113.11"]}
    return cluster(reach="bgp", bgp={"asn": 64512, "peers": peers}, **{**vips, **settings})


def test_a_master_announces_the_api_and_whoever_has_a_router_the_ingress():
    planned = _ipi.plan(in_bgp())
    assert planned.faults == []
    announced = {name: [vip["address"] for vip in anycast(planned, name)["vips"]] for name in planned.members}
    assert announced == {
        **dict.fromkeys(("master-0", "master-1", "master-2"), ["203.0.113.10", "203.0.113.11"]),
        "worker-0": ["203.0.113.11"],
    }
    tracked = {vip["address"]: sorted(vip["track"]) for vip in anycast(planned, "master-0")["vips"]}
    assert tracked == {
        "203.0.113.10": ["chk_api", "chk_haproxy", "haproxy_down"],
        "203.0.113.11": ["chk_ingress"],
    }
    assert {check["name"] for check in anycast(planned, "worker-0")["checks"]} == {"chk_ingress"}


def test_a_node_without_a_vip_announces_nothing_and_needs_no_router():
    nodes = in_bgp(ingress_members=["master-0", "master-1"])
    worker = next(each for each in nodes if each["name"] == "worker-0")
    worker["settings"]["bgp"] = {}
    planned = _ipi.plan(nodes)
    assert planned.faults == [] and planned.members["worker-0"].bgp == {}
    assert planned.members["worker-0"].expected.sessions == []
    assert planned.members["master-0"].expected.sessions == ["10.0.0.1"]


@pytest.mark.parametrize(
    "check, hangs, expected",
    [
        ({"type": "file"}, True, 0),
        ({"type": "interface"}, False, 0),
        ({"type": "process", "interval": 2, "fall": 1, "timeout": 2}, False, 2000),
        ({"type": "http", "interval": 1, "fall": 2, "timeout": 0.5}, True, 2500),
        ({"type": "http", "interval": 1, "fall": 2, "timeout": 0.5}, False, 2000),
    ],
)
def test_how_long_a_check_takes_to_notice(check, hangs, expected):
    assert _gate.noticed_ms(check, hangs) == expected


def test_other_checks_are_a_change_that_members_get_one_after_the_other_and_that_is_undone():
    """They may withdraw the VIPs of all members at once, so that the daemon's file is compared as a router's is."""
    before, after = (as_data(plan(racks(**more))) for more in ({}, {"checks": [{"gateway": "10.9.9.9"}]}))
    content = _gate.file(before["members"]["lb1"]["bgp"]["anycast"])["content"]
    there = {paths.GATE_CONFIG: {"checksum": wanted.sha256(content), "mode": "0600", "stale": False}}
    host = {"files": there}
    assert filters.pending([], before["members"]["lb1"], host) is False
    assert filters.pending([], after["members"]["lb1"], host) is True
    hosts = [{"inventory_hostname": name, "__layout_host": host} for name in ("lb1", "lb2")]
    after["order"] = before["order"] = [["lb1"], ["lb2"]]
    assert [wave["members"] for wave in filters.layout_waves([before], hosts, [])] == [["lb1", "lb2"]]
    waves = filters.layout_waves([after], hosts, [])
    assert [(wave["members"], wave["proves"]) for wave in waves if not wave["is_proof"]] == [
        (["lb1"], []),
        (["lb2"], ["lb1"]),
    ]


def test_a_member_with_vrrp_has_no_file_of_the_gate_to_compare():
    assert _gate.compared(as_data(_pair.plan(pair()))["members"]["lb1"], {}) == {"paths": []}
