# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver that a layout sets up: whose names it answers, what follow keeps of them, and what is refused."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import config
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolver as dns_resolver
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import follow, planner, resolver
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.kubeconfig import Credentials
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.clusters import cluster, living
from support.plans.pairs import pair

NODES = ("master-0", "master-2", "master-1", "worker-0")
DNS = {"dns": True, "domain": "example.com"}
FOLLOW = {**DNS, "follow": True, "follow_kubeconfig": "/etc/onprem/kubeconfig"}
TOKEN = Credentials("https://api.example.com:6443", "", {"token": "/etc/onprem/token"}, {})


def of_cluster(names=NODES, **settings):
    return ipi.plan(cluster(*names, **{**DNS, **settings}))


def members(found):
    assert found.faults == []
    return found.members


def configured(member):
    """What follow is given, as the agent reads it."""
    files = follow.files(member.follow, TOKEN, {"config": "/c", "socket": "/s"})
    found, faults = config.parse(files.config["content"])
    assert faults == []
    return found


def test_without_being_asked_nobody_has_a_resolver():
    assert [member.resolver for member in ipi.plan(cluster(*NODES)).members.values()] == [{}] * 4
    assert [member.resolver for member in _pair.plan(pair()).members.values()] == [{}] * 2


def test_every_node_answers_the_names_of_the_cluster_and_of_all_nodes_at_its_own_address():
    found = members(of_cluster())
    assert {member.resolver["address"] for member in found.values()} == {
        "10.0.0.34",
        "10.0.0.90",
        "10.0.0.99",
        "10.0.0.51",
    }
    layout = found["worker-0"].resolver["layout"]
    assert layout["nodes"] == {
        "master-0": ["10.0.0.34"],
        "master-2": ["10.0.0.90"],
        "master-1": ["10.0.0.99"],
        "worker-0": ["10.0.0.51"],
    }
    wrong = []
    names = dns_resolver.names_of(layout, 30, wrong)
    assert wrong == []
    assert names.hosts == {
        "api.vmware.example.com": ["10.0.0.200"],
        "api-int.vmware.example.com": ["10.0.0.200"],
        "*.apps.vmware.example.com": ["10.0.0.201"],
    }


def test_the_plan_of_a_member_is_json_for_its_role():
    assert json.dumps(members(of_cluster())["master-0"].resolver)


def test_with_vips_of_both_families_a_node_has_its_addresses_of_both():
    found = members(of_cluster(api_vips=["10.0.0.200", "2001:db8::200"]))
    assert found["master-0"].resolver["layout"]["nodes"]["master-0"] == ["10.0.0.34", "2001:db8::34"]


def test_a_bootstrap_host_that_is_a_member_is_called_bootstrap():
    masters = ["master-0", "master-2", "master-1", "bootstrap-0"]
    found = members(of_cluster((*NODES, "bootstrap-0"), masters=masters, bootstrap="bootstrap-0"))
    names = dns_resolver.names_of(found["master-0"].resolver["layout"], 30, faults := [])
    assert faults == []
    assert names.hosts["bootstrap.vmware.example.com"] == ["10.0.0.20"]
    assert "bootstrap-0.vmware.example.com" not in names.nodes


def test_a_node_that_holds_no_vip_has_the_addresses_in_the_subnets_of_those_that_do():
    masters = ["master-0", "master-2", "master-1", "bootstrap-0"]
    gone = {"bootstrap": "bootstrap-0", "bootstrap_complete": True}
    nodes = cluster(*NODES, "bootstrap-0", **DNS, **gone, masters=masters)
    for node in nodes:
        others = {"fe80::15": 64, "10.42.0.1": 24}  # as every interface has, and the bridge of the pods
        node["host"]["addresses"] += [
            {**node["host"]["addresses"][0], "address": address, "prefix": prefix} for address, prefix in others.items()
        ]
    layout = members(ipi.plan(nodes))["master-0"].resolver["layout"]
    assert layout["hosts"]["bootstrap-0"] == ["10.0.0.20"]
    assert layout["nodes"]["bootstrap-0"] == ["10.0.0.20"]


def test_the_bootstrap_host_has_a_name_until_it_is_complete():
    def layout(**settings):
        found = members(of_cluster(bootstrap="10.0.0.60", machine_networks=["10.0.0.0/24"], **settings))
        return found["master-0"].resolver["layout"]

    assert layout()["bootstrap"] == "10.0.0.60"
    assert layout(bootstrap_complete=True)["bootstrap"] == ""


def test_a_pair_before_an_api_answers_its_names_too():
    found = members(_pair.plan(pair(preset="kubeadm", **{**DNS, "domain": "lab.example.com"})))
    wrong = []
    names = dns_resolver.names_of(found["lb1"].resolver["layout"], 30, wrong)
    assert wrong == []
    assert names.hosts["api-int.lab.example.com"] == ["192.0.2.10"]
    assert names.hosts["haproxy-1.lab.example.com"] == ["192.0.2.2"]
    other = members(_pair.plan(pair(**DNS)))["lb1"].resolver["layout"]
    assert other["api"] is False


