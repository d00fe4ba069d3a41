# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a layout starts, reloads and stops what follows its cluster, and which kubeconfig it refuses before that."""

from __future__ import annotations

import base64

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.onprem.lb.plugins.filter.follow import follow_files
from support.paths import ROLES
from support.roles import REFUSE, calls, tasks, variables_of

COMMAND = "ansible.builtin.command"
SYSTEMD, FILES = "ansible.builtin.systemd_service", "onprem.lb.config_files"
MEMBER_PODS = "onprem.lb.member_pods"
UNIT = "onprem-lb-follow.service"
PLAN = {
    "engine": "native",
    "services": ["masters"],
    "labels": {},
    "fallbacks": {"masters": "masters-fallback"},
    "hosts": {},
    "api": ["https://127.0.0.1:6443"],
    "kubeconfig": "/etc/onprem/kubeconfig",
    "nodes": {},
    "drain_for": 300,
}
IN_POD = {"agent_image": "registry.example/onprem-lb:1"}
HAPROXY = {"config": "/etc/haproxy/haproxy.cfg", "socket": "/run/haproxy/admin.sock"}
CLUSTER = {"server": "https://api.example.com:6443"}
KUBECONFIG = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": CLUSTER}],
    "users": [{"name": "a", "user": {"token": "s3cret-token"}}],
}


def slurped(data):
    return base64.b64encode((data if isinstance(data, str) else yaml.safe_dump(data)).encode()).decode()


def test_a_good_kubeconfig_becomes_files_and_its_secrets_are_named():
    found = follow_files(slurped(KUBECONFIG), PLAN, HAPROXY)
    assert found["faults"] == []
    assert found["secrets"] == ["s3cret-token"]
    contents = {file["path"]: file.get("content") for file in found["credentials"]}
    assert contents["/etc/onprem-lb-follow/token"] == "s3cret-token"


@pytest.mark.parametrize(
    "content, sentence",
    [
        ("", "/etc/onprem/kubeconfig: it cannot be read on this member, or is empty: name a kubeconfig that every"),
        (slurped("a: [s3cret"), "/etc/onprem/kubeconfig: it is not YAML: write it again"),
        (slurped("just words"), "/etc/onprem/kubeconfig: its contexts lack the named one"),
        (
            slurped({**KUBECONFIG, "clusters": [{"name": "a", "cluster": {**CLUSTER, "tls-server-name": "a b"}}]}),
            "/etc/onprem/kubeconfig: api.server_name is 'a b'",
        ),
        (slurped({**KUBECONFIG, "users": [{"name": "a", "user": {"exec": {}, "password": "s3cret"}}]}), "password is"),
    ],
)
def test_what_no_service_can_use_is_refused_before_anything_is_changed(content, sentence):
    found = follow_files(content, PLAN, HAPROXY)
    assert any(sentence in fault for fault in found["faults"]), found
    assert "s3cret" not in str(found)
    variables = {
        **variables_of("layout"),
        "__layout_me": {"follow": PLAN},
        "__layout_kubeconfig": {"content": content},
        "__layout_followed": found,
    }
    ((_module, given),) = calls("layout", variables, REFUSE, COMMAND, tasks_from="follow_check.yml")
    assert given == {"faults": found["faults"]}
    assert "Preflight | What follows the cluster" in [
        task["name"] for task in tasks("layout", "present.yml")[0]["block"]
    ]


def test_a_file_that_the_kubeconfig_names_and_no_member_has_is_refused_before_anything_is_changed():
    """A pod with its folder would never start."""
    path = "/etc/kubernetes/pki/ca.crt"
    cluster = {**CLUSTER, "certificate-authority": path}
    content = slurped({**KUBECONFIG, "clusters": [{"name": "a", "cluster": cluster}]})
    assert "__layout_follow_there" in variables_of("layout")["__layout_followed"]
    variables = {**variables_of("layout"), "__layout_me": {"follow": PLAN}}
    variables["__layout_followed"] = follow_files(content, PLAN, HAPROXY, there=[])
    looked, refused = calls("layout", variables, REFUSE, COMMAND, tasks_from="follow_check.yml")
    assert looked[1]["argv"] == ["stat", "--dereference", "--format=%a %u %g %n", "--", path]
    (fault,) = refused[1]["faults"]
    assert fault.startswith(f"/etc/onprem/kubeconfig: it names {path}, which is not on this member: put it there")
    assert follow_files(content, PLAN, HAPROXY, [f"644 0 0 {path}"])["faults"] == []
    assert follow_files(content, PLAN, HAPROXY)["faults"] == [], "nobody has looked yet"


@pytest.mark.parametrize(
    "rights, is_open",
    [("600 0 0", 1), ("4600 0 7", 1), ("640 7 0", 1), ("604 7 7", 1), ("600 7 0", 0), ("640 7 7", 0), ("44 0 0", 0)],
)
def test_a_file_that_root_can_read_by_a_capability_alone_is_refused_before_anything_is_changed(rights, is_open):
    path = "/etc/kubernetes/a ca.crt"
    cluster = {**CLUSTER, "certificate-authority": path}
    content = slurped({**KUBECONFIG, "clusters": [{"name": "a", "cluster": cluster}]})
    found = follow_files(content, PLAN, HAPROXY, [f"{rights} {path}"])["faults"]
    assert [f"it names {path}, which root cannot read" in fault for fault in found] == [True] * (1 - is_open)


