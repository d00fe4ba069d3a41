# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a member in its network namespace, with the roles' files, supervised as their units have it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._host.read import in_force
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, answers
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import MemberPlan
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair.pair import ALIVE, DOWN
from support import haproxies, rendering
from support.hooks import hook
from support.netns.links import Node
from support.netns.namespaces import inside
from support.paths import MODULE_UTILS
from support.waiting import LIMIT_S, until

RESTART_S = 0.25  # RestartSec= of the units
STOP_PAUSE_S = 0.2  # of the balancers' units: the VIP leaves before the balancer stops
SOCKET = "/run/haproxy/admin.sock"  # in the rendered file, one for all hosts of this machine
SERVICE_PORT = 8443
CONSOLE_PREFIX = re.compile(r"^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}: ")  # of each line of keepalived's log


class Program:
    """A program that is started again however it ends, unless it was stopped: `Restart=always`."""

    def __init__(
        self,
        node: Node,
        command: List[str],
        log: Path,
        ready: Callable[[], bool],
        started: Callable[[], None] = lambda: None,
        ended: Callable[[], None] = lambda: None,
        stopping: Callable[[], None] = lambda: None,
        failing: Callable[[], None] = lambda: None,
    ) -> None:
        """
        :param command: the last word is its configuration, which none of its processes shares with others
        :param ready: whether it serves
        :param started: what ExecStartPost= does
        :param ended: what ExecStopPost= does
        :param stopping: what ExecStop= does
        :param failing: is called right before it is killed or suspended
        """
        self.node, self.command, self.log = node, command, log
        self.ready, self.started, self.ended = ready, started, ended
        self.stopping, self.failing = stopping, failing
        self.process: Optional[subprocess.Popen] = None
        self._stopped = threading.Event()
        self._supervisor: Optional[threading.Thread] = None

    @property
    def pid(self) -> int:
        """The process id of its main process; 0 while it has none."""
        return self.process.pid if self.process and self.process.poll() is None else 0

    def start(self) -> None:
        """Start it; return when it serves."""
        self._stopped.clear()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)
        self._supervisor.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        until(lambda: self.pid and self.ready(), f"{self.command[0]} is not ready")

    def stop(self) -> None:
        """End it with SIGTERM, after which it stays away."""
        self.stopping()
        self._stopped.set()
        self.send(signal.SIGTERM)
        self._wait_for_supervisor()

    def kill(self) -> None:
        """Kill all of its processes, as `systemctl kill --signal=KILL` does."""
        self._send_to_all(signal.SIGKILL)

    def suspend(self) -> None:
        """Stop all of its processes, as a program is that hangs."""
        self._send_to_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._send_to_all(signal.SIGCONT)
        self.started()

    def _send_to_all(self, number: int) -> None:
        own = [pid for pid in self.node.processes_inside() if self._owns(pid)]
        if number != signal.SIGCONT:
            self.failing()
        for pid in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _owns(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return self.command[-1].encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return False

    def close(self) -> None:
        self._stopped.set()
        self.kill()
        self._wait_for_supervisor()

    def send(self, number: int) -> None:
        """Signal its main process."""
        if self.process:
            self.process.send_signal(number)  # to a process that has ended this does nothing

    def _wait_for_supervisor(self) -> None:
        if self._supervisor:
            self._supervisor.join(LIMIT_S)
            assert not self._supervisor.is_alive(), f"{self.command[0]} does not end"

    def _supervise(self) -> None:
        while not self._stopped.is_set():
            self._run()
            self._stopped.wait(RESTART_S)

    def _run(self) -> None:
        with open(self.log, "a", encoding="utf-8") as log:
            # `ip netns exec` executes the program in its own place, so the process id is the program's.
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.node.namespace, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(MODULE_UTILS)},
                start_new_session=True,
            )
        self.process = process
        while process.poll() is None and not self.ready():
            self._stopped.wait(0.01)
        if process.poll() is None:
            self.started()
        process.wait()
        self.ended()


