# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A balancer that follows its cluster: what the agent is given, which servers a run keeps, and what is refused."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import config
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import follow
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import handed
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.kubeconfig import Credentials
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.clusters import cluster
from support.plans.pairs import pair

KUBECONFIG = "/etc/onprem/kubeconfig"
FOLLOW = {"preset": "kubeadm", "follow": True, "follow_kubeconfig": KUBECONFIG}
URL = "https://api.example.com:6443"
BY_TOKEN = Credentials(URL, "api.example.com", {"token": "/etc/onprem/token"}, {"ca": "an authority"})
PATHS = {"config": "/etc/haproxy/haproxy.cfg", "socket": "/run/haproxy/admin.sock"}


def planned(**settings):
    found = _pair.plan(pair(**{**FOLLOW, **settings}))
    assert found.faults == []
    return found.members["lb1"].follow


def written(plan, credentials=BY_TOKEN):
    """The files, and the configuration as the agent reads it."""
    files = follow.files(plan, credentials, PATHS)
    settings, faults = config.parse(files.config["content"])
    assert faults == []
    return files, settings


def test_without_being_asked_nobody_follows():
    assert {member.follow == {} for member in _pair.plan(pair(preset="kubeadm")).members.values()} == {True}


def test_a_pair_asks_the_api_servers_themselves_before_the_vip_and_follows_the_services_of_the_masters():
    plan = planned(preset="rke2", machine_networks=["192.0.2.0/24"], follow_not_ready_for=30, follow_drain_for=20)
    _files, found = written(plan)
    assert found.api.servers == ("https://192.0.2.21:6443", "https://192.0.2.22:6443", URL)
    assert [target.name for target in found.haproxy.backends] == ["masters-6443", "masters-9345"]
    fallbacks = ["masters-6443-fallback", "masters-9345-fallback"]
    assert [target.fallback for target in found.haproxy.backends] == fallbacks
    assert found.nodes.networks == ("192.0.2.0/24",)
    assert (found.nodes.vips, found.nodes.families) == (("192.0.2.10",), ("ipv4",))
    assert (found.nodes.not_ready_for, found.drain_for) == (30_000_000, 20_000_000)
    assert found.nodes.label == "node-role.kubernetes.io/control-plane"
    assert (found.haproxy.config, found.haproxy.socket) == (PATHS["config"], PATHS["socket"])
    assert (found.haproxy.reload, found.haproxy.loaded) == (tuple(follow.RELOAD), "/run/haproxy.loaded")


def test_the_api_servers_are_asked_at_the_ports_that_they_have():
    assert planned(preset="")["api"] == ["https://192.0.2.21:8443", "https://192.0.2.22:8443"]
    assert planned(masters=[{"address": "192.0.2.21", "port": 7443}])["api"] == ["https://192.0.2.21:7443"]


def test_the_members_of_a_pair_are_no_nodes():
    assert planned()["nodes"]["balancers"] == ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"]
    members = pair(**FOLLOW)
    members[0]["host"]["addresses"].append({"interface": "eth0", "address": "192.0.2.10", "prefix": 32, "mac": ""})
    assert "192.0.2.10" not in _pair.plan(members).members["lb1"].follow["nodes"]["balancers"], "whoever holds a VIP"


def test_the_machine_networks_of_a_pair_that_follows_have_an_effect():
    given = {"machine_networks": ["192.0.2.0/24"]}
    assert [warning for warning in _pair.plan(pair(**FOLLOW, **given)).warnings if "no effect" in warning] == []
    assert [warning for warning in _pair.plan(pair(preset="kubeadm", **given)).warnings if "no effect" in warning]


def test_a_pair_follows_the_services_that_its_user_names():
    plan = planned(follow_services=["infra_nodes-443"], follow_label="node-role.kubernetes.io/infra")
    _files, found = written(plan)
    assert [target.name for target in found.haproxy.backends] == ["infra_nodes-443"]
    assert found.nodes.label == "node-role.kubernetes.io/infra"


BOTH = {"masters-6443": "", "infra_nodes-443": "node-role.kubernetes.io/infra"}


