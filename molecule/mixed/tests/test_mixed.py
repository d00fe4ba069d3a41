"""A pair of one native member and one with the agent: each holds its VIP, and both serve."""

from __future__ import annotations

import pytest
from support.lab import fetch, holders

UNITS = {"lb1": ("haproxy", "keepalived"), "lb2": ("onprem-lb-proxy", "onprem-lb-vrrp")}
FIRST = {"lab_vip": "lb1", "lab_vip2": "lb2"}


@pytest.mark.parametrize("vip", FIRST)
def test_each_vip_is_on_its_first_member_only(hosts, variables, vip):
    assert holders(hosts, UNITS, variables[vip]) == [FIRST[vip]]


@pytest.mark.parametrize("vip", FIRST)
@pytest.mark.parametrize("port", [8443, 80, 443])
def test_the_backends_answer_through_both_vips(hosts, variables, vip, port):
    answer = fetch(hosts["client"], variables[vip], port)
    assert answer.rc == 0 and answer.stdout.strip() in ("node1", "node2")


def test_a_client_gets_one_and_the_same_server_through_each_vip(hosts, variables):
    for vip in FIRST:
        answers = {fetch(hosts["client"], variables[vip], 443).stdout.strip() for _try in range(5)}
        assert len(answers) == 1 and answers <= {"node1", "node2"}


def test_each_member_runs_its_own_engine_only(hosts):
    for host, units in UNITS.items():
        for unit in units:
            assert [name for name in UNITS if hosts[name].service(unit).is_running] == [host]
