# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The manifests of static pods: what Kubernetes takes, and what the programs need."""

from __future__ import annotations

import itertools
import posixpath

import kubernetes_validate
import pytest
from kubernetes_validate.utils import all_versions
from support.plans import pods

ENGINES, PRESETS, MEMBERS = ("native", "agent"), ("default", "upstream", "ocp45"), ("master-0", "worker-0")
EVERY = list(itertools.product(MEMBERS, ENGINES, (*PRESETS, "bgp"), ("", "follow")))
VERSIONS = [all_versions()[0], all_versions()[-1]]  # of Kubernetes: the oldest and the newest that the library knows


@pytest.fixture(params=EVERY, ids="-".join)
def made(request):
    name, engine, preset, follows = request.param
    announced = {**pods.BGP, "preset": "default"} if preset == "bgp" else {"preset": preset}
    return pods.made(name, engine=engine, **announced, **(pods.FOLLOW if follows else {}))


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_schema_accepts_each(made, version):
    for manifest in made.manifests.values():
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schema_refuses_what_is_misspelt():
    manifest = pods.pod("router")
    manifest["spec"]["hostNetworks"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


def test_a_worker_has_a_router_and_no_balancer():
    assert [*pods.made("worker-0").manifests] == ["/etc/kubernetes/manifests/onprem-lb-router.yaml"]


def test_each_pod_is_a_part_of_its_node(made):
    for manifest in made.manifests.values():
        spec = manifest["spec"]
        assert spec["hostNetwork"] is True
        assert (spec["priorityClassName"], spec["priority"]) == ("system-node-critical", 2000001000)
        assert spec["tolerations"] == [{"operator": "Exists"}]
        assert manifest["metadata"]["namespace"] == "kube-system"


def test_each_container_drops_every_capability_that_it_does_not_need(made):
    for manifest in made.manifests.values():
        for container in manifest["spec"]["containers"]:
            context = container["securityContext"]
            assert context["capabilities"]["drop"] == ["ALL"]
            assert context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"] is True
            assert "privileged" not in context


@pytest.mark.parametrize(
    ("kind", "name", "settings", "expected"),
    [
        # Without SETGID keepalived cannot run the programs of its checks, and takes each of them for a success.
        ("router", "keepalived", {}, ["NET_ADMIN", "NET_RAW", "SETGID"]),
        ("router", "sidecar", {}, ["NET_ADMIN", "NET_RAW"]),
        ("router", "vrrp", {"engine": "agent"}, ["NET_ADMIN", "NET_RAW", "SYS_NICE", "IPC_LOCK"]),
        (
            "router",
            "vrrp",
            {"engine": "agent", "preset": "upstream"},  # whose checks are programs
            ["NET_ADMIN", "NET_RAW", "SYS_NICE", "IPC_LOCK", "SETUID", "SETGID", "KILL"],
        ),
        # Without KILL haproxy's master could not end its worker, which is another user's.
        ("balancer", "haproxy", {}, ["SETGID", "SETUID", "SYS_CHROOT", "KILL"]),
        ("balancer", "haproxy", {"lb_port": 943}, ["NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT", "KILL"]),
        ("balancer", "proxy", {"engine": "agent"}, []),
        ("follow", "follow", pods.FOLLOW, []),
        ("follow", "follow", {**pods.FOLLOW, "engine": "agent"}, []),
        ("balancer", "proxy", {"engine": "agent", "lb_port": 943}, ["NET_BIND_SERVICE"]),
        ("router", "sidecar", pods.BGP, ["NET_ADMIN"]),
        ("router", "anycast", pods.BGP, ["NET_ADMIN"]),
        (
            "router",
            "anycast",
            {**pods.BGP, "checks": [{"script": "/usr/bin/true"}]},
            ["NET_ADMIN", "SETUID", "SETGID", "KILL"],
        ),
        # FRR's daemons do not start without each of the first four.
        (
            "router",
            "frr",
            pods.BGP,
            [
                *("NET_ADMIN", "NET_RAW", "NET_BIND_SERVICE", "SYS_ADMIN"),
                *("SETUID", "SETGID", "CHOWN", "DAC_OVERRIDE", "KILL"),
            ],
        ),
    ],
)
def test_the_capabilities(kind, name, settings, expected):
    assert pods.container(kind, name, **settings)["securityContext"]["capabilities"].get("add", []) == expected


def test_each_container_is_of_its_image():
    assert pods.container("balancer", "haproxy")["image"] == "registry.example/haproxy:2.8"
    assert pods.container("router", "keepalived")["image"] == "registry.example/keepalived:2.3"
    agents = [pods.container("router", "sidecar")]
    agents += [pods.container(*each, engine="agent") for each in (("balancer", "proxy"), ("router", "vrrp"))]
    assert {each["image"] for each in agents} == {"registry.example/python:3.12"}
    assert pods.container("router", "frr", **pods.BGP)["image"] == "registry.example/frr:10"
    assert pods.container("follow", "follow", **pods.FOLLOW)["image"] == "registry.example/follow:1"


def test_what_a_container_names_of_the_host_is_there(made):
    """Each file below a folder that is mounted read-only is one that is written."""
    written = {file.path for file in made.configurations}
    written.add("/etc/kubernetes/static-pod-resources/onprem-lb/agent/agent.pyz")
    for manifest in made.manifests.values():
        folders = {each["name"]: each.get("hostPath", {}).get("path") for each in manifest["spec"]["volumes"]}
        for container in manifest["spec"]["containers"]:
            mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
            named = [*container["command"], *container.get("livenessProbe", {}).get("exec", {}).get("command", [])]
            for word in named:
                mount = mounts.get(posixpath.dirname(word), {})
                if mount.get("readOnly"):
                    assert f"{folders[mount['name']]}/{posixpath.basename(word)}" in written


def test_each_folder_of_the_host_that_must_be_there_has_a_file(made):
    folders = {posixpath.dirname(file.path) for file in made.configurations}
    folders.add("/etc/kubernetes/static-pod-resources/onprem-lb/agent")
    folders.add("/etc/kubernetes/pki")  # the kubeconfig names it
    for manifest in made.manifests.values():
        hosts = [each["hostPath"] for each in manifest["spec"]["volumes"] if "hostPath" in each]
        assert {each["path"] for each in hosts if each["type"] == "Directory"} <= folders


def test_the_password_is_for_root_alone():
    for engine in ENGINES:
        with_password = [each for each in pods.made(engine=engine).configurations if pods.PASSWORD in each.content]
        assert [each.mode for each in with_password] == ["0600"]
        for manifest in pods.made(engine=engine).manifests.values():
            assert pods.PASSWORD not in str(manifest)


def test_a_balancer_is_alive_as_long_as_it_answers_though_no_api_server_does():
    get = pods.container("balancer", "haproxy")["livenessProbe"]["httpGet"]
    assert (get["host"], get["port"], get["path"]) == ("127.0.0.1", 9444, "/haproxy_ready")
    assert pods.container("balancer", "haproxy", ready_port=9555)["livenessProbe"]["httpGet"]["port"] == 9555


def test_the_kubelet_starts_the_pod_anew_whose_configuration_changes_and_no_other():
    def marks(**settings):
        return [pods.pod(kind, **settings)["metadata"]["annotations"] for kind in ("balancer", "router")]

    before, after = marks(), marks(server_check={"interval": 7})
    assert before[0] != after[0] and before[1] == after[1]
    assert marks(advert_interval=2)[0] == before[0] and marks(advert_interval=2)[1] != before[1]


def test_the_containers_of_a_router_share_a_folder_that_is_not_run_itself():
    """Some container runtimes mount a folder of their own there, and on /tmp, if the root is read-only."""
    mounts = [
        {each["mountPath"]: each["name"] for each in pods.container("router", name)["volumeMounts"]}
        for name in ("sidecar", "keepalived")
    ]
    assert mounts[0]["/run/onprem-lb-vrrp"] == mounts[1]["/run/onprem-lb-vrrp"] == "run"
    assert not any("/run" in each for each in mounts)


def test_the_folder_of_keepalived_itself_stays_that_of_its_image():
    """Version 2.3 reads a file of its package there."""
    mounts = [each["mountPath"] for each in pods.container("router", "keepalived")["volumeMounts"]]
    assert "/etc/keepalived" not in mounts


def test_the_router_waits_for_what_it_tracks():
    """The preset that polls has no track file."""
    assert "/run/onprem-lb-vrrp/haproxy.down" in pods.container("router", "keepalived")["command"]
    assert "/run/onprem-lb-vrrp/haproxy.down" in pods.container("router", "vrrp", engine="agent")["command"]
    assert (
        "/run/onprem-lb-vrrp/haproxy.down" not in pods.container("router", "keepalived", preset="upstream")["command"]
    )
    assert "/run/onprem-lb-vrrp/haproxy.down" not in pods.container("router", "keepalived", "worker-0")["command"]


def test_the_sidecar_starts_first():
    assert [each["name"] for each in pods.pod("router")["spec"]["containers"]] == ["sidecar", "keepalived"]


def test_an_agent_alone_on_a_worker_needs_no_sidecar():
    containers = pods.pod("router", "worker-0", engine="agent")["spec"]["containers"]
    assert [each["name"] for each in containers] == ["vrrp"]
