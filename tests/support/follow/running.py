# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running `agent follow`, and the HAProxy whose servers it keeps."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys

from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.runtime_api import Runtime
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket

from support.paths import MODULE_UTILS
from support.proxy.proxies import LIMIT
from support.waiting import LIMIT_S, until

HAPROXY = """\
global
    stats socket {folder}/haproxy.sock mode 600 level admin
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
backend masters
    balance roundrobin
    default-server check inter 60s
    server first 10.0.0.1:6443 weight 5
"""


class Haproxy:
    """A running HAProxy with one server."""

    def __init__(self, folder) -> None:
        self.config, self.socket = folder / "haproxy.cfg", str(folder / "haproxy.sock")
        self.config.write_text(HAPROXY.format(folder=folder))
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", str(self.config)])
        until(self.present)

    def present(self, backend="masters"):
        try:
            return {each.name: each.address for each in Runtime(self.socket).servers(backend)}
        except Refused:
            return {}

    def written(self):
        lines = [line.split() for line in self.config.read_text().splitlines()]
        return {words[1]: words[2] for words in lines if words[:1] == ["server"]}

    def close(self) -> None:
        self._process.kill()
        self._process.wait(LIMIT)


class Follow:
    """A running `agent follow`. At the end it has ended by itself, without a traceback."""

    def __init__(self, folder, api, haproxy, changes) -> None:
        self.path, self.socket, self.state = folder / "follow.json", str(folder / "run" / "s"), folder / "state" / "s"
        self._log = folder / "follow.log"
        self.configuration = {
            "api": {"servers": list(api.servers), "ca": api.ca, "token": api.token, "timeout": 60},
            "nodes": {"not_ready_for": 1},
            "haproxy": {"backends": [{"name": "masters"}], "config": str(haproxy.config), "socket": haproxy.socket},
            "drain_for": 0,
            "state_file": str(self.state),
            "status_socket": self.socket,
            **changes,
        }
        self.write(self.configuration)
        self.start()

    def write(self, configuration):
        self.path.write_text(json.dumps(configuration))
        self.path.chmod(0o600)

    def start(self):
        command = [sys.executable, "-m", "_agent.cli", "follow", "--config", str(self.path)]
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(command, cwd=MODULE_UTILS, stderr=log, stdout=log)
        until(lambda: self.process.poll() is not None or self._answers())

    def _answers(self):
        with contextlib.suppress(status_socket.Refused):
            return self.report()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(LIMIT) == 0, self.log
        assert "Traceback" not in self.log, self.log

    @property
    def log(self):
        return self._log.read_text()

    def report(self):
        return status_socket.fetch(self.socket, LIMIT_S)

    def lines(self, part):
        return [line for line in self.log.splitlines() if part in line]
