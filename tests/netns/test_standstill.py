# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the sidecar does beside a real keepalived that is stopped: each runs as in its container, with a first process.

The holder that is stopped keeps its VIP until another one has taken it over, and not a moment longer than the sidecar
needs to notice. One that nobody replaces keeps it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils import _agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import held
from support.netns.keepaliveds import Cluster, kill_group
from support.netns.links import skip_reason
from support.plans.pairs import VRRP_KINDS, member
from support.waiting import stays, until

VIP, VIP6 = "192.0.2.10", "2001:db8::10"
KINDS = {**VRRP_KINDS, "two VIPs": {"vips": [VIP, VIP6]}}
PACKAGE = os.path.dirname(os.path.dirname(_agent.__file__))
A_WHILE_S = 5


class Pods(Cluster):
    """Members whose keepalived runs below the first process of a container, in a PID namespace, with a sidecar."""

    def start(self, name):
        own = self.folder / name
        enter = ["ip", "netns", "exec", self.nodes[name].namespace]
        config = own / "keepalived.conf"
        program = [shutil.which("keepalived"), "--vrrp", "--dont-fork", "--log-console", f"--use-file={config}"]
        program += [f"--pid={own}/keepalived.pid", f"--vrrp_pid={own}/vrrp.pid"]
        container = held.command(program, f"{own}/run/held", str(config))
        sidecar = {"router": {"fifo": f"{own}/run/held", "keepalived": str(config)}}
        (own / "sidecar.json").write_text(json.dumps(sidecar))
        agent = [sys.executable, "-m", "_agent.cli", "sidecar", "--config", str(own / "sidecar.json")]
        for key, command in ((f"{name}'s sidecar", agent), (name, ["unshare", "--pid", "--fork", *container])):
            with open(own / "log", "a") as log:
                self.running[key] = subprocess.Popen(
                    [*enter, *command], cwd=PACKAGE, stdout=log, stderr=log, start_new_session=True
                )

    def signal(self, name, number):
        """Send a signal to each process of a keepalived."""
        found = [process for process in Path("/proc").glob("[0-9]*") if self._is_of(process, name)]
        assert found
        for process in found:
            os.kill(int(process.name), number)

    def _is_of(self, process, name):
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
            return words[0].endswith("keepalived") and f"--use-file={self.folder / name}/keepalived.conf" in words
        except OSError:
            return False

    def says(self, name, what):
        return what in (self.folder / name / "log").read_text()


@pytest.fixture
def cluster_of(tmp_path):
    """Start a pair; return it once the first member holds the VIPs."""
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    made = []

    def start(**settings):
        plan = pair.plan([member(1, **settings), member(2, **settings)])
        assert not plan.faults, plan.faults
        cluster = Pods(plan, tmp_path / "members", threading.Event())
        made.append(cluster)
        cluster.__enter__()
        assert cluster.settle(dict.fromkeys(settings.get("vips", [VIP]), "lb1")), cluster.logs()
        return cluster

    yield start
    for cluster in made:
        cluster.__exit__()


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_stopped_lets_go_once_another_has_taken_over(kind, cluster_of):
    cluster = cluster_of(**KINDS[kind])
    cluster.signal("lb1", signal.SIGSTOP)
    assert cluster.settle(dict.fromkeys(KINDS[kind].get("vips", [VIP]), "lb2")), cluster.logs()
    assert cluster.says("lb1", "it is ended"), cluster.logs()


def test_one_that_is_alone_keeps_the_vip(cluster_of):
    cluster = cluster_of()
    for key in ("lb2", "lb2's sidecar"):
        kill_group(cluster.running.pop(key))
    cluster.signal("lb1", signal.SIGSTOP)
    stays(lambda: "lb1" in cluster.view(VIP).holders, A_WHILE_S)
    cluster.signal("lb1", signal.SIGCONT)
    stays(lambda: cluster.view(VIP).holders == ["lb1"], 1)
    assert not cluster.says("lb1", "it is ended")


def test_one_that_goes_on_in_time_is_left_alone(cluster_of):
    cluster = cluster_of()
    cluster.signal("lb1", signal.SIGSTOP)
    cluster.signal("lb1", signal.SIGCONT)
    stays(lambda: cluster.running["lb1"].poll() is None, A_WHILE_S)


def test_without_a_sidecar_both_hold_it(cluster_of):
    """This is what the sidecar is for."""
    cluster = cluster_of()
    kill_group(cluster.running.pop("lb1's sidecar"))
    cluster.signal("lb1", signal.SIGSTOP)
    until(lambda: len(cluster.view(VIP).holders) == 2, cluster.logs)


def test_neither_logs_anything_while_all_is_well(cluster_of):
    cluster = cluster_of()
    assert cluster.stays_settled({VIP: "lb1"}, 1)
    logs = [cluster.folder / name / "log" for name in cluster.nodes]
    before = [log.read_text() for log in logs]
    stays(lambda: [log.read_text() for log in logs] == before, A_WHILE_S)
