# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VRRP programs in the members' namespaces: the agent, and others beside it that are handled in the same way.

All of them are given the same instances, in the words of the collection's model. ``TRACKED`` is the name of a file
that holds 0, or 1 when something has failed; what an instance makes of it is its ``track``.
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

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket

from support.netns.namespaces import inside
from support.paths import MODULE_UTILS
from support.rendering import keepalived as render
from support.waiting import LIMIT_S, until

TRACKED = "down"
VRRP = ":0070 "  # protocol 112, as a port in /proc/net/raw


class Daemon:
    """One program in one namespace; its settings, its log and the tracked file are in a folder of its own."""

    kind = ""
    lost: Dict[int, int] = {}  # advertisements that it means to send, and does not, as it takes over; by family
    silent = False  # when two Active ones meet, the loser goes without a word, and the winner does not announce itself

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

    def starts(self):
        """Returns when it can hear others."""
        self.launch()
        self.until(self.listens, self.process)

    def launch(self):
        """Returns at once."""
        self.process = self.spawn(self.command())
        self.group = self.process.pid  # and of the versions that take over from it

    def until(self, condition, process):
        """Wait for it, or for the end of the process, which is wrong."""
        until(lambda: condition() or process.poll() is not None, self.log)
        assert process.poll() is None, self.log()

    def spawn(self, command):
        environment = {**os.environ, "PYTHONPATH": str(MODULE_UTILS)}
        # `ip netns exec` becomes the program, so that its id is the program's.
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

    def stops(self):
        """In good order."""
        self.process.terminate()
        assert self.process.wait(LIMIT_S) == 0, self.log()

    def dies(self):
        """Without a word; its addresses stay where they are."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def hangs(self):
        """As the whole host does while somebody moves it to another machine."""
        self._signal(signal.SIGSTOP)

    def resumes(self):
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        """Unless it has ended: then the number may be somebody else's."""
        if self.process.poll() is None:
            os.killpg(os.getpgid(self.process.pid), number)

    def falls(self):
        """What it tracks fails."""
        self.tracked.write_text("1\n")

    def rises(self):
        self.tracked.write_text("0\n")

    def close(self):
        if self.process:
            self.dies()

    def log(self):
        return f"{self.kind} at {self.node.name}:\n{(self.folder / 'log').read_text()[-3000:]}"


def open_text(path):
    with open(path) as file:
        return file.read()


class Orphan:
    """A process that is nobody's child here, as far as tests handle it like one."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        """Nobody may have heard of its end yet."""
        try:
            return None if open_text(f"/proc/{self.pid}/stat").rpartition(")")[2].split()[0] != "Z" else 0
        except FileNotFoundError:
            return 0

    def wait(self, limit=LIMIT_S):
        until(lambda: self.poll() is not None, f"process {self.pid} does not end", limit)
        return 0

    def send_signal(self, number):
        os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


class Agent(Daemon):
    kind = "agent"

    @property
    def socket(self):
        return str(self.folder / "status")

    def listens(self):
        """It answers, which it does after all else: a raw socket it also opens before, to see whether it may."""
        return self.answers() is not None

    def is_renewed(self):
        """Have the version that is there now take over; return when it has, and the old one has ended."""
        old = self.process
        old.send_signal(signal.SIGUSR2)
        until(lambda: (self.answers() or {}).get("pid", old.pid) != old.pid, self.log)
        self.process = Orphan(self.report()["pid"])
        assert old.wait(LIMIT_S) == 0, self.log()

    def close(self):
        """Also a successor that came without being waited for: it is of the same process group."""
        super().close()
        for pid in self.node.processes_inside() if self.process else []:
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(pid) == self.group:
                    os.kill(pid, signal.SIGKILL)

    def answers(self):
        with contextlib.suppress(status_socket.Refused):
            return self.report()

    def report(self):
        return status_socket.fetch(self.socket)

    def prepare(self):
        settings = {
            "instances": self.instances,
            "checks": [{"name": TRACKED, "type": "file", "file": str(self.tracked)}],
            "status_socket": self.socket,
        }
        (self.folder / "agent.json").write_text(json.dumps(settings))

    def command(self):
        return [sys.executable, "-m", "_agent.cli", "vrrp", "--config", str(self.folder / "agent.json")]


class Keepalived(Daemon):
    """Configured by the role's own template."""

    kind = "keepalived"

    def prepare(self):
        given = {
            "instances": [self._in_its_words(**instance) for instance in self.instances],
            "track_files": [{"name": TRACKED, "path": str(self.tracked)}],
        }
        text = render(given, self.node.name)
        (self.folder / "keepalived.conf").write_text(text)

    @staticmethod
    def _in_its_words(track, **rest):
        return {**rest, "track_files": track}

    def starts(self):
        """Without the files of one that died: where they would be, a host that comes back has none."""
        for file in self.folder.glob("*.pid"):
            file.unlink()
        super().starts()

    def command(self):
        files = {"use-file": "keepalived.conf", "pid": "keepalived.pid", "vrrp_pid": "vrrp.pid"}
        options = [f"--{option}={self.folder / file}" for option, file in files.items()]
        return [shutil.which("keepalived"), "--vrrp", "--dont-fork", "--log-console", *options]