def test_follow_keeps_the_names_of_all_nodes_on_the_workers_too():
    found = members(of_cluster(**FOLLOW))
    master, worker = configured(found["master-0"]), configured(found["worker-0"])
    assert master.hosts.domain == worker.hosts.domain == "vmware.example.com"
    assert master.haproxy and not worker.haproxy and not worker.proxy
    # There is no API server on a worker.
    assert master.api.servers[0] == "https://127.0.0.1:6443"
    assert worker.api.servers == ("https://api.example.com:6443",)
    assert found["worker-0"].resolver["follows"] is True


def test_without_a_resolver_a_worker_follows_nobody():
    found = members(ipi.plan(cluster(*NODES, follow=True, follow_kubeconfig="/etc/onprem/kubeconfig")))
    assert found["worker-0"].follow == {}
    assert configured(found["master-0"]).hosts is None


def test_no_node_of_the_cluster_can_take_a_name_that_the_layout_answers():
    found = members(_pair.plan(pair(**{**FOLLOW, "preset": "kubeadm", "domain": "lab.example.com"})))
    assert set(configured(found["lb1"]).hosts.reserved) == {
        "api",
        "api-int",
        "apps",
        "haproxy",
        "haproxy-0",
        "haproxy-1",
    }


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"domain": ""}, "ipi_domain is empty: give a name, for instance example.com."),
        ({"domain": "exa_mple.com"}, "ipi_domain is 'exa_mple.com': its part 'exa_mple' has to be 1 to 63 letters"),
        ({"dns": "perhaps"}, "ipi_dns is 'perhaps': "),
    ],
)
def test_a_name_that_is_none_is_refused(settings, sentence):
    found = of_cluster(**settings)
    assert [fault for fault in found.faults if fault.startswith(sentence)] == found.faults


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"domain": ""}, "pair_domain is empty: give a name, for instance example.com."),
        ({"subdomain": "*"}, "pair_subdomain is '*': a * may only be"),
    ],
)
def test_the_sentences_for_a_pair_have_its_own_variables(settings, sentence):
    (fault,) = _pair.plan(pair(**{**DNS, **settings})).faults
    assert fault.startswith(sentence)


def renamed(**names):
    """The nodes, some of them with another name in the inventory."""
    found = cluster(*NODES, **DNS)
    for node in found:
        node["settings"]["masters"] = [names.get(name, name) for name in node["settings"]["masters"]]
    for node in found:
        node["name"] = names.get(node["name"], node["name"])
    return ipi.plan(found)


@pytest.mark.parametrize("name", ["worker-0", "worker-0.vmware.example.com", "Worker-0.VMware.example.com"])
def test_a_node_may_be_called_by_its_short_or_its_whole_name(name):
    found = renamed(**{"worker-0": name})
    assert "worker-0" in members(found)["master-0"].resolver["layout"]["nodes"]
    assert left_out(found) == []


def left_out(found):
    return [line for line in found.warnings if line.startswith("The resolver gives no name")]


@pytest.mark.parametrize("name", ["dev.example.com", "worker-0.other.example", "10.0.0.51", "a.b.vmware.example.com"])
def test_a_name_that_is_not_directly_below_the_domain_is_left_out_and_the_plan_says_so(name):
    """As `follow` does with the nodes' own names, by the same rule."""
    found = renamed(**{"worker-0": name})
    assert [*members(found)["master-0"].resolver["layout"]["nodes"]] == ["master-0", "master-2", "master-1"]
    assert left_out(found) == [f"The resolver gives no name to {name} (it is not directly below vmware.example.com)."]


def test_a_cluster_of_which_no_node_is_named_below_its_domain_keeps_its_other_names():
    found = renamed(**{name: f"{name}.example.net" for name in NODES})
    (layout,) = {json.dumps(member.resolver["layout"]["nodes"]) for member in members(found).values()}
    assert layout == "{}" and len(left_out(found)) == 1


def test_the_bootstrap_host_has_its_own_name_whatever_the_inventory_calls_it():
    masters = ["master-0", "master-2", "master-1", "bootstrap-0"]
    nodes = cluster(*NODES, "bootstrap-0", **{**DNS, "masters": masters, "bootstrap": "bootstrap-0"})
    text = json.dumps(nodes).replace("bootstrap-0", "boot.example.net")
    found = ipi.plan(json.loads(text))
    names = dns_resolver.names_of(members(found)["master-0"].resolver["layout"], 30, [])
    assert names.hosts["bootstrap.vmware.example.com"] == ["10.0.0.20"] and left_out(found) == []


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("api", "The inventory has 'api', which means something else in a cluster: call the node otherwise."),
        ("worker_0", "The node worker_0, of which ipi_dns makes a name, is 'worker_0': its part 'worker_0' has to be"),
        (
            "master-0.vmware.example.com",
            "master-0 and master-0.vmware.example.com would both be master-0.vmware.example.com: rename one of them",
        ),
        ("vmware.example.com", "The inventory has 'vmware.example.com', which is the domain itself: call the node"),
    ],
)
def test_a_node_whose_name_is_none_is_refused(name, sentence):
    assert any(fault.startswith(sentence) for fault in renamed(**{"worker-0": name}).faults)


