# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of a member as the playbook writes them."""

from __future__ import annotations

import base64
import functools
import json

import yaml
from ansible_collections.onprem.lb.plugins.filter import pods as _filter
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from support.plans import clusters, pods

RESOURCES = "/etc/kubernetes/static-pod-resources/onprem-lb"
OPTIONS = pods.OF_ROLE


@functools.lru_cache(maxsize=None)
def found():
    settings = {"interface": "ens192", "auth_pass": pods.PASSWORD}
    names = [*clusters.ADDRESSES]
    given = [
        {**each, "settings": json.dumps(each["settings"]), "host": None, "address": each["name"], "members": names}
        for each in clusters.cluster(**settings)
    ]
    addresses = {name: [f"10.0.0.{number}"] for name, number in clusters.ADDRESSES.items()}
    return _filter.layout_pods(given, addresses, OPTIONS)


def of_node(name):
    return {file["path"]: file for file in found()["members"][name]}


def test_the_manifests_come_last_and_are_those_of_the_plan():
    files = found()["members"]["master-0"]
    paths = [file["path"] for file in files if file.get("state") != "absent"]
    assert [path.startswith("/etc/kubernetes/manifests/") for path in paths] == [False] * (len(paths) - 2) + [True] * 2
    manifests = pods.made("master-0", auth_pass=pods.PASSWORD).manifests
    assert {path: yaml.safe_load(of_node("master-0")[path]["content"]) for path in paths[-2:]} == manifests
    assert {"path": "/etc/kubernetes/manifests/onprem-lb-follow.yaml", "state": "absent"} in files


def test_nothing_stays_in_the_folder_that_the_pods_do_not_read():
    """Such as another engine's files, with a former password."""
    files = of_node("worker-0")
    assert (
        files[f"{RESOURCES}/vrrp/vrrp.json"]["state"] == files[f"{RESOURCES}/haproxy/haproxy.cfg"]["state"] == "absent"
    )
    assert "content" in files[f"{RESOURCES}/keepalived/keepalived.conf"]


def test_a_pod_that_a_node_does_not_have_is_absent():
    files = of_node("worker-0")
    assert files["/etc/kubernetes/manifests/onprem-lb-balancer.yaml"]["state"] == "absent"


def test_a_program_of_several_lines_is_readable():
    text = of_node("master-0")["/etc/kubernetes/manifests/onprem-lb-router.yaml"]["content"]
    assert "        - |\n          fifo=$1" in text and "\\n" not in text


KUBECONFIG = yaml.safe_dump(
    {
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "follow"}}],
        "clusters": [
            {
                "name": "lab",
                "cluster": {
                    "server": "https://10.0.0.1:6443",
                    "certificate-authority": "/etc/kubernetes/pki/ca.crt",
                },
            }
        ],
        "users": [{"name": "follow", "user": {"token": "a-token"}}],
    }
)
FOLLOW_POD = "/etc/kubernetes/manifests/onprem-lb-follow.yaml"


def delivered(name="master-0", **settings):
    """What the role delivers to a member."""
    settings = {"delivery": "pod", "pods": {"agent_image": "registry.example/onprem-lb:1"}, **settings}
    plan = planner.draft(ipi.LAYOUT, clusters.cluster(**settings))
    assert plan.faults == []
    return _filter.pod_files(
        as_data(plan.members[name]), name, pods.PASSWORD, base64.b64encode(KUBECONFIG.encode()).decode()
    )


def by_path(found):
    return {file["path"]: file for file in found["files"]}


def test_the_role_delivers_what_the_playbook_writes_but_for_what_starts_a_pod_anew():
    written = of_node("master-0")
    mine = by_path(delivered(interface="ens192", auth_pass=pods.PASSWORD))
    differing = [path for path, file in written.items() if file.get("content") != mine[path].get("content")]
    assert all(path.startswith("/etc/kubernetes/manifests/") for path in differing)


def test_the_manifests_come_last_and_a_stopped_pod_is_one_no_more_after_that():
    found = delivered()
    paths = [file["path"].rpartition("/") for file in found["files"]]
    written = [folder for folder, _slash, name in paths if by_path(found)["/".join((folder, name))].get("content")]
    manifests = written.index("/etc/kubernetes/manifests")
    assert {*written[manifests:]} == {"/etc/kubernetes/manifests"}
    assert [name[0] for _folder, _slash, name in paths[-3:]] == ["."] * 3
    assert {file.get("state") for file in delivered()["files"][-3:]} == {"absent"}


def test_what_a_member_does_not_need_any_more_goes_after_its_manifest():
    files = delivered(name="worker-0")["files"]
    gone = [file["path"] for file in files if file.get("state") == "absent"]
    assert f"{RESOURCES}/haproxy/haproxy.cfg" in gone and f"{RESOURCES}/keepalived/keepalived.conf" not in gone
    assert gone.index("/etc/kubernetes/manifests/onprem-lb-balancer.yaml") < gone.index(
        f"{RESOURCES}/haproxy/haproxy.cfg"
    )


