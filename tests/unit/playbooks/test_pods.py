# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`onprem.lb.pods`, run as a user runs it: it writes what the pods read, and connects to no host."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.playbooks import PLAYBOOKS
from support.playbooks import play

PODS = "onprem.lb.pods"
CLUSTER = """
[ipi_masters]
m0 ansible_host=198.51.100.1
m1 ansible_host=m1.example pods_address='["198.51.100.2"]' ipi_engine=agent

[ipi_workers]
w0 ansible_host=198.51.100.3

[all:vars]
ipi_cluster_name=lab
ipi_api_vips=["198.51.100.10"]
ipi_ingress_vips=["198.51.100.20"]
ipi_interface=eth1
ipi_auth_pass=0f3a9c1e
pods_agent_image=registry.example/agent:1
"""
RESOURCES = "etc/kubernetes/static-pod-resources/onprem-lb"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder that a run has written, in the user's own."""
    home = tmp_path_factory.mktemp("home")
    image = "pods_haproxy_image=registry.example/haproxy:2"
    code, said = play(home, CLUSTER, PODS, "-e", "pods_output=~/out", "-e", image, "--limit", "m0,m1")
    assert code == 0, said
    assert "198.51.100.10 (VRID" in said and "0f3a9c1e" not in said
    return home / "out"


def test_each_node_of_the_run_has_its_pods_and_what_they_read(written):
    assert sorted(each.name for each in written.iterdir()) == ["m0", "m1"]
    manifests = sorted(each.name for each in (written / "m0/etc/kubernetes/manifests").iterdir())
    assert manifests == ["onprem-lb-balancer.yaml", "onprem-lb-router.yaml"]
    conf = (written / "m0" / RESOURCES / "keepalived/keepalived.conf").read_text()
    assert "unicast_src_ip 198.51.100.1\n" in conf and "198.51.100.3" in conf  # outside --limit
    assert (written / "m1" / RESOURCES / "vrrp/vrrp.json").exists()


def test_null_stands_for_the_default(tmp_path):
    unset = {f"pods_{key}": None for key in PLAYBOOKS["pods"] if key not in ("agent_image", "output", "address")}
    given = json.dumps({**unset, "pods_output": str(tmp_path / "out")})
    code, said = play(tmp_path, CLUSTER, PODS, "-e", given, "--limit", "m0")
    assert code == 0, said
    pod = yaml.safe_load((tmp_path / "out/m0/etc/kubernetes/manifests/onprem-lb-router.yaml").read_text())
    assert pod["metadata"]["namespace"] == "kube-system"
    assert {each["imagePullPolicy"] for each in pod["spec"]["containers"]} == {"IfNotPresent"}


def test_the_images_are_those_of_the_user(written):
    pods = [yaml.safe_load(each.read_text()) for each in (written / "m0/etc/kubernetes/manifests").iterdir()]
    images = {each["name"]: each["image"] for pod in pods for each in pod["spec"]["containers"]}
    agent = "registry.example/agent:1"
    assert images == {"haproxy": "registry.example/haproxy:2", "keepalived": agent, "sidecar": agent}


def test_the_password_is_for_the_user_alone(written):
    for file in (f"m0/{RESOURCES}/keepalived/keepalived.conf", f"m1/{RESOURCES}/vrrp/vrrp.json"):
        assert "0f3a9c1e" in (written / file).read_text()
        assert (written / file).stat().st_mode & 0o777 == 0o600


