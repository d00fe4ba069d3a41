"""A pair held against its plan: two holders must fail, and so must none."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import verification
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import pair
from support.plans.racks import plan as racks_plan
from support.plans.racks import racks

VIP = "192.0.2.10"


def seen(**changes):
    holding = {"address": VIP, "interface": "eth0", "prefix": 32, "mac": "02:00:00:00:00:01"}
    good = {
        "addresses": [holding],
        "answering": {VIP: []},
        "active_units": ["haproxy.service", "keepalived.service"],
        "listeners": [{"port": port, "program": "haproxy"} for port in (8443, 80, 443, 9444)],
        "reached": [f"{VIP} {port}" for port in (8443, 80, 443)],
        "stale": [],
        "in_fault": {},
        "down_file": "0",
    }
    return {**good, **changes}


def faults(**changes):
    return verification.faults(as_data(_pair.plan(pair()).members["lb1"].expected), seen(**changes))


def test_a_pair_as_planned_has_no_fault_on_either_side():
    assert faults() == []
    assert faults(addresses=[], answering={VIP: ["02:00:00:00:00:01"]}) == []


FAR = "none of 192.0.2.2, which may hold it, is in a subnet of this host (198.51.100.0/24)"


@pytest.mark.parametrize(
    "addresses, why",
    [
        (["198.51.100.1/24"], f": {FAR}."),
        (["198.51.100.1/24", "fe80::1/64", "203.0.113.1/32"], f": {FAR}."),
        (["192.0.2.1/24"], "."),
        (["198.51.100.1/24", "192.0.2.1/24"], "."),
        (["192.0.2.1/32"], "."),  # which says nothing of the link
        ([], "."),
    ],
)
def test_without_a_holder_a_host_in_another_subnet_says_so(addresses, why):
    parted = [each.split("/") for each in addresses]
    own = [{"interface": "eth0", "address": address, "prefix": int(prefix)} for address, prefix in parted]
    assert faults(addresses=own, answering={}) == [
        f"VIP {VIP} has 0 holders as seen from here, exactly one is right{why}"
    ]


@pytest.mark.parametrize("program", ["haproxy", "python3", "proxy-worker"])
def test_a_balancer_in_a_pod_is_known_by_its_pod_whatever_its_program_is_called(program):
    listeners = [{"port": port, "program": program, "runs_in": "onprem-lb-balancer"} for port in (8443, 80, 443, 9444)]
    assert faults(listeners=listeners) == []


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"addresses": []}, f"VIP {VIP} has 0 holders"),
        ({"answering": {VIP: ["02:00:00:00:00:02"]}}, f"VIP {VIP} has 2 holders"),
        ({"addresses": [], "answering": {VIP: ["a", "b"]}}, f"VIP {VIP} has 2 holders"),
        ({"active_units": ["haproxy.service"]}, "keepalived.service is not active"),
        ({"active_units": ["keepalived.service"]}, "haproxy.service is not active"),
        ({"listeners": [{"port": 8443, "program": "haproxy"}]}, "haproxy does not listen on port 80"),
        (
            {
                "listeners": [
                    {"port": port, "program": "haproxy", "runs_in": "the pod 0c2b"} for port in (80, 443, 8443)
                ]
            },
            "haproxy does not listen on port 80",
        ),
        ({"reached": []}, f"nothing answers through the VIP at {VIP} port 8443."),
        ({"stale": ["haproxy.service has not loaded it."]}, "haproxy.service has not loaded it."),
        ({"down_file": "1"}, "/run/haproxy.down says 1, that the balancer is down, although it runs."),
        (
            {"in_fault": {"web": "script alive failed"}},
            "web is in FAULT, so this member cannot take over: script alive f",
        ),
        ({"in_fault": {"web": ""}}, "web is in FAULT, so this member cannot take over."),
    ],
)
def test_what_is_not_as_planned_is_said(changes, sentence):
    assert any(sentence in fault for fault in faults(**changes))


def test_a_fault_of_before_the_run_is_excused_and_no_other():
    plan = {**as_data(_pair.plan(pair()).members["lb1"].expected), "excused": ["web"]}
    found = verification.faults(plan, seen(in_fault={"web": "", "files": "script storage failed"}))
    assert found == ["files is in FAULT, so this member cannot take over: script storage failed."]


ROUTERS = ("10.0.1.1", "10.0.1.2")
UP = dict.fromkeys(ROUTERS, "Established")
SENT = dict.fromkeys(ROUTERS, 1)


def announced(every_path=False, **changes):
    """Return the faults, and who has no session, of a member that announces its VIP to two routers."""
    plan = {"vips": [{"address": VIP}], "services": [], "targets": [], "units": [], "sessions": [*ROUTERS]}
    plan.update(announced=[VIP], elects=False, every_path=every_path)
    found = seen(**{"addresses": [], "on_loopback": [VIP], "sessions": UP, "sent": SENT, "listeners": [], **changes})
    return verification.faults(plan, found), verification.without_session(plan, found)


def test_a_member_that_announces_has_its_vips_on_lo_whoever_else_has_them():
    assert announced() == announced(answering={VIP: ["02:00:00:00:00:02"]}) == ([], [])
    assert announced(on_loopback=["127.0.0.1"])[0] == [f"VIP {VIP} is not on lo, so this member does not announce it."]


def test_a_router_that_notices_a_silent_member_later_than_forecast_is_named():
    plan = {"sessions": [*ROUTERS], "bfd_interval": 50}
    seen_of = {"bfd_intervals": {ROUTERS[0]: 50, ROUTERS[1]: 100, "10.0.9.9": 300}}
    assert verification.slow_to_notice(plan, seen_of) == [
        "10.0.1.2 accepts a BFD packet every 100 ms at most, and the forecast reckons with 50: set router_interval of "
        "bfd to 100 in the inventory."
    ]
    assert verification.slow_to_notice({**plan, "bfd_interval": 100}, seen_of) == []
    assert verification.slow_to_notice({}, {"bfd_intervals": {}}) == []
    expected = as_data(racks_plan(racks(bgp={"bfd": {"router_interval": 100}})).members["lb1"].expected)
    assert expected["bfd_interval"] == 100


def test_without_any_session_nobody_sends_it_anything_and_without_one_of_them_somebody_does():
    down = {**UP, ROUTERS[1]: "Active"}
    assert announced(sessions=down) == ([], ["no session with 10.0.1.2 (Active)."])
    (why,) = announced(sessions={ROUTERS[0]: "Idle"})[0]
    assert why.startswith("no session of BGP is established (10.0.1.1 Idle; 10.0.1.2 not known to FRR), so no router ")


def test_before_vrrp_ends_each_router_has_to_have_each_path():
    assert announced(every_path=True) == ([], [])
    (one,) = announced(every_path=True, sessions={**UP, ROUTERS[1]: "Active"})[0]
    assert one == "no session with 10.0.1.2 (Active), so it would not know the way to the VIPs."
    assert announced(every_path=True, sessions={}, sent={})[0] == [
        f"no session with {router} (not known to FRR), so it would not know the way to the VIPs." for router in ROUTERS
    ]
    assert announced(every_path=True, sent={ROUTERS[0]: 1})[0] == ["10.0.1.2 was told of 0 VIPs, and 1 are on lo."]


def test_a_member_with_both_has_its_vips_on_lo_and_one_holder_on_the_link():
    plan = {"vips": [{"address": VIP}], "services": [], "targets": [], "units": [], "sessions": [*ROUTERS]}
    plan.update(announced=[VIP], elects=True)
    found = seen(on_loopback=[], sessions=UP, sent=SENT, listeners=[], addresses=[], answering={})
    assert len(verification.faults(plan, found)) == 2
    found.update(on_loopback=[VIP], answering={VIP: ["02:00:00:00:00:02"]})
    assert verification.faults(plan, found) == []
