# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods of hosts that are not read: what has to be in the inventory, and what they cannot do."""

from __future__ import annotations

import copy
import json

from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Plan
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import unread
from ansible_collections.onprem.lb.plugins.plugin_utils import templates
from support.plans import clusters, pods

NAMES = [*clusters.ADDRESSES]


def drawn(addresses=None, one=planner.draft, credentials=None, **settings):
    given = {"interface": "ens192", "auth_pass": pods.PASSWORD, **copy.deepcopy(settings)}
    members = [{**each, "host": None, "address": each["name"], "members": NAMES} for each in clusters.cluster(**given)]
    known = {name: [f"10.0.0.{number}"] for name, number in clusters.ADDRESSES.items()}
    return unread.draw(members, {**known, **(addresses or {})}, pods.OPTIONS, templates.render, one, credentials)


def test_the_pods_are_those_of_hosts_that_were_read():
    found = drawn()
    assert found.faults == []
    assert found.members["master-0"] == pods.made("master-0", auth_pass=pods.PASSWORD)
    assert [*found.members] == NAMES


def test_each_address_is_advertised_from_one_of_its_family():
    vips = {"api_vips": ["10.0.0.200", "2001:db8::200"]}
    addresses = {name: [f"10.0.0.{at}", f"2001:db8::{at}"] for name, at in clusters.ADDRESSES.items()}
    found = drawn(addresses, **vips)
    assert found.faults == []
    conf = next(each.content for each in found.members["master-0"].configurations if "keepalived.conf" in each.path)
    assert "unicast_src_ip 2001:db8::34" in conf and "unicast_src_ip 10.0.0.34" in conf


def test_no_address_is_made_up():
    wrong = drawn({"master-1": ["master-1.example"]}).faults
    assert wrong[0].startswith("master-1 has no IPv4 address in pods_address (master-1.example)")
    assert any("no IPv6 address" in fault for fault in drawn(api_vips=["2001:db8::200"]).faults)


def test_an_interface_is_wanted():
    assert [fault for fault in drawn(interface="").faults if "master-0: ipi_interface is empty" in fault]


def test_with_bgp_neither_an_interface_nor_a_password_of_vrrp_is_wanted():
    found = drawn(interface="", auth_pass="", **pods.BGP)
    assert found.faults == []
    assert all("/etc/kubernetes/manifests/onprem-lb-router.yaml" in each.manifests for each in found.members.values())
    conf = next(each.content for each in found.members["worker-0"].configurations if each.path.endswith("/frr.conf"))
    assert " bgp router-id 10.0.0.51\n" in conf and " neighbor 10.0.0.1 remote-as 64601\n" in conf
    assert "update-source" not in conf, "which of its addresses is on the router's network is not known"
    assert "203.0.113.10" not in conf, "a worker has no API"


def test_both_is_refused_because_no_pod_may_quieten_its_host():
    found = drawn(**{**pods.BGP, "reach": "both", "api_vips": ["10.0.0.200"], "ingress_vips": ["10.0.0.201"]})
    assert "master-0: ipi_reach is both, for which nodes must not answer ARP for lo" in found.faults[0]


def test_a_password_is_wanted_where_none_is_made_of_the_clusters_name():
    assert all("ipi_auth_pass is empty" in fault for fault in drawn(auth_pass="").faults)
    assert len(drawn(auth_pass="").faults) == len(NAMES)
    assert drawn(auth_pass="", preset="upstream").faults == []
    assert drawn(auth_pass="", vrrp_version=3).faults == []


def test_what_units_alone_do_is_refused():
    assert "ipi_metrics_file" in drawn(metrics_file="/var/lib/x.prom").faults[0]
    assert "ipi_dns is set, and the resolver is not a pod" in drawn(dns="true", domain="example.com").faults[0]


def test_a_kubeconfig_is_wanted_of_those_that_follow_their_cluster():
    follow = {"follow": True, "follow_kubeconfig": "/etc/kubeconfig"}
    assert drawn(**follow).faults == [
        "pods_kubeconfig is missing, and ipi_follow is set: name a copy of the nodes' kubeconfig."
    ]
    found = drawn(credentials=pods.CREDENTIALS, **follow)
    assert found.faults == []
    assert "/etc/kubernetes/manifests/onprem-lb-follow.yaml" in found.members["master-0"].manifests
    assert "/etc/kubernetes/manifests/onprem-lb-follow.yaml" not in found.members["worker-0"].manifests
    written = next(each.content for each in found.members["master-0"].configurations if "follow.json" in each.path)
    assert json.loads(written)["nodes"]["networks"] == ["10.0.0.0/24"], "which has the masters and the VIP"


def test_a_plan_that_does_not_fail_over_has_no_pods():
    found = drawn(one=lambda _layout, _members: Plan(["It would not move."]))
    assert found == unread.Pods(["It would not move."])


def test_the_lines_say_what_becomes_of_each_vip_and_nothing_of_packages():
    lines = "\n".join(drawn(one=planner.plan).lines)
    assert "10.0.0.200" in lines and "haproxy killed" in lines and "packages" not in lines
