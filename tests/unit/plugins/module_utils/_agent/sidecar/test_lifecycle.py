# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sidecar as a process: it ends after the VRRP router beside it, and takes away what is tied to the balancer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils import _agent
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.sd_notify import ALIVE
from support import waiting

PACKAGE = os.path.dirname(os.path.dirname(_agent.__file__))


class Sidecar:
    def __init__(self, folder):
        self.stopped, self.alive, self.router = folder / "stopped", folder / "alive", folder / "router"
        touch = [["/bin/touch", str(self.stopped)]]
        balancer = {"fifo": str(folder / "balancer"), "ready_port": 1, "ready_path": "/", "stop_commands": touch}
        whole = {"balancer": balancer, "router": {"fifo": str(self.router)}}
        (folder / "sidecar.json").write_text(json.dumps(whole))
        os.mkfifo(self.router)
        os.mkfifo(folder / "balancer")
        self.router_holder = os.open(self.router, os.O_RDWR)
        self.balancer_holder = os.open(folder / "balancer", os.O_RDWR)
        command = [sys.executable, "-m", "_agent.cli", "sidecar", "--config", str(folder / "sidecar.json")]
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=PACKAGE, stderr=log, env={**os.environ, ALIVE: str(self.alive)}
            )
        waiting.until(self.alive.exists)


@pytest.fixture
def sidecar(tmp_path):
    sidecar = Sidecar(tmp_path)
    yield sidecar
    sidecar.process.kill()
    sidecar.process.wait()
    os.close(sidecar.balancer_holder)
    os.close(sidecar.router_holder)


def test_it_ends_once_the_router_has_and_not_before(sidecar):
    sidecar.process.send_signal(signal.SIGTERM)
    waiting.stays(lambda: sidecar.process.poll() is None, 0.5)
    assert not sidecar.stopped.exists()
    with open(os.devnull, "rb") as other:
        os.dup2(other.fileno(), sidecar.router_holder)  # the router's container ends
    assert sidecar.process.wait(waiting.LIMIT_S) == 0
    assert sidecar.stopped.exists()


def test_one_that_is_restarted_alone_leaves_everything_as_it_is(sidecar):
    sidecar.process.send_signal(signal.SIGTERM)
    waiting.until(lambda: "asked again" in sidecar.log.read_text())
    sidecar.process.send_signal(signal.SIGTERM)
    assert sidecar.process.wait(waiting.LIMIT_S) == 0
    assert not sidecar.stopped.exists()