def test_a_member_that_is_not_known_yet_has_no_made_up_address():
    nodes = cluster(*NODES, **DNS)
    nodes[3].update(host=None, address="worker-0")
    assert "worker-0" not in members(ipi.plan(nodes))["master-0"].resolver["layout"]["nodes"]


OLD = "10.0.0.250"
LEADS = {"api.vmware.example.com": [OLD], "*.apps.vmware.example.com": ["10.0.0.201"]}


def without_names(named, running, **settings):
    """The faults of a plan without resolvers, for nodes that have one and whose routers have these VIPs."""
    nodes = cluster(*NODES, **settings)
    for one in nodes:
        one["host"].update(named=named, instances=[{"addresses": [f"{running}/24"]}])
    vips = ["10.0.0.200", "10.0.0.201"]
    return [fault for prefix in ("ipi", "pair") for fault in resolver.abandoned(None, nodes, vips, prefix)]


def test_a_resolver_does_not_go_in_the_run_that_gives_up_the_vips_that_it_answers():
    """It goes after the run is confirmed, and without it nobody knows to which VIP a name is to lead until then."""
    for_cluster, for_pair = without_names(LEADS, OLD)
    assert for_cluster.startswith("ipi_dns is false") and "keep ipi_dns: true" in for_cluster
    assert f"lead api.vmware.example.com to {OLD}," in for_cluster and "apps" not in for_cluster
    assert for_pair.startswith("pair_dns is false")


@pytest.mark.parametrize("vip, dns", [("10.0.0.210", False), ("10.0.0.210", True), ("10.0.0.200", False)])
def test_a_plan_for_a_cluster_that_runs_refuses_that_and_nothing_else(vip, dns):
    nodes = living(["master-0", "master-2", "master-1"], {}, api_vips=[vip], **{**DNS, "dns": dns})
    for one in nodes:
        one["host"]["named"] = {"api.vmware.example.com": ["10.0.0.200"]}
    refused = [fault for fault in planner.draft(ipi.LAYOUT, nodes).faults if fault.startswith("ipi_dns is false")]
    assert len(refused) == (vip != "10.0.0.200" and not dns)


@pytest.mark.parametrize(
    "named, running",
    [
        ({}, OLD),  # no resolver
        ({"api.vmware.example.com": ["10.0.0.200"]}, "10.0.0.200"),  # no other VIP
        ({"api.vmware.example.com": ["10.0.0.200", OLD]}, OLD),  # one that stays is found, too
        ({"bootstrap.vmware.example.com": ["10.0.0.77"]}, OLD),  # no VIP
    ],
)
def test_where_every_name_leads_to_somebody_it_may_go(named, running):
    assert without_names(named, running) == []


def test_with_a_resolver_or_where_nothing_is_to_change_nothing_is_refused():
    nodes = cluster(*NODES)
    for one in nodes:
        one["host"].update(named=LEADS, instances=[{"addresses": [OLD]}])
    about = resolver.Resolver({}, {}, dns_resolver.Names())
    assert resolver.abandoned(None, nodes, [], "ipi") != [] == resolver.abandoned(about, nodes, [], "ipi")
    assert resolver.abandoned(None, [{**one, "stays": True} for one in nodes], [], "ipi") == []


def test_a_resolver_that_does_not_listen_where_its_host_asks_is_refused_before_the_run():
    """The role would refuse it once members change, and the forecast would have said nothing."""
    members = pair(**DNS)
    for member in members:
        member["resolver_listen"] = ["192.0.2.99"]
    assert [fault.partition(": ")[::2] for fault in _pair.plan(members).faults] == [
        ("lb1", "resolver_address is 192.0.2.1, which resolver_listen lacks: add it there."),
        ("lb2", "resolver_address is 192.0.2.2, which resolver_listen lacks: add it there."),
    ]
    for at, member in enumerate(members, 1):
        member["resolver_listen"] = ["192.0.2.99", f"192.0.2.{at}"]
    assert _pair.plan(members).faults == []


def test_where_a_resolver_listens_is_no_matter_of_a_layout_without_one():
    members = [{**each, "resolver_listen": ["192.0.2.99"]} for each in pair()]
    assert _pair.plan(members).faults == []
