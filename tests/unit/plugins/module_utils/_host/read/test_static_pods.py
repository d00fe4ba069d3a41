# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest of a static pod is found by the name of its container, and disabled by its own name."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import cgroups, static_pods
from ansible_collections.onprem.lb.plugins.module_utils._host.read.cgroups import RunsIn
from ansible_collections.onprem.lb.plugins.module_utils._host.read.processes import Process

# As `kube-vip manifest pod` writes it, and as JSON, which a kubelet reads as well.
YAML = """\
apiVersion: v1
kind: Pod
metadata:
  name: kube-vip
spec:
  containers:
  - args: [manager]
    env:
    - name: address
      value: 192.0.2.10
    image: ghcr.io/kube-vip/kube-vip:v0.8.9
    name: kube-vip
"""
JSON = """{
  "kind": "Pod",
  "spec": {"containers": [{
    "name": "kube-vip",
    "image": "a"
  }]}
}"""
OTHER = YAML.replace("name: kube-vip", "name: etcd")  # it names kube-vip in its image alone


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "etcd.yaml").write_text(OTHER)
    (tmp_path / "more").mkdir()
    return tmp_path


@pytest.mark.parametrize("name, text", [("vip.yaml", YAML), ("vip.json", JSON), ("vip", YAML)])
def test_a_manifest_is_found_whatever_its_name_and_format(folder, name, text):
    (folder / name).write_text(text)
    assert static_pods.manifest("kube-vip", ["/nowhere", str(folder)]) == str(folder / name)


def test_none_is_chosen_where_none_or_several_have_the_program(folder):
    assert static_pods.manifest("kube-vip", [str(folder)]) == ""
    for name in ("a.yaml", "b.yaml"):
        (folder / name).write_text(YAML)
    assert static_pods.manifest("kube-vip", [str(folder)]) == ""


def test_a_kubelet_and_a_search_ignore_a_disabled_manifest(folder):
    manifest = folder / "vip.yaml"
    manifest.write_text(YAML)
    kept = static_pods.disabled(str(manifest))
    assert kept == str(folder / ".vip.yaml.before-onprem-lb")
    manifest.rename(kept)
    assert static_pods.manifest("kube-vip", [str(folder)]) == ""


def test_a_manifest_that_is_kept_from_before_is_not_replaced(folder):
    manifest = str(folder / "vip.yaml")
    assert static_pods.kept_twice([manifest]) == []
    (folder / ".vip.yaml.before-onprem-lb").write_text(YAML)
    assert static_pods.kept_twice([manifest, manifest]) == [
        f"{manifest} would be disabled, and another manifest is kept from before as "
        f"{folder}/.vip.yaml.before-onprem-lb: delete that one, or move it away."
    ]


STATIC = Process("kube-vip", 88, RunsIn(cgroups.STATIC_POD, "d41d"))


@pytest.mark.parametrize(
    "process, runs",
    [
        (STATIC, True),
        (STATIC._replace(on_this_network=False), False),
        (STATIC._replace(runs_in=RunsIn(cgroups.POD, "d41d")), False),
    ],
)
def test_a_program_runs_while_a_static_pod_has_it(process, runs):
    asked = []
    assert static_pods.runs("kube-vip", lambda programs: asked.append(programs) or [process]) is runs
    assert asked == [["kube-vip"]] and not static_pods.runs("kube-vip", lambda programs: [])
