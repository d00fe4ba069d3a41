# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of some programs, each with what it runs in and how it is stopped for good."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import cgroups, processes
from ansible_collections.onprem.lb.plugins.module_utils._host.read.cgroups import RunsIn
from ansible_collections.onprem.lb.plugins.module_utils._host.read.processes import Process


@pytest.fixture(name="proc")
def a_proc(tmp_path):
    """Makes processes in a folder that stands for /proc, where the first one is systemd."""

    def make(pid, comm, cgroup, network="net:[1]", environ=""):
        folder = tmp_path / str(pid)
        (folder / "ns").mkdir(parents=True)
        (folder / "comm").write_text(f"{comm}\n")
        (folder / "cgroup").write_text(f"0::{cgroup}\n")
        (folder / "environ").write_text(environ)
        os.symlink(network, folder / "ns" / "net")
        return str(tmp_path)

    make(1, "systemd", "/init.scope")
    return make


def test_one_process_of_each_unit_and_container_is_found_with_its_network_and_environment(proc):
    container = f"/system.slice/docker-{'4' * 64}.scope"
    proc(30, "haproxy", container, network="net:[2]", environ="A=1\0B=x=y\0")
    proc(21, "haproxy", "/system.slice/haproxy.service")
    proc(20, "haproxy", "/system.slice/haproxy.service")
    root = proc(40, "nginx", "/system.slice/nginx.service")
    assert processes.named(["haproxy"], root) == [
        Process("haproxy", 20, RunsIn("unit", "haproxy.service"), True, {}),
        Process("haproxy", 30, RunsIn("container", "4" * 12, "docker"), False, {"A": "1", "B": "x=y"}),
    ]


@pytest.mark.parametrize(
    "cgroup", [f"/kubepods.slice/kubepods-pod{'1' * 32}.slice/cri-containerd-{'2' * 64}.scope", f"/libpod-{'3' * 64}"]
)
def test_a_static_pod_of_this_collection_is_known_by_its_name(proc, cgroup):
    root = proc(20, "haproxy", cgroup, environ="ONPREM_LB_POD=onprem-lb-balancer\0")
    assert str(processes.runs_in(20, root)) == "onprem-lb-balancer"
    root = proc(21, "haproxy", "/system.slice/haproxy.service", environ="ONPREM_LB_POD=onprem-lb-balancer\0")
    assert str(processes.runs_in(21, root)) == "haproxy.service", "a unit's environment is its user's"


def test_a_process_that_has_ended_runs_in_nothing(proc):
    assert processes.runs_in(99, proc(20, "haproxy", "/system.slice/haproxy.service")) == RunsIn()


def test_this_process_is_found_on_this_host():
    with open("/proc/self/comm", encoding="utf-8") as file:
        found = processes.named([file.read().strip()])
    assert any(each.runs_in == processes.runs_in(os.getpid()) for each in found)


@pytest.mark.parametrize(
    "kind, name, words",
    [
        (cgroups.UNIT, "lb.service", "run `systemctl disable --now lb.service`"),
        (cgroups.UNIT, "session-3.scope", "run `kill 77`"),
        (cgroups.CONTAINER, "4f2a", "stop that container, and keep it from starting again"),
        (cgroups.POD, "0c2b", "take its workload off this node"),
        (
            cgroups.STATIC_POD,
            "d41d",
            "take its manifest out of the kubelet's folder, such as /etc/kubernetes/manifests",
        ),
        ("", "", "run `kill 77`"),
    ],
)
def test_each_is_stopped_where_it_was_started(kind, name, words):
    assert Process("haproxy", 77, RunsIn(kind, name)).mend == words