def test_the_agent_is_there_and_takes_the_configuration_of_its_sidecar(written):
    folder = written / "m1" / RESOURCES
    command = [sys.executable, "-I", folder / "agent/agent.pyz", "check-config"]
    for part in ("sidecar", "proxy"):
        done = subprocess.run([*command, "--config", folder / part / f"{part}.json"], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_second_run_takes_back_what_the_node_has_no_more(written):
    home = written.parent
    fewer = CLUSTER.replace("[ipi_workers]\n", "m2 ansible_host=198.51.100.4\n[ipi_workers]\nm0\n", 1)
    fewer = fewer.replace("m0 ansible_host=198.51.100.1\n", "", 1).replace("\nm0\n", "\nm0 ansible_host=198.51.100.1\n")
    code, said = play(home, fewer, PODS, "-e", "pods_output=~/out", "--limit", "m0")
    assert code == 0, said
    manifests = [each.name for each in (written / "m0/etc/kubernetes/manifests").iterdir()]
    assert manifests == ["onprem-lb-router.yaml"]


def test_what_is_missing_misspelt_or_beyond_pods_is_said(tmp_path):
    code, said = play(tmp_path, CLUSTER.replace("pods_agent_image", "pods_agent_imgae"), PODS)
    assert code != 0
    for sentence in ("pods_agent_imgae", "pods_output is missing", "pods_agent_image is missing"):
        assert sentence in said
    follow = ("-e", "ipi_follow=true", "-e", "ipi_follow_kubeconfig=/etc/kubeconfig", "-e", "pods_output=out")
    code, said = play(tmp_path, CLUSTER, PODS, *follow)
    assert code != 0 and "pods_kubeconfig is missing" in said
    assert not (tmp_path / "out").exists()


KUBECONFIG = """
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
clusters: [{name: lab, cluster: {server: "https://198.51.100.10:6443", certificate-authority: ca.crt}}]
users: [{name: lab, user: {token: a-secret-token}}]
"""


def test_masters_follow_their_cluster_with_the_credentials_of_a_kubeconfig_that_nobody_sees(tmp_path):
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    follow = ("-e", "ipi_follow=true", "-e", "ipi_follow_kubeconfig=/etc/lb/kubeconfig")
    own = ("-e", "pods_kubeconfig=kubeconfig", "-e", "pods_output=out")
    code, said = play(tmp_path, CLUSTER, PODS, *follow, *own, "--limit", "m0,w0", "--diff", "-vvv")
    assert code == 0, said
    assert "a-secret-token" not in said
    assert (tmp_path / "out/m0" / RESOURCES / "follow/token").read_text() == "a-secret-token"
    assert '"ca": "/etc/lb/ca.crt"' in (tmp_path / "out/m0" / RESOURCES / "follow/follow.json").read_text()
    assert not (tmp_path / "out/w0" / RESOURCES / "follow").exists()


def test_what_the_nodes_of_a_pool_have_in_common_is_a_machine_config(tmp_path):
    pools = CLUSTER.replace("ipi_engine=agent", "").replace(
        "[all:vars]", "[ipi_workers:vars]\npods_pool=infra\n[all:vars]"
    )
    code, said = play(tmp_path, pools, PODS, "-e", "pods_output=out", "-e", "pods_format=machineconfig")
    assert code == 0, said
    assert "99-master-onprem-lb.yaml: " in said and "each node has its own" in said
    out = tmp_path / "out"
    assert sorted(each.name for each in out.iterdir() if each.is_file()) == [
        "99-infra-onprem-lb.yaml",
        "99-master-onprem-lb.yaml",
    ]
    config = yaml.safe_load((out / "99-master-onprem-lb.yaml").read_text())
    paths = {file["path"] for file in config["spec"]["config"]["storage"]["files"]}
    assert "/etc/kubernetes/manifests/onprem-lb-balancer.yaml" in paths
    assert f"/{RESOURCES}/agent/agent.pyz" in paths
    own = {str(each.relative_to(out / "m0")) for each in (out / "m0").rglob("*") if each.is_file()}
    assert own == {f"{RESOURCES}/keepalived/keepalived.conf", "etc/kubernetes/manifests/onprem-lb-router.yaml"}
    code, said = play(tmp_path, pools, PODS, "-e", "pods_output=out", "-e", "pods_format=machineconfig")
    assert code == 0 and "changed=0" in said
    code, said = play(tmp_path, pools, PODS, "-e", "pods_output=out", "-e", "pods_format=butane")
    assert code != 0 and "pods_format" in said