def test_the_kubeconfig_is_in_no_log():
    (task,) = [task for task in tasks("layout", "follow_check.yml") if "ansible.builtin.slurp" in task]
    assert task["no_log"] is True


@pytest.mark.parametrize(
    "active, changes, follow, pods, paused",
    [
        (True, True, PLAN, {}, True),
        (True, False, {}, {}, True),
        (True, False, PLAN, IN_POD, True),
        (True, False, PLAN, {}, False),
        (False, True, PLAN, {}, False),
    ],
    ids=["its balancer changes", "it is wanted no more", "a pod replaces it", "nothing changes", "it does not run"],
)
def test_it_writes_no_file_beside_a_run(active, changes, follow, pods, paused):
    variables = {
        **variables_of("layout"),
        "__layout_host": {"active_units": [UNIT] if active else []},
        "__layout_me": {"follow": follow, "pods": pods},
        "__layout_changes": changes,
    }
    (first, *_rest) = [task for task in tasks("layout", "configure.yml") if SYSTEMD in task]
    assert first["name"].startswith("Configure | Stop follow")
    templar = Templar(loader=DataLoader(), variables=variables)
    assert templar.evaluate_conditional(trust_as_template(first["when"])) is paused
    names = [task["name"] for task in tasks("layout", "configure.yml")]
    assert names.index(first["name"]) < next(at for at, name in enumerate(names) if "Change the Backups" in name)


@pytest.mark.parametrize("active, changes, paused", [(True, True, True), (True, False, False), (False, True, False)])
def test_its_pod_writes_no_file_beside_a_run_either(active, changes, paused):
    variables = {
        **variables_of("layout"),
        "__layout_host": {"active_units": ["onprem-lb-follow"] if active else []},
        "__layout_changes": changes,
        "__layout_me": {"follow": PLAN, "pods": IN_POD},
        "__layout_pods": {"files": [], "secrets": [], "archive": "/agent.pyz", "pods": ["onprem-lb-follow"]},
        "__layout_pods_written": {},
        "ansible_check_mode": False,
    }
    found = calls("layout", variables, MEMBER_PODS, FILES, tasks_from="routers/start_pods.yml")
    paused_first = [(MEMBER_PODS, {"pods": ["onprem-lb-follow"], "state": "stopped"})] if paused else []
    assert found[: len(paused_first)] == paused_first and len(found) == len(paused_first) + 2
    assert found[-2][1]["folders"] == []


def test_the_differences_of_credentials_are_shown_to_nobody():
    found = follow_files(slurped(KUBECONFIG), PLAN, HAPROXY)
    assert [file["diff"] for file in found["credentials"]] == [False] * 4


def test_a_removal_stops_it_before_its_balancer():
    names = [task["name"] for task in yaml.safe_load((ROLES / "layout" / "tasks" / "absent.yml").read_text())]
    assert names.index("Remove | What follows the cluster") < names.index("Remove | haproxy")


@pytest.mark.parametrize(
    "state, starts",
    [
        ({}, True),
        ({"__layout_units_written": {"failed": True}}, True),
        ({"__layout_units_written": {"failed": False}}, False),  # it runs
        ({"__layout_follow_paused": {"skipped": True}}, False),  # it was not stopped
        ({"__layout_undo": {"run": "20260131T120000Z"}, "__layout_proved": "20260131T120000Z"}, False),  # it is proved
        ({"__layout_me": {"follow": {}, "pods": {}, "replaces": ""}}, False),  # the run was to end it
        ({"__layout_me": {"follow": PLAN, "pods": IN_POD, "replaces": ""}}, False),
        ({"__layout_me": {"follow": PLAN, "pods": {}, "replaces": "native"}}, False),  # it is for the other engine
        ({"ansible_check_mode": True}, False),
    ],
)
def test_a_run_that_fails_where_no_member_returns_leaves_it_running(state, starts):
    variables = {
        **variables_of("layout"),
        "ansible_check_mode": False,
        "__layout_me": {"follow": PLAN, "pods": {}, "replaces": ""},
        "__layout_follow_paused": {"changed": True},
        "__layout_undo": {"run": ""},
        **state,
    }
    found = calls("layout", variables, SYSTEMD, tasks_from="unlock.yml")
    assert found == ([(SYSTEMD, {"name": UNIT, "state": "started"})] if starts else [])


def test_it_runs_again_before_another_run_can_take_the_lock_and_only_if_this_one_has_stopped_it():
    given = {task["name"]: task for file in ("configure.yml", "unlock.yml") for task in tasks("layout", file)}
    stops = given["Configure | Stop follow while the balancer changes"]
    assert stops["register"] == "__layout_follow_paused"
    names = [task["name"] for task in tasks("layout", "unlock.yml")]
    assert "Unlock | Start follow again" in [task["name"] for task in tasks("layout", "undo/abandon.yml")]
    starts = names.index("Unlock | Return to before, or start follow again")
    assert starts < names.index("Unlock | Release what this run has locked")