@pytest.mark.parametrize("engine", ["native", "agent"])
def test_a_pair_follows_masters_and_routers_each_service_with_its_own_label(engine):
    _files, found = written(planned(follow_services=BOTH, engine=engine))
    targets = found.haproxy.backends if found.haproxy else found.proxy.services
    assert {target.name: target.label for target in targets} == BOTH
    assert found.nodes.label == "node-role.kubernetes.io/control-plane"


MASTER, CONTROL_PLANE = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"
UPI = {"preset": "openshift_upi", "machine_networks": ["192.0.2.0/24"]}


@pytest.mark.parametrize(
    "settings, label",
    [
        (UPI, MASTER),
        ({"preset": "okd3"}, MASTER),
        ({"preset": ""}, MASTER),
        *(({"preset": preset}, CONTROL_PLANE) for preset in ("kubeadm", "rke2", "k3s")),
        ({**UPI, "follow_label": "role=x"}, "role=x"),
    ],
)
def test_a_pair_follows_the_label_that_its_kind_of_cluster_has(settings, label):
    nodes = planned(**settings)["nodes"]
    assert (nodes["label"], nodes["of_several"]) == (label, "first")


@pytest.mark.parametrize(
    "preset, label, of_several",
    [("default", CONTROL_PLANE, "first"), ("upstream", MASTER, "last"), ("ocp45", MASTER, "last")],
)
def test_a_cluster_follows_as_its_preset_does(preset, label, of_several):
    found = ipi.plan(cluster(follow=True, follow_kubeconfig=KUBECONFIG, preset=preset))
    nodes = found.members["master-0"].follow["nodes"]
    assert (nodes["label"], nodes["of_several"], nodes["networks"]) == (label, of_several, ["10.0.0.0/24"])


def test_a_label_that_nodes_do_not_have_is_a_warning():
    def said(plan):
        return [line for line in plan.warnings if "follow" in line]

    (old,) = said(
        ipi.plan(cluster(follow=True, follow_kubeconfig=KUBECONFIG, preset="ocp45", follow_label=CONTROL_PLANE))
    )
    assert old == (
        f"ipi_follow_label is {CONTROL_PLANE}, and the masters of so old an OpenShift do not have it: follow {MASTER}."
    )
    (upgraded,) = said(_pair.plan(pair(**{**FOLLOW, **UPI, "follow_label": f"{CONTROL_PLANE},!x"})))
    assert "OpenShift does not add it to the masters of a cluster that was upgraded" in upgraded
    (own,) = said(_pair.plan(pair(**{**FOLLOW, "follow_services": {"masters-6443": MASTER}})))
    assert own.startswith(f"pair_follow_services (masters-6443) is {MASTER}, and kubeadm has not set it since")
    for settings in ({}, UPI, {"follow": False, "follow_label": MASTER}):
        assert said(_pair.plan(pair(**{**FOLLOW, **settings}))) == []


@pytest.mark.parametrize(
    "settings, networks",
    [
        ({}, ["192.0.2.0/24"]),
        ({"masters": ["192.0.2.21", "203.0.113.7"]}, ["192.0.2.0/24", "203.0.113.7/32"]),
        ({"masters": ["2001:db8::21"], "infra_nodes": []}, ["2001:db8::/64"]),
        ({"machine_networks": ["198.51.100.0/24"]}, ["198.51.100.0/24"]),
        ({"infra_nodes": ["203.0.113.8"], "follow_services": BOTH}, ["192.0.2.0/24", "203.0.113.8/32"]),
    ],
)
def test_the_machine_networks_are_those_of_the_inventorys_servers_unless_the_user_names_them(settings, networks):
    assert planned(**settings)["nodes"]["networks"] == networks


def test_a_cluster_follows_its_masters_and_asks_the_api_server_on_each_of_them_first():
    nodes = cluster(follow=True, follow_kubeconfig=KUBECONFIG)
    found = ipi.plan(nodes)
    assert found.faults == []
    assert found.members["worker-0"].follow == {}, "which has no balancer"
    _files, settings = written(found.members["master-0"].follow)
    assert settings.api.servers == ("https://127.0.0.1:6443", URL)
    assert [target.name for target in settings.haproxy.backends] == ["masters"]
    assert settings.nodes.vips == ("10.0.0.200", "10.0.0.201")


def test_the_agents_proxy_follows_by_its_own_socket():
    _files, found = written(planned(engine="agent"))
    assert found.haproxy is None
    assert [target.name for target in found.proxy.services] == ["masters-6443"]


