# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VRRP daemons in the members' namespaces, with one interface for the agent, keepalived and others.

All of them take the same instances, in the collection's model. Each has a track file, which holds 0, or 1 after a
failure. ``TRACKED`` is its name in an instance's ``track``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Dict

from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import resignation
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket

from support.netns.namespaces import inside
from support.paths import MODULE_UTILS
from support.rendering import keepalived as render
from support.waiting import LIMIT_S, until

TRACKED = "down"
VRRP = ":0070 "  # protocol 112, in the column of the port in /proc/net/raw


class Daemon:
    """A daemon in one namespace. Its configuration, log and track file are in its own folder."""

    kind = ""
    lost: Dict[int, int] = {}  # by family: how many of its first Advertisements after a takeover are lost
    silent = False  # when two Actives meet, the loser yields silently, and the winner does not announce itself

    def __init__(self, node, folder, instances):
        self.node, self.folder, self.instances = node, folder, instances
        self.process = None
        folder.mkdir(parents=True)
        self.tracked = folder / TRACKED
        self.tracked.write_text("0\n")
        self.prepare()

    def prepare(self):
        raise NotImplementedError

    def command(self):
        raise NotImplementedError

    def start(self):
        """Start the daemon; return when it receives Advertisements."""
        self.launch()
        self.until(self.listens, self.process)

    def launch(self):
        """Start the daemon; return at once."""
        self.process = self.spawn(self.command())

    def until(self, condition, process):
        """Wait until a condition is true; fail if the process ends before."""
        until(lambda: condition() or process.poll() is not None, self.log)
        assert process.poll() is None, self.log()

    def spawn(self, command):
        environment = {**os.environ, "PYTHONPATH": str(MODULE_UTILS)}
        # `ip netns exec` executes the program in its own place, so the process id is the program's.
        with open(self.folder / "log", "a") as log:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.node.namespace, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def listens(self):
        with inside(self.node.namespace):
            return any(VRRP in open_text(f"/proc/thread-self/net/{table}") for table in ("raw", "raw6"))

    def is_backup(self):
        """Return whether it is the Backup of all its Virtual Routers, which heeds a resignation."""
        raise NotImplementedError

    def stop(self):
        """Stop the daemon with SIGTERM."""
        self.process.terminate()
        assert self.process.wait(LIMIT_S) == 0, self.log()

    def kill(self):
        """Kill the daemon. It does not resign, and its addresses stay."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def suspend(self):
        """Suspend the daemon, as a hypervisor suspends a virtual machine during a migration."""
        self._signal(signal.SIGSTOP)

    def resume(self):
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        """Signal the process group, unless the process has ended: then another one may have its id."""
        if self.process.poll() is None:
            os.killpg(os.getpgid(self.process.pid), number)

    def fail_tracking(self):
        """Have the track file report a failure."""
        self.tracked.write_text("1\n")

    def recover_tracking(self):
        self.tracked.write_text("0\n")

    def close(self):
        if self.process:
            self.kill()

    def log(self):
        return f"{self.kind} at {self.node.name}:\n{(self.folder / 'log').read_text()[-3000:]}"


def open_text(path):
    with open(path) as file:
        return file.read()


class Agent(Daemon):
    kind = "agent"

    @property
    def socket(self):
        return str(self.folder / "status")

    def listens(self):
        """Return whether it answers, which is the last step of its start. Its first raw socket is a mere test."""
        return self.try_report() is not None

    def is_backup(self):
        return all(each["state"] == "Backup" for each in self.report()["instances"])

    def upgrade(self):
        """End it with its addresses in place, and start the installed version, as systemd does."""
        self.leave()
        self.start()

    def leave(self):
        """End it with its addresses in place. The signal ends one that has no handler for it, too."""
        self.process.send_signal(signal.SIGUSR1)
        assert self.process.wait(LIMIT_S) in (0, -signal.SIGUSR1), self.log()

    def try_report(self):
        """Return its status, or None if it does not answer."""
        with contextlib.suppress(status_socket.Refused):
            return self.report()

    def report(self):
        return status_socket.fetch(self.socket, LIMIT_S)

    def prepare(self):
        settings = {
            "instances": self.instances,
            "checks": [{"name": TRACKED, "type": "file", "file": str(self.tracked)}],
            "status_socket": self.socket,
        }
        (self.folder / "agent.json").write_text(json.dumps(settings))

    def command(self):
        return [sys.executable, "-S", "-m", "_agent.cli", "vrrp", "--config", str(self.folder / "agent.json")]


class Keepalived(Daemon):
    """keepalived, configured by the role's template."""

    kind = "keepalived"

    def prepare(self):
        settings = {
            "instances": [self.with_track_files(**instance) for instance in self.instances],
            "track_files": [{"name": TRACKED, "path": str(self.tracked)}],
        }
        text = render(settings, self.node.name)
        (self.folder / "keepalived.conf").write_text(text)

    @staticmethod
    def with_track_files(track, **rest):
        return {**rest, "track_files": track}

    def start(self):
        """Start without the pid files of a killed process: on a host they are gone after a reboot."""
        for file in self.folder.glob("*.pid"):
            file.unlink()
        super().start()

    def is_backup(self):
        """Return whether it is that after its first start."""
        return (self.folder / "log").read_text().count("Entering BACKUP STATE") >= len(self.instances)

    def stop(self):
        """Stop keepalived as its unit does; its hook follows.

        It gives its VRRP process 5 seconds to remove the VIPs, one after the other, then kills it and exits with 0. On
        a machine that stands still for so long some VIPs stay.
        """
        super().stop()
        with inside(self.node.namespace):
            assert resignation.main(str(self.folder / "keepalived.conf")) == 0

    def command(self):
        files = {"use-file": "keepalived.conf", "pid": "keepalived.pid", "vrrp_pid": "vrrp.pid"}
        options = [f"--{option}={self.folder / file}" for option, file in files.items()]
        return [shutil.which("keepalived"), "--vrrp", "--dont-fork", "--log-console", *options]