def test_a_program_that_can_reload_its_file_keeps_its_pod():
    manifest = "/etc/kubernetes/manifests/onprem-lb-{}.yaml"
    before, after = by_path(delivered()), by_path(delivered(server_check={"interval": 7}, advert_interval=2))
    for name in ("balancer", "router"):
        assert before[manifest.format(name)] == after[manifest.format(name)]
    assert before[f"{RESOURCES}/haproxy/haproxy.cfg"] != after[f"{RESOURCES}/haproxy/haproxy.cfg"]
    assert before[f"{RESOURCES}/keepalived/keepalived.conf"] != after[f"{RESOURCES}/keepalived/keepalived.conf"]


def test_a_member_follows_its_cluster_in_a_pod_of_its_own():
    found = delivered(**pods.FOLLOW)
    files = by_path(found)
    assert found["pods"] == ["onprem-lb-balancer", "onprem-lb-router", "onprem-lb-follow"]
    assert found["secrets"] == [pods.PASSWORD, "a-token"]
    assert files[f"{RESOURCES}/follow/token"] == {
        "path": f"{RESOURCES}/follow/token",
        "content": "a-token",
        "mode": "0600",
        "diff": False,
    }
    assert files[f"{RESOURCES}/follow/follow.json"]["unit"] == files[FOLLOW_POD]["unit"] == "onprem-lb-follow"
    assert files[f"{RESOURCES}/follow/key.key"]["state"] == "absent"


def test_what_it_follows_changes_at_a_reload_and_what_it_does_not_follow_any_more_goes():
    before, after = by_path(delivered(**pods.FOLLOW)), by_path(delivered(**pods.FOLLOW, follow_drain_for=60))
    assert [path for path in before if before[path] != after[path]] == [f"{RESOURCES}/follow/follow.json"]
    none = by_path(delivered())
    assert {none[path]["state"] for path in (FOLLOW_POD, f"{RESOURCES}/follow/token")} == {"absent"}


def test_the_differences_of_credentials_are_shown_to_nobody():
    """That of one that has changed, or is gone, would show the former one."""
    every = ["ca.crt", "certificate.crt", "key.key", "token"]
    for found in (delivered(**pods.FOLLOW), delivered()):
        hidden = [path for path, file in by_path(found).items() if file.get("diff") is False]
        assert sorted(hidden) == [f"{RESOURCES}/follow/{name}" for name in every]


def test_a_sidecar_that_reads_its_files_once_is_started_anew():
    manifest = "/etc/kubernetes/manifests/onprem-lb-router.yaml"
    assert by_path(delivered())[manifest] != by_path(delivered(lb_port=9555))[manifest]


def test_another_image_starts_its_pod_anew_and_no_other():
    other = {"agent_image": "registry.example/onprem-lb:1", "haproxy_image": "registry.example/haproxy:3"}
    before, after = by_path(delivered()), by_path(delivered(pods=other))
    changed = [path for path in before if before[path] != after[path]]
    assert changed == ["/etc/kubernetes/manifests/onprem-lb-balancer.yaml"]
    annotation = [yaml.safe_load(each[changed[0]]["content"])["metadata"]["annotations"] for each in (before, after)]
    assert annotation[0] != annotation[1]


def test_a_file_names_the_pod_that_loads_it_and_the_manifest_its_pod():
    units = {path.rpartition("/")[2]: file["unit"] for path, file in by_path(delivered()).items() if "unit" in file}
    assert units == {
        "haproxy.cfg": "onprem-lb-balancer",
        "keepalived.conf": "onprem-lb-router",
        "proxy.json": "onprem-lb-balancer",
        "vrrp.json": "onprem-lb-router",
        "onprem-lb-balancer.yaml": "onprem-lb-balancer",
        "onprem-lb-router.yaml": "onprem-lb-router",
        "follow.json": "onprem-lb-follow",
        "onprem-lb-follow.yaml": "onprem-lb-follow",
    }


def test_a_run_reads_every_file_that_it_may_deliver():
    read = {(file["path"], file.get("unit")) for file in _filter.pods_to_read("pod")}
    for settings in ({}, {"preset": "ocp45"}, {"machine_networks": ["10.0.0.0/24"]}, pods.FOLLOW):
        for name in clusters.ADDRESSES:
            files = delivered(name=name, **settings)["files"]
            assert {(file["path"], file.get("unit")) for file in files} <= read
    assert _filter.pods_to_read("unit") == []


def test_the_password_is_masked_and_a_worker_has_a_router_alone():
    assert delivered()["secrets"] == [pods.PASSWORD]
    assert (delivered()["pods"], delivered(name="worker-0")["pods"]) == (
        ["onprem-lb-balancer", "onprem-lb-router"],
        ["onprem-lb-router"],
    )


def test_the_files_can_be_put_below_a_folder():
    assert _filter.pods_below([{"path": "/etc/a", "mode": "0600"}], "/out") == [{"path": "/out/etc/a", "mode": "0600"}]