def test_what_the_kubeconfig_embeds_becomes_files_that_only_root_reads_and_old_ones_go():
    files, found = written(planned())
    assert files.credentials[0] == {
        "path": "/etc/onprem-lb-follow/ca.crt",
        "state": "present",
        "content": "an authority",
        "mode": "0600",
        "diff": False,
    }
    assert found.api.ca == "/etc/onprem-lb-follow/ca.crt"
    assert found.api.token == "/etc/onprem/token", "which rotates, and is read again"
    assert found.api.server_name == "api.example.com"
    assert {file["path"] for file in files.credentials if file["state"] == "absent"} == {
        "/etc/onprem-lb-follow/certificate.crt",
        "/etc/onprem-lb-follow/key.key",
        "/etc/onprem-lb-follow/token",
    }
    assert (files.config["mode"], files.config["unit"]) == ("0600", "onprem-lb-follow.service")


def test_each_line_of_a_secret_is_one_because_a_log_may_have_them_in_one_line():
    key = "-----BEGIN PRIVATE KEY-----\nMIIE\nvQIB\n-----END PRIVATE KEY-----\n"
    embedded = {"ca": "an authority", "certificate": "a certificate", "key": key}
    files, _found = written(planned(), Credentials(URL, "api.example.com", {}, embedded))
    assert files.secrets == ["MIIE", "vQIB"]
    assert written(planned(), Credentials(URL, "a", {}, {"token": "s3cret"}))[0].secrets == ["s3cret"]