def path_of(program: str) -> str:
    """:raises AssertionError: it is not installed"""
    found = shutil.which(program)
    assert found, f"{program} is not installed"
    return found


def keepalived_in_fault(log: str) -> List[str]:
    """Return what the log on keepalived's console says of each instance that is in FAULT in the end."""
    in_fault = in_force.verdicts(CONSOLE_PREFIX.sub("", line) for line in log.splitlines())[0]
    return [f"{instance} is in FAULT {why}".strip() for instance, why in in_fault.items()]


class Member:
    """A balancer and a router."""

    def __init__(
        self, node: Node, folder: Path, plan: MemberPlan, auth_pass: str, changed: Callable[[str], Any]
    ) -> None:
        """:param changed: is told "died" and "revived" of the balancer"""
        self.node, self.folder, self.name, self.plan, self.changed = node, folder, node.name, plan, changed
        folder.mkdir(parents=True)
        self.hook = folder / "hook"
        self.hook.write_bytes(hook())
        self.hook.chmod(0o755)
        self.configure(plan, auth_pass)
        balancer, router = self._commands()
        log, hooks = folder / "log", (self._balancer_started, self._balancer_ended, self._balancer_stops, self._died)
        self.balancer = Program(node, balancer, log, self._listens, *hooks)
        self.router = Program(node, router, log, lambda: True, ended=self._router_ended)
        self.asking = Program(node, self._asking(), log, lambda: True)

    def configure(self, plan: MemberPlan, auth_pass: str) -> None:
        """Write the files of a plan. The programs that run do not see them before they are reloaded."""
        self.plan = plan
        write = self._write_native if plan.engine == "native" else self._write_agent
        write({**self._router_settings(), "auth_pass": auth_pass})

    def _router_settings(self) -> Dict[str, Any]:
        """Return the router's part of the plan, with a script that asks for this member's balancer only."""
        router = self.plan.router
        asks = f"{path_of('pkill')} --signal 0 --pidfile {self.folder}/balancer.pid"
        return {
            "instances": router.instances,
            "scripts": [
                {**script, "command": asks} if script["name"] == ALIVE else script for script in router.scripts
            ],
            "track_files": [
                {**file, "path": str(self.folder / ("down" if file["name"] == DOWN else file["name"]))}
                for file in router.track_files
            ],
        }

    def _write_native(self, router: Dict[str, Any]) -> None:
        balancer = self.plan.balancer
        text = rendering.haproxy(balancer.services, haproxy_answer_port=balancer.answer_port)
        self._write("haproxy.cfg", text.replace(SOCKET, str(self.folder / "admin.sock")))
        config = rendering.keepalived(
            router, self.name, self.hook, keepalived_config_path=str(self.folder / "keepalived.conf")
        )
        self._write("keepalived.conf", config)

    def _write_agent(self, router: Dict[str, Any]) -> None:
        found = agent.translate(
            {"services": self.plan.balancer.services, "answer_port": self.plan.balancer.answer_port, **router}
        )
        assert not found["faults"], found["faults"]
        for kind in ("proxy", "vrrp"):
            self._write(f"{kind}.json", json.dumps({**found[kind], "status_socket": str(self.folder / f"{kind}.sock")}))

    def _write(self, name: str, text: str) -> None:
        new = self.folder / f"{name}.new"
        new.write_text(text)
        new.rename(self.folder / name)

    def start(self) -> None:
        self.balancer.start()
        self.router.start()
        if self.plan.engine == "native":
            self.asking.start()

    def _commands(self) -> List[List[str]]:
        if self.plan.engine == "agent":
            python = [sys.executable, "-m", "_agent.cli"]
            return [[*python, kind, "--config", str(self.folder / f"{kind}.json")] for kind in ("proxy", "vrrp")]
        files = {"pid": "keepalived.pid", "vrrp_pid": "vrrp.pid", "use-file": "keepalived.conf"}
        options = [f"--{option}={self.folder / file}" for option, file in files.items()]
        return [
            [path_of("haproxy"), "-W", "-db", "-f", str(self.folder / "haproxy.cfg")],
            [path_of("keepalived"), "--vrrp", "--dont-fork", "--log-console", *options],
        ]

    def _asking(self) -> List[str]:
        """Return what asks haproxy whether it answers; the agent asks itself."""
        questions = answers.questions("native", answers.of_balancer(self.plan.balancer.answer_port))
        words = [json.dumps({**each, "file": str(self.folder / each["name"])}) for each in questions]
        return [sys.executable, "-IS", str(self.hook), "answers", str(self.folder / "keepalived.conf"), *words]

    def _listens(self) -> bool:
        with inside(self.node.namespace), socket.socket() as probe:
            probe.settimeout(0.2)
            return probe.connect_ex((f"192.0.2.{self.node.number}", SERVICE_PORT)) == 0

    def _balancer_started(self) -> None:
        (self.folder / "balancer.pid").write_text(f"{self.balancer.pid}\n")
        self._set_down(False)
        self.changed("revived")

    def _balancer_ended(self) -> None:
        self._set_down(True)
        self._died()

    def _router_ended(self) -> None:
        """keepalived's unit resigns for it; the agent adopts its addresses when it is back."""
        if self.plan.engine == "native":
            with open(self.folder / "log", "a", encoding="utf-8") as log:
                inside_it = ["ip", "netns", "exec", self.node.namespace]
                will = [str(self.hook), "ended", str(self.folder / "keepalived.conf")]
                subprocess.run([*inside_it, *will], check=False, stdout=log, stderr=log)
            for name in ("keepalived.pid", "vrrp.pid"):  # or the next one takes a child for another keepalived, which
                (self.folder / name).unlink(missing_ok=True)  # was killed, and which systemd would have reaped by now

    def _died(self) -> None:
        self.changed("died")

    def _balancer_stops(self) -> None:
        """Have the router give the VIP up first."""
        self._set_down(True)
        threading.Event().wait(STOP_PAUSE_S)

    def _set_down(self, down: bool) -> None:
        (self.folder / "down").write_text(f"{int(down)}\n")

    def reload_balancer(self) -> None:
        if self.plan.engine == "agent":
            self.balancer.send(signal.SIGHUP)
        elif self.balancer.process:
            haproxies.reload(self.balancer.process)
        self._set_down(False)

    def reload_router(self) -> None:
        self.router.send(signal.SIGHUP)

    def hindrance(self) -> str:
        """Return why this member could not take over; '' if it could."""
        if not (self.balancer.pid and self._listens()):
            return f"{self.name}: its balancer does not serve"
        if not self.router.pid:
            return f"{self.name}: its router does not run"
        waiting = self._waiting_keepalived() if self.plan.engine == "native" else self._waiting_agent()
        return f"{self.name}: {', '.join(waiting)}" if waiting else ""

    def _waiting_keepalived(self) -> List[str]:
        """Return the instances in FAULT, from the log: keepalived has no status."""
        return keepalived_in_fault((self.folder / "log").read_text(errors="replace"))

    def _waiting_agent(self) -> List[str]:
        try:
            report = status_socket.fetch(str(self.folder / "vrrp.sock"))
        except status_socket.Refused as refused:
            return [str(refused)]
        waiting = [each for each in report["instances"] if each["state"] not in ("Active", "Backup")]
        return [f"{each['name']} is in {each['state']} {each['reason']}".strip() for each in waiting]

    def close(self) -> None:
        self.asking.close()
        self.router.close()
        self.balancer.close()

    def tail(self) -> str:
        log = self.folder / "log"
        return f"{self.name}:\n{log.read_text(errors='replace')[-3000:] if log.exists() else ''}"
