# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""keepalived on every member of a link, configured from a plan by the role's template.

A file stands in for HAProxy: the plan's track script tests that it exists, so HAProxy "dies" when the test removes it.
The test writes the plan's track file as HAProxy's unit does, in the member's folder.

A member is cut off when its port leaves the bridge. Setting the port down would cost keepalived the carrier, which is a
FAULT. A switch that fails does not do that.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from support.hooks import hook
from support.netns.links import Link, sh
from support.netns.recorder import Recorder
from support.rendering import keepalived as render
from support.waiting import LIMIT_S

STEADY = 0.4  # seconds: longer than the second round of announcements, or a late announcement of the loser, takes
AUTH_PASS = "0f3a9c1e"
EVENTS = ("haproxy_killed", "keepalived_stopped", "keepalived_killed", "host_cut")
ROUTER_ENDS = {"keepalived_stopped": "stop", "keepalived_killed": "kill"}


class Cluster:
    """The members of a plan, each with a keepalived, and a recorder."""

    def __init__(self, plan, folder, aborted, **recording):
        """
        :param aborted: an event that ends every wait
        :param recording: more parameters of the recorder
        """
        self.plan, self.folder, self.aborted, self.recording = plan, folder, aborted, recording
        self.link = Link(len(plan.members))
        self.nodes = {node.name: node for node in self.link.members}
        self.hook = folder / "hook"
        self.running = {}
        self.recorder = None

    def __enter__(self):
        try:
            self.link.start()
            self.folder.mkdir(parents=True, exist_ok=True)
            self.hook.write_bytes(hook())
            self.hook.chmod(0o755)
            self.recorder = Recorder(self.link, self.aborted, **self.recording)
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
            kill_group(process)
        self.link.stop()

    def _prepare(self, name):
        (self.folder / name).mkdir(parents=True)
        self.configure(name, self.plan.members[name].router)
        self._set_haproxy(name, alive=True)

    def configure(self, name, router, auth_pass=AUTH_PASS):
        """Write a member's configuration; keepalived reads it at its start or reload."""
        own = self.folder / name
        settings = {
            "instances": router.instances,
            "scripts": [{**script, "command": f"{shutil.which('test')} -e {own}/alive"} for script in router.scripts],
            "track_files": [{**file, "path": str(self.track_file(name, file["name"]))} for file in router.track_files],
            "auth_pass": auth_pass,
        }
        (own / "keepalived.conf").write_text(
            render(settings, name, self.hook, keepalived_config_path=str(own / "keepalived.conf"))
        )

    def track_file(self, name, tracked):
        """Return where a member has a track file."""
        asked = {question["name"] for question in self.plan.members[name].questions}
        return self.folder / name / (tracked if tracked in asked else "down")

    def reload(self, name):
        self.running[name].send_signal(signal.SIGHUP)

    def stop(self, name):
        """Stop a keepalived as systemd does; its hook follows. Return what that says.

        keepalived gives its VRRP process 5 seconds to remove the VIPs, one after the other, then kills it and exits
        with 0. On a machine that stands still for so long some VIPs stay, and the hook removes them.
        """
        process = self.running.pop(name)
        process.terminate()
        process.wait(LIMIT_S)
        return self.run_hook(name)

    def kill(self, name):
        """Kill every process of a keepalived; its hook follows, as its unit has it."""
        kill_group(self.running.pop(name))
        for file in (self.folder / name).glob("*.pid"):
            file.unlink()  # or the next keepalived takes a child that nobody has reaped for another keepalived
        self.run_hook(name)

    def run_hook(self, name):
        """Do what the unit does after every end of keepalived; return what it says."""
        command = ["ip", "netns", "exec", self.nodes[name].namespace, self.hook, "ended"]
        config = self.folder / name / "keepalived.conf"
        return subprocess.run([*command, config], capture_output=True, text=True, check=True).stderr

    def _set_haproxy(self, name, alive):
        """Do as HAProxy's unit does: a killed HAProxy has ended before ExecStopPost writes the track file."""
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
            # `ip netns exec` executes keepalived in its own place, so the process id is keepalived's.
            self.running[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def ask(self, name):
        """Start what asks all the time what a member must answer, as its unit does."""
        own = self.folder / name
        command = ["ip", "netns", "exec", self.nodes[name].namespace, sys.executable, "-IS", str(self.hook), "answers"]
        questions = [
            json.dumps({**question, "file": str(self.track_file(name, question["name"]))})
            for question in self.plan.members[name].questions
        ]
        with open(own / "answers.log", "a") as log:
            self.running[f"{name}'s questions"] = subprocess.Popen(
                [*command, str(own / "keepalived.conf"), *questions],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def fail(self, event, name):
        """Have a member fail; return when that began, by the clock that stamps frames."""
        if event in ROUTER_ENDS:
            at = time.time()
            getattr(self, ROUTER_ENDS[event])(name)
            return at
        at = self.recorder.record(name, "cut" if event == "host_cut" else "died")
        if event == "host_cut":
            self._set_port(name, "nomaster")
        else:
            self._set_haproxy(name, alive=False)
        return at

    def revert(self, event, name):
        at = time.time()
        if event in ROUTER_ENDS:
            self.start(name)
        elif event == "host_cut":
            self._set_port(name, "master", "br0")
            self.recorder.record(name, "joined")
        else:
            self._set_haproxy(name, alive=True)
            self.recorder.record(name, "revived")
        return at

    def _set_port(self, name, *setting):
        sh("ip", "-n", self.link.bridge, "link", "set", self.nodes[name].port, *setting)

    def is_settled(self, expected):
        """Return whether each VIP has its expected holder and no other, and clients send to that one.

        :param expected: the holders by VIP
        """
        views = {vip: self.view(vip) for vip in expected}
        return all(views[vip].holders == [name] and views[vip].announcer == name for vip, name in expected.items())

    def settle(self, expected, limit=LIMIT_S, steady=STEADY):
        """Wait until the holders are as expected and stay so for some time; return False after the limit in seconds."""
        deadline = time.monotonic() + limit
        while self.recorder.wait(lambda: self.is_settled(expected), deadline - time.monotonic()):
            if self.stays_settled(expected, steady):
                return True
        return False

    def stays_settled(self, expected, seconds):
        """Return whether the holders stay as expected for a number of seconds."""
        return not self.recorder.wait(lambda: not self.is_settled(expected), seconds)

    def view(self, vip):
        return self.recorder.views(vip)[-1][1]

    def outage(self, vip, begin, end):
        return self.recorder.outage(vip, begin, end)

    def logs(self):
        return "\n".join(f"{name}:\n{(self.folder / name / 'log').read_text()}" for name in self.nodes)


def kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(LIMIT_S)
