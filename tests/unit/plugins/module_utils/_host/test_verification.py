"""A pair held against its plan: two holders must fail, and so must none."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import verification
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import pair as _pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from support.plans.pairs import pair

VIP = "192.0.2.10"


def seen(**changes):
    holding = {"address": VIP, "interface": "eth0", "prefix": 32, "mac": "02:00:00:00:00:01"}
    good = {
        "addresses": [holding],
        "answering": {VIP: []},
        "active_units": ["haproxy.service", "keepalived.service"],
        "listeners": [{"port": port, "program": "haproxy"} for port in (8443, 80, 443)],
        "reached": [f"{VIP} {port}" for port in (8443, 80, 443)],
        "stale": [],
    }
    return {**good, **changes}


def faults(**changes):
    return verification.faults(as_data(_pair.plan(pair()).members["lb1"].expected), seen(**changes))


def test_a_pair_as_planned_has_no_fault_on_either_side():
    assert faults() == []
    assert faults(addresses=[], answering={VIP: ["02:00:00:00:00:01"]}) == []


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"addresses": []}, f"VIP {VIP} has 0 holders"),
        ({"answering": {VIP: ["02:00:00:00:00:02"]}}, f"VIP {VIP} has 2 holders"),
        ({"addresses": [], "answering": {VIP: ["a", "b"]}}, f"VIP {VIP} has 2 holders"),
        ({"active_units": ["haproxy.service"]}, "keepalived.service is not active"),
        ({"active_units": ["keepalived.service"]}, "haproxy.service is not active"),
        ({"listeners": [{"port": 8443, "program": "haproxy"}]}, "haproxy does not listen on port 80"),
        ({"reached": []}, f"nothing answers through the VIP at {VIP} port 8443."),
        ({"stale": ["/etc/haproxy/haproxy.cfg"]}, "haproxy still runs what it had before"),
    ],
)
def test_what_is_not_as_planned_is_said(changes, sentence):
    assert any(sentence in fault for fault in faults(**changes))
