# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pod of `follow`, and how it reaches the balancer that is in another pod."""

from __future__ import annotations

import json
import posixpath

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import config
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import follow as follow_files
from support.plans import pods


def follow(engine):
    return {**pods.FOLLOW, "engine": engine}


def mounted(container, pod):
    """The folders of the host that a container sees, by their path there, each with whether it may write."""
    hosts = {each["name"]: each.get("hostPath", {}).get("path") for each in pod["spec"]["volumes"]}
    return {each["mountPath"]: (hosts[each["name"]], "readOnly" not in each) for each in container["volumeMounts"]}


def volumes(kind, name, engine):
    return mounted(pods.container(kind, name, **follow(engine)), pods.pod(kind, **follow(engine)))


@pytest.mark.parametrize("engine", ["native", "agent"])
def test_the_agent_accepts_its_configuration(engine):
    assert config.parse(pods.text("follow.json", **follow(engine)))[1] == []


def test_haproxy_is_not_reloaded_by_systemd():
    haproxy = json.loads(pods.text("follow.json", **follow("native")))["haproxy"]
    assert haproxy == {
        "backends": [{"name": "masters", "fallback": "masters-fallback"}],
        "config": "/etc/haproxy/haproxy.cfg",
        "socket": "/run/haproxy/admin.sock",
        "loaded": "/run/onprem-lb/balancer.loaded",
    }


def test_it_keeps_the_record_of_what_haproxy_has_loaded():
    """Otherwise a run would find a server that it has added not in force."""
    loaded = json.loads(pods.text("follow.json", **follow("native")))["haproxy"]["loaded"]
    fifo = pods.container("balancer", "haproxy", **follow("native"))["command"][4]
    assert loaded == f"{fifo}.loaded"
    shared = posixpath.dirname(loaded)
    own, others = volumes("follow", "follow", "native"), volumes("balancer", "haproxy", "native")
    assert own[shared] == others[shared] == ("/run/onprem-lb", True)


def test_a_run_knows_its_container_and_the_file_that_it_has_loaded():
    command = pods.container("follow", "follow", **follow("native"))["command"]
    assert (command[:2], command[3], command[5]) == (["/bin/sh", "-c"], "onprem-lb", follow_files.CONFIG)


def test_it_writes_the_file_that_the_agents_proxy_reads():
    proxy = json.loads(pods.text("follow.json", **follow("agent")))["proxy"]
    command = pods.container("balancer", "proxy", **follow("agent"))["command"]
    assert proxy["config"] == command[-1]


@pytest.mark.parametrize(
    ("engine", "balancer", "config_folder", "socket_folder"),
    [
        ("native", "haproxy", "/etc/haproxy", "/run/haproxy"),
        ("agent", "proxy", "/etc/onprem-lb-agent/proxy", "/run/onprem-lb-proxy"),
    ],
)
def test_both_pods_see_the_same_file_and_the_same_socket(engine, balancer, config_folder, socket_folder):
    own, others = volumes("follow", "follow", engine), volumes("balancer", balancer, engine)
    assert own[config_folder][0] == others[config_folder][0]
    assert (own[config_folder][1], others[config_folder][1]) == (True, False)
    assert own[socket_folder] == others[socket_folder] and own[socket_folder][0]


def test_without_it_nobody_else_reaches_the_balancers_socket():
    assert mounted(pods.container("balancer", "haproxy"), pods.pod("balancer"))["/run/haproxy"] == (None, True)


def test_credentials_that_the_kubeconfig_embeds_are_for_root_alone_and_those_that_it_names_are_the_hosts():
    made = pods.made(**follow("native"))
    token = next(file for file in made.configurations if file.path.endswith("/follow/token"))
    assert (token.content, token.mode) == ("a-token", "0600") and made.secrets == [pods.PASSWORD, "a-token"]
    api = json.loads(pods.text("follow.json", **follow("native")))["api"]
    assert (api["token"], api["ca"]) == ("/etc/onprem-lb-follow/token", "/etc/kubernetes/pki/ca.crt")
    assert volumes("follow", "follow", "native")["/etc/kubernetes/pki"] == ("/etc/kubernetes/pki", False)


def test_what_it_knows_outlives_the_pod():
    assert volumes("follow", "follow", "native")["/var/lib/onprem-lb-follow"] == ("/var/lib/onprem-lb-follow", True)


def test_a_node_without_a_balancer_follows_the_names_alone():
    worker = {**follow("native"), "dns": True, "domain": "lab.example"}
    found = mounted(pods.container("follow", "follow", "worker-0", **worker), pods.pod("follow", "worker-0", **worker))
    assert found["/etc/onprem-lb-resolver"] == ("/etc/onprem-lb-resolver", True)
    assert not {"/etc/haproxy", "/run/haproxy", "/run/onprem-lb"} & {*found}
    given = json.loads(pods.text("follow.json", "worker-0", **worker))
    assert given["hosts"]["domain"].endswith("lab.example") and "haproxy" not in given
    assert "/etc/onprem-lb-resolver" not in volumes("follow", "follow", "native")


def test_a_node_without_a_balancer_follows_nobody():
    assert [*pods.made("worker-0", **follow("native")).manifests] == ["/etc/kubernetes/manifests/onprem-lb-router.yaml"]