def test_ipv6_servers_are_followed_by_their_ipv6_addresses():
    plan = planned(masters=["2001:db8::21"], vips=["2001:db8::10"], infra_nodes=[])
    assert plan["nodes"]["families"] == ["ipv6"]
    assert plan["api"] == ["https://[2001:db8::21]:6443"]


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"follow_kubeconfig": ""}, "pair_follow_kubeconfig is empty, and pair_follow asks the cluster's API: name a"),
        ({"follow_kubeconfig": "config"}, "pair_follow_kubeconfig is 'config': an absolute path"),
        ({"follow_label": "a b;c"}, "pair_follow_label is 'a b;c': a label selector is required"),
        (
            {"follow_services": {"masters-6443": "a b;c"}},
            "pair_follow_services is a mapping: a label selector is",
        ),
        ({"follow_services": {"web": ""}}, "pair_follow_services names web, which is no service of this layout: mas"),
        ({"follow": "maybe"}, "pair_follow is 'maybe'"),
        ({"follow_not_ready_for": -1}, "pair_follow_not_ready_for is -1"),
        (
            {"follow_services": ["web"]},
            "pair_follow_services names web, which is no service of this layout: masters-64",
        ),
        (
            {"follow_services": ["masters-6443", "infra_nodes-80"], "infra_nodes": ["2001:db8::31"]},
            "pair_follow_services names masters-6443 and infra_nodes-80, whose servers have addresses of different",
        ),
        ({"masters": ["m.example.com"]}, "pair_follow_services names masters-6443, whose servers need addresses"),
        (
            {"masters": ["192.0.2.21", {"address": "192.0.2.22", "weight": 7}]},
            "pair_follow_services names masters-6443, whose servers differ in more than name and address, and nodes do",
        ),
        (
            {"preset": "", "services": [{"name": "web", "port": 80, "servers": ["192.0.2.31"]}]},
            "pair_follow_services is empty: name the services whose servers are the cluster's nodes.",
        ),
        (
            {"preset": "openshift_upi", "machine_networks": ["192.0.2.0/24"], "bootstrap": "192.0.2.20"},
            "pair_follow would take the bootstrap host off the balancer, which is not a node: set it once",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_in_the_users_words(settings, sentence):
    faults = _pair.plan(pair(**{**FOLLOW, **settings})).faults
    assert any(fault.startswith(sentence) for fault in faults), faults


FOLLOWED = [{"name": "node2", "address": "192.0.2.22"}, {"name": "node9", "address": "192.0.2.29"}]


def servers(members, service="masters-6443", of="lb1"):
    balancer = _pair.plan(members).members[of].balancer
    (found,) = [each for each in balancer.services if each["name"] == service]
    return [(each["name"], each["address"], each["port"], each["weight"]) for each in found["servers"]]


def test_a_run_keeps_the_servers_that_the_cluster_has_and_gives_them_the_options_of_the_inventorys():
    masters = [{"name": f"m{at}", "address": f"192.0.2.2{at}", "weight": 7} for at in (1, 2)]
    members = pair(**{**FOLLOW, "masters": masters})
    assert servers(members) == [("m1", "192.0.2.21", 6443, 7), ("m2", "192.0.2.22", 6443, 7)]
    members[0]["host"]["followed"] = {"masters-6443": FOLLOWED}
    assert servers(members) == [("node2", "192.0.2.22", 6443, 7), ("node9", "192.0.2.29", 6443, 7)]
    assert servers(members, "infra_nodes-443") == servers(pair(**FOLLOW), "infra_nodes-443")


def test_a_member_that_is_set_up_anew_begins_with_the_servers_of_another():
    members = pair(**FOLLOW)
    members[0]["host"]["followed"] = {"masters-6443": FOLLOWED}
    members[1]["host"]["followed"] = {}
    assert servers(members, of="lb2") == servers(members, of="lb1")
    members[1]["host"]["followed"] = {"masters-6443": FOLLOWED[:1]}
    assert len(servers(members, of="lb2")) == 1, "it may have heard of a change that the other has not"


def test_a_plan_says_how_many_servers_the_inventory_names_however_few_the_cluster_has():
    members = pair(**{**FOLLOW, "masters": ["192.0.2.21", "192.0.2.22", "192.0.2.23"]})
    members[0]["host"]["followed"] = {"masters-6443": FOLLOWED[:1]}
    member = _pair.plan(members).members["lb1"]
    named = member.balancer.inventory_servers
    assert named["masters-6443"] == 3 and "infra_nodes-443" not in named
    assert _pair.plan(pair()).members["lb1"].balancer.inventory_servers == {}
    about = handed.About("pair", host={}, auth_pass="", raw={}, waits=False, before=False)
    given = handed.to_components(as_data(member), about)
    assert given["haproxy"]["inventory_servers"] == given["agent"]["inventory_servers"] == named


def test_a_run_says_which_servers_it_keeps_and_who_is_behind():
    members = pair(**FOLLOW)
    members[0]["host"]["followed"] = {"masters-6443": FOLLOWED}
    members[1]["host"].update(followed={}, not_following=["https://192.0.2.21:6443 does not answer."])
    said = [
        "lb1: masters-6443 keeps the servers that its cluster has: 192.0.2.22, 192.0.2.29.",
        "lb2 does not follow its cluster: https://192.0.2.21:6443 does not answer.",
    ]
    assert [line for line in _pair.plan(members).warnings if line in said] == said
    members[0]["host"]["followed"] = {"masters-6443": [{"name": "a", "address": f"192.0.2.2{at}"} for at in (2, 1)]}
    assert said[0] not in _pair.plan(members).warnings


def test_the_configuration_does_not_change_with_the_nodes():
    members = pair(**FOLLOW)
    before = _pair.plan(members).members["lb1"].follow
    members[0]["host"]["followed"] = {"masters-6443": FOLLOWED}
    assert _pair.plan(members).members["lb1"].follow == before
    assert json.dumps(before)


def test_who_follows_no_more_gets_the_inventorys_servers_back():
    members = pair(preset="kubeadm")
    members[0]["host"]["followed"] = {"masters-6443": FOLLOWED}
    assert [name for name, *_rest in servers(members)] == [name for name, *_rest in servers(pair(preset="kubeadm"))]


def test_a_cluster_whose_bootstrap_host_is_a_server_is_told_so_in_one_sentence():
    nodes = cluster(follow=True, follow_kubeconfig=KUBECONFIG, bootstrap="10.0.0.33")
    (fault,) = ipi.plan(nodes).faults
    assert fault.startswith(
        "ipi_follow would take the bootstrap host off the balancer, which is not a node: set it once"
    )


def test_a_cluster_without_api_vips_is_not_told_of_a_variable_that_it_does_not_have():
    faults = ipi.plan(cluster(follow=True, follow_kubeconfig=KUBECONFIG, api_vips=[])).faults
    assert faults and not [fault for fault in faults if "follow_services" in fault]
