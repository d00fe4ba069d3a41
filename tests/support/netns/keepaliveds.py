# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real keepalived on every member of a link, configured from a plan by the role's own template.

HAProxy's place is taken by a file: the plan's script asks for it, so that HAProxy "dies" in the very moment the
file goes. The track file is the plan's too, in the member's own folder, and written as HAProxy's unit writes it.

A member is cut off by taking its port out of the bridge. Pulling the cable's end down instead would tell keepalived
that it is cut off (no carrier is a FAULT), which a switch that dies does not do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time

from support.netns.links import Link, sh
from support.netns.recorder import Recorder
from support.rendering import keepalived as render

STEADY = 0.4  # seconds: longer than a second round of announcements or a late one of a loser takes
EVENTS = ("haproxy_killed", "keepalived_stopped", "host_cut")


class Cluster:
    """Members called as in the plan, each with a keepalived, and a record of who held what when."""

    def __init__(self, plan, folder, given_up):
        """:param given_up: an event that ends every wait"""
        self.plan, self.folder, self.given_up = plan, folder, given_up
        self.link = Link(len(plan.members))
        self.nodes = {node.name: node for node in self.link.members}
        self.running = {}
        self.recorder = None

    def __enter__(self):
        try:
            self.link.start()
            self.recorder = Recorder(self.link, self.given_up)
            for name in self.nodes:
                self._prepare(name)
                self.start(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception):
        if self.recorder:
            self.recorder.close()
        for process in self.running.values():
            end(process, signal.SIGKILL)
        self.link.stop()

    def _prepare(self, name):
        own = self.folder / name
        own.mkdir(parents=True)
        router = self.plan.members[name].router
        given = {
            "instances": router.instances,
            "scripts": [{**script, "command": f"{shutil.which('test')} -e {own}/alive"} for script in router.scripts],
            "track_files": [{**file, "path": str(own / "down")} for file in router.track_files],
            "auth_pass": "0f3a9c1e",
        }
        (own / "keepalived.conf").write_text(render(given, name))
        self._haproxy(name, alive=True)

    def _haproxy(self, name, alive):
        """As its unit does it: killed, it is gone before ExecStopPost writes the file."""
        own = self.folder / name
        if alive:
            (own / "alive").touch()
        else:
            (own / "alive").unlink()
        if self.plan.members[name].balancer.down_file:
            (own / "down").write_text(f"{int(not alive)}\n")

    def start(self, name):
        own = self.folder / name
        files = {"use-file": "keepalived.conf", "pid": "keepalived.pid", "vrrp_pid": "vrrp.pid"}
        options = [f"--{option}={own / file}" for option, file in files.items()]
        program = [shutil.which("keepalived"), "--vrrp", "--dont-fork", "--log-console", "--log-detail", *options]
        with open(own / "log", "a") as log:
            command = ["ip", "netns", "exec", self.nodes[name].namespace, *program]
            # `ip netns exec` becomes keepalived, so that its id is keepalived's.
            self.running[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def fail(self, event, name):
        """Returns when it began, by the clock that stamps the frames."""
        if event == "keepalived_stopped":
            at = time.time()
            end(self.running.pop(name), signal.SIGTERM)
            return at
        at = self.recorder.note(name, "cut" if event == "host_cut" else "died")
        if event == "host_cut":
            self._port(name, "nomaster")
        else:
            self._haproxy(name, alive=False)
        return at

    def undo(self, event, name):
        at = time.time()
        if event == "keepalived_stopped":
            self.start(name)
        elif event == "host_cut":
            self._port(name, "master", "br0")
            self.recorder.note(name, "joined")
        else:
            self._haproxy(name, alive=True)
            self.recorder.note(name, "revived")
        return at

    def _port(self, name, *setting):
        sh("ip", "-n", self.link.bridge, "link", "set", self.nodes[name].port, *setting)

    def rests(self, wanted):
        """Whether each VIP is with its wanted holder and nobody else, as clients see it too."""
        views = {vip: self.view(vip) for vip in wanted}
        return all(views[vip].holders == [name] and views[vip].believed == name for vip, name in wanted.items())

    def settle(self, wanted, limit):
        """Whether it comes to that, and stays so for a moment."""
        deadline = time.monotonic() + limit
        while self.recorder.wait(lambda: self.rests(wanted), deadline - time.monotonic()):
            if self.watch(wanted, STEADY):
                return True
        return False

    def watch(self, wanted, seconds):
        """Whether it stays so for so long."""
        return not self.recorder.wait(lambda: not self.rests(wanted), seconds)

    def view(self, vip):
        return self.recorder.views(vip)[-1][1]

    def outage(self, vip, begin, end):
        return self.recorder.outage(vip, begin, end)

    def logs(self):
        return "\n".join(f"{name}:\n{(self.folder / name / 'log').read_text()}" for name in self.nodes)


def end(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    process.wait(10)
