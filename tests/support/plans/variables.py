# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable of the layouts, each with values other than its default, as settings of a layout of three members."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, NamedTuple, Sequence

from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.layout import Layout
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Plan
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import presets

from support.plans import clusters, pairs, pods

Settings = Dict[str, Any]
LAYOUTS: Dict[str, Layout] = {"ipi": ipi.LAYOUT, "pair": pair.LAYOUT}
SERVERS = {"servers": ["192.0.2.41", "192.0.2.42"]}
WEB = {"name": "web", "port": 8080, "mode": "http", "check": {"type": "http", "path": "/healthz"}, **SERVERS}
KUBECONFIG = {"follow_kubeconfig": "/etc/lb.kubeconfig"}
BGP = {"asn": 64512, "peers": [{"address": "192.0.2.254", "asn": 64601}]}
UPI = {"preset": "openshift_upi", "machine_networks": ["192.0.2.0/24"]}
FOLLOWING = {"follow": True, **KUBECONFIG}
SCRIPT = {"name": "storage", "script": "/usr/local/bin/storage", "interval": 5}
IPI_CHECKS = [{"gateway": "10.0.0.254", "vips": "ingress"}, {**SCRIPT, "weight": -20, "vips": "api"}]
SHARD = {"name": "blue", "members": ["master-0", "worker-0"], "checks": ["http://localhost:1937/healthz"]}
DNS = {"dns": True, "domain": "example.com"}
# How a run goes, and not what it makes.
OF_RUN: Settings = {
    "state": "absent",
    "listen": 3,
    "retired": ["lb9"],
    "break_lock": True,
    "accept_split": True,
    "accept_cut": True,
    "accept_routed_only": True,
    "downgrade": True,
    "undo_after": 60,
    "firewall": False,
    "metrics_file": "/var/lib/node_exporter/onprem_lb.prom",
}
COMMON: Dict[str, List[Settings]] = {
    **{name: [{name: value}] for name, value in OF_RUN.items()},
    "engine": [{"engine": "native"}],
    "interface": [{"interface": "eth0"}],
    "auth_pass": [{"auth_pass": "an0ther1"}],
    "vrrp_version": [{"vrrp_version": 3}],
    "advert_interval": [{"advert_interval": 2}, {"advert_interval": 0.2, "vrrp_version": 3}],
    "multicast": [{"multicast": True}],
    "down_file": [{"down_file": "/run/lb.down"}],
    "follow": [FOLLOWING],
    "follow_kubeconfig": [{**FOLLOWING, "follow_kubeconfig": "/etc/other.kubeconfig"}],
    "follow_label": [{**FOLLOWING, "follow_label": "node-role.kubernetes.io/infra"}],
    "follow_not_ready_for": [{**FOLLOWING, "follow_not_ready_for": 5}],
    "follow_drain_for": [{**FOLLOWING, "follow_drain_for": 5}],
    "dns": [DNS],
    "domain": [{**DNS, "domain": "lb.example.com"}],
}
# By layout and variable: one value, or several where they differ in kind.
VARIABLES: Dict[str, Dict[str, List[Settings]]] = {
    "pair": {
        **COMMON,
        "hosts": [{"hosts": "balancers"}],
        "members": [{"members": ["lb2", "lb3", "lb1"]}],
        "vips": [
            {"vips": ["192.0.2.20"]},
            {"vips": ["192.0.2.10", "2001:db8::10"]},
            {"vips": ["192.0.2.10/24"]},
            {"vips": ["192.0.2.10", {"address": "192.0.2.11", "vrid": 77, "first": "lb3"}]},
            {"vips": [{"address": "192.0.2.10", "first": "lb2"}]},
            {"vips": ["192.0.2.10", {"address": "198.51.100.10", "vrid": 51}]},
            {"vips": ["198.51.100.10"]},
        ],
        "vrid": [{"vrid": 77}],
        "reach": [],  # no run changes it on living members: test_order
        "bgp": [{"bgp": BGP}],
        "bgp_peers": [{"bgp_peers": BGP["peers"]}],
        "masters": [{"masters": ["192.0.2.23"]}],
        "infra_nodes": [{"infra_nodes": ["192.0.2.33"]}],
        "preset": [
            UPI,
            *(
                {**(UPI if name.startswith("openshift") else {}), "preset": name}
                for name in presets.PRESETS
                if name not in (presets.DEFAULT, UPI["preset"])
            ),
        ],
        "bootstrap": [{**UPI, "bootstrap": "192.0.2.29"}],
        "bootstrap_complete": [{**UPI, "bootstrap": "192.0.2.29", "bootstrap_complete": True}],
        "machine_networks": [{**UPI, "machine_networks": ["192.0.2.0/25"]}],
        "platform": [{**UPI, "platform": "vsphere"}],
        "api_names": [{**UPI, "api_names": ["api.example.com"]}],
        "services": [{"services": [WEB]}],
        "preempt": [{"preempt": False}],
        "preempt_delay": [{"preempt_delay": 5}],
        "priorities": [{"priorities": [200, 199, 150]}],
        "track_weight": [{"track_weight": -60}],
        "track_interval": [{"track_interval": 1}],
        "track_fall": [{"track_fall": 3}],
        "track_rise": [{"track_rise": 3}],
        "track_events": [{"track_events": False}],
        "vrrp_interface": [{"vrrp_interface": "eth1"}],
        "answer_port": [{"answer_port": 9555}, {"answer_port": 0}],
        "peers_port": [{"peers_port": 10001}, {"peers_port": 0}],
        "checks": [{"checks": [SCRIPT, {"gateway": "192.0.2.254", "weight": -60}, {"interface": "eth1"}]}],
        "sync": [
            {"sync": True, "vips": ["192.0.2.10", "192.0.2.11"]},
            {"sync": True, "vips": ["192.0.2.10", {"address": "192.0.2.11", "vrid": 77}]},
        ],
        "one_instance": [{"one_instance": True, "vips": ["192.0.2.10", "192.0.2.11"]}],
        "notify": [{"notify": "/usr/local/bin/tell"}],
        "follow_services": [
            {**FOLLOWING, "follow_services": ["infra_nodes-80"]},
            {**FOLLOWING, "follow_services": {"infra_nodes-80": "node-role.kubernetes.io/infra"}},
        ],
        "subdomain": [{**DNS, "subdomain": "routes"}],
        "reload_certificates": [{"reload_certificates": True}],
    },
    "ipi": {
        **COMMON,
        "interface": [{"interface": "ens192"}],
        "multicast": [{"multicast": True}],
        "hosts": [{"hosts": "nodes"}],
        "masters": [{"masters": ["master-1", "master-0"]}],
        "workers": [{"workers": ["worker-0"]}],
        "verify": [{"verify": False}],
        "cluster_name": [{"cluster_name": "other"}],
        "other_clusters": [{"other_clusters": ["neighbour"]}],
        "api_vips": [
            {"api_vips": ["10.0.0.210"]},
            {"api_vips": ["10.0.0.200", "2001:db8::200"]},
            {"api_vips": [{"address": "10.0.0.200", "vrid": 77}]},
        ],
        "ingress_vips": [
            {"ingress_vips": ["10.0.0.211"]},
            {"ingress_vips": ["10.0.0.201", {"address": "10.0.0.202", **SHARD}]},
        ],
        "ingress_members": [{"ingress_members": ["worker-0", "master-1"]}],
        "preset": [{"preset": "upstream"}, {"preset": "ocp45"}],
        "delivery": [{"delivery": "pod", "pods": pods.OF_ROLE}],
        "pods": [{"pods": pods.OF_ROLE}],
        "plane": [{"plane": "direct"}],
        "take_over": [{"take_over": True}],
        "api_port": [{"api_port": 7443}],
        "lb_port": [{"lb_port": 9545}],
        "machine_config_port": [{"machine_config_port": 9546}],
        "platform": [{"platform": "vsphere"}],
        "reach": [],  # no run changes it on living members: test_order
        "bgp": [{"bgp": BGP}],
        "bgp_peers": [{"bgp_peers": BGP["peers"]}],
        "ready_port": [{"ready_port": 9544}],
        "monitor_port": [{"monitor_port": 9554}],
        "stats_port": [{"stats_port": 29545}],
        "router_port": [{"router_port": 1937}],
        "server_check": [{"server_check": {"interval": 3}}],
        "bootstrap": [{"bootstrap": "10.0.0.20"}],
        "bootstrap_complete": [{"bootstrap": "10.0.0.20", "bootstrap_complete": True}],
        "machine_networks": [{"machine_networks": ["10.0.0.0/24"]}],
        "checks": [{"checks": IPI_CHECKS}],
    },
}


class Case(NamedTuple):
    """A value of a variable."""

    layout: str
    variable: str
    number: int
    settings: Settings

    def __str__(self) -> str:
        return f"{self.layout}_{self.variable}{f'-{self.number}' if self.number else ''}"


CASES = [
    Case(layout, variable, number, settings)
    for layout, variables in VARIABLES.items()
    for variable, every in variables.items()
    for number, settings in enumerate(every)
]


def members(layout: str, *given: Settings) -> List[Dict[str, Any]]:
    """Return the members of a layout on whose hosts nothing runs yet, with these variables."""
    settings: Settings = {}
    for each in given:
        settings.update(copy.deepcopy(each))
    if layout == "ipi":
        return clusters.cluster(**settings)
    every = {f"lb{number}": pairs.on_two_links(number, **settings) for number in (1, 2, 3)}
    return [every[name] for name in settings.get("members", every)]


def draft(layout: str, given: Sequence[Dict[str, Any]]) -> Plan:
    """Return the plan of members, which must have no fault."""
    plan = planner.draft(LAYOUTS[layout], [*given])
    assert plan.faults == [], plan.faults
    return plan
