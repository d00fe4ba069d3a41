# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fails on a host that announces its VIPs: which commands make it fail, and which bring it back."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import announced, faults
from ansible_collections.onprem.lb.plugins.module_utils._host.drill.script import Refused
from ansible_collections.onprem.lb.plugins.module_utils._shared import events

MAC, VIP, VIP6 = "02:00:00:00:00:01", "203.0.113.10", "2001:db8:ffff::10"
SESSIONS = "meta l4proto { tcp, udp } drop"  # by ICMPv6 its neighbours are known
ROUTER, ROUTER6 = announced.Router("10.0.1.1", "eth1", MAC), announced.Router("2001:db8:1::1", "eth1", MAC)


def script(event, **target):
    return faults.script_for(event, faults.Target(**target))


@pytest.mark.parametrize("event", [events.PATH_WITHDRAWN, events.PATH_BACK])
def test_a_path_is_withdrawn_by_the_gate_alone(event):
    found = script(event)
    assert found.units == ("onprem-lb-anycast.service", "frr.service")
    assert found.inject == "systemctl stop onprem-lb-anycast.service"
    assert found.revert.endswith("systemctl start onprem-lb-anycast.service")


def test_bgpd_is_known_by_its_own_number_and_frr_is_restarted_only_without_it():
    found = script(events.BGP_KILLED)
    assert found.inject == "xargs kill -KILL < /run/frr/bgpd.pid"
    assert found.revert == "xargs kill -0 < /run/frr/bgpd.pid || systemctl restart frr.service"


def test_without_that_number_nothing_is_killed(tmp_path):
    announced.refuse_without_bgpd(str(tmp_path))
    with pytest.raises(Refused, match="so bgp_killed does not know which process is this host's bgpd"):
        announced.refuse_without_bgpd(str(tmp_path / "bgpd.pid"))


def test_bfd_is_lost_both_ways_and_nothing_else():
    found = script(events.BFD_LOST)
    rules = [rule for rule in found.rules.split("; ") if "drop" in rule]
    assert [rule.split()[4] for rule in rules] == ["input", "output"]
    assert all("udp dport { 3784, 3785, 4784 } drop" in rule for rule in rules)


@pytest.mark.parametrize(
    "router, vip, families",
    [(ROUTER, VIP, ("ip", "ip")), (ROUTER6, VIP6, ("ip6", "ip6")), (ROUTER6, VIP, ("ip", "ip6"))],
)
def test_a_router_that_is_gone_neither_speaks_nor_reaches_the_vip_here(router, vip, families):
    of_vip, of_router = families
    rules = script(events.ROUTER_GONE, router=router, vip=vip).rules
    assert [rule.partition(" onprem_lb_drill ")[2] for rule in rules.split("; ") if rule.startswith("add rule")] == [
        f"ingress ether saddr {MAC} {of_vip} daddr {vip} drop",
        f"ingress {of_router} saddr {router.address} {SESSIONS}",
        f"egress {of_router} daddr {router.address} {SESSIONS}",
    ]
    assert rules.count('device "eth1"') == 2 and rules.count("policy accept") == 2


def known(*neighbours):
    return lambda command: (0, json.dumps(list(neighbours)), "")


def test_a_router_is_known_by_its_neighbour_entry():
    answered = {"dst": ROUTER.address, "dev": "eth1", "lladdr": MAC.upper(), "state": ["REACHABLE"]}
    assert announced.neighbour(ROUTER.address, known(answered)) == ROUTER


@pytest.mark.parametrize(
    "answer",
    [
        known(),
        known({"dst": ROUTER.address, "dev": "eth1", "state": ["FAILED"]}),
        known({"dst": ROUTER.address, "dev": "eth1", "lladdr": "x; reboot"}),
        lambda command: (255, "Object not found", "no such command"),
        lambda command: (0, "", ""),
    ],
)
def test_a_router_that_is_not_known_is_refused(answer):
    with pytest.raises(Refused, match=r"the kernel has no neighbour 10\.0\.1\.1\."):
        announced.neighbour(ROUTER.address, answer)


def test_a_host_that_announces_starts_what_it_needs_for_that_at_boot():
    assert script(events.HOST_REBOOTED, announces=True).units == (
        *("haproxy.service", "frr.service"),
        "onprem-lb-anycast.service",
    )
    assert script(events.HOST_REBOOTED, announces=True, engine="agent").units[0] == "onprem-lb-proxy.service"
    assert "keepalived.service" in script(events.HOST_REBOOTED).units
