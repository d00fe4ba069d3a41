# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pairs of balancers and routers, with what the roles render for a plan: haproxy and keepalived, or the agent's two
daemons."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

from ansible_collections.onprem.lb.plugins.module_utils._host.drill import ports
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair

from support import rendering
from support.netns.keepaliveds import AUTH_PASS, Cluster
from support.netns.namespaces import inside
from support.paths import MODULE_UTILS
from support.plans.pairs import member
from support.waiting import until

VIP, PORT, CONNECTIONS = "192.0.2.10", 8443, 20
SERVICES = [{"name": "web", "port": PORT, "servers": ["192.0.2.3"]}]  # the client's host
NEVER = 3600  # seconds: longer than any wait of a test


class Pair(Cluster):
    changes = {"garp_refresh": NEVER}  # of each instance: the holder announces its addresses once only

    def __exit__(self, *exception):
        """End the agent's workers, too, which have sessions of their own, and may wait for those of their clients."""
        for pid in [pid for node in self.nodes.values() for pid in node.processes_inside()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().__exit__(*exception)

    def router(self, name):
        """The router's settings of a member, whose balancer writes its down file in a folder of the test."""
        planned = self.plan.members[name].router
        instances = [{**each, **self.changes} for each in planned.instances]
        files = [{**file, "path": str(self.track_file(name, file["name"]))} for file in planned.track_files]
        checks = {"track_files": files}
        if not any(each["track_files"] for each in instances):
            checks = {"scripts": [], "track_files": []}  # some keepaliveds end at a file that no instance tracks
        return {**planned._asdict(), "instances": instances, **checks, "auth_pass": AUTH_PASS}

    def signal_balancer(self, name, number):
        """Signal every process of a balancer, as `systemctl kill` does."""
        os.killpg(self.running[f"{name}'s balancer"].pid, number)

    def forecast(self, event):
        return next(line for line in self.plan.outages if line["event"] == event)


class Native(Pair):
    """haproxy and keepalived on every member."""

    def _prepare(self, name):
        own, port = self.folder / name, self.plan.members[name].balancer.answer_port
        own.mkdir(parents=True)
        text = rendering.haproxy(SERVICES, haproxy_answer_port=port, haproxy_maxconn=CONNECTIONS)
        (own / "haproxy.cfg").write_text(text.replace("/run/haproxy/admin.sock", str(own / "admin.sock")))
        (own / "down").write_text("0\n")
        config = own / "keepalived.conf"
        text = rendering.keepalived(self.router(name), name, self.hook, keepalived_config_path=str(config))
        config.write_text(text)

    def start(self, name):
        own = self.folder / name
        command = ["ip", "netns", "exec", self.nodes[name].namespace, shutil.which("haproxy"), "-W", "-f"]
        with open(own / "haproxy.log", "w") as log:
            balancer = subprocess.Popen(
                [*command, str(own / "haproxy.cfg")], stdout=log, stderr=log, start_new_session=True
            )
        self.running[f"{name}'s balancer"] = balancer
        with inside(self.nodes[name].namespace):
            until(lambda: is_open("127.0.0.1", self.plan.members[name].balancer.answer_port), "haproxy does not answer")
        super().start(name)
        self.ask(name)


class Terse(Native):
    """Its keepaliveds announce a VIP when they take it over and when they have to, and not once more later."""

    def _prepare(self, name):
        super()._prepare(name)
        path = self.folder / name / "keepalived.conf"
        terse = "garp_master_refresh 0\n    garp_master_delay 0"
        path.write_text(path.read_text().replace(f"garp_master_refresh {NEVER}", terse))


class Agents(Pair):
    """The agent's two daemons on every member."""

    def _prepare(self, name):
        own = self.folder / name
        own.mkdir(parents=True)
        (own / "down").write_text("0\n")
        port = self.plan.members[name].balancer.answer_port
        balancer = {"services": SERVICES, "answer_port": port, "maxconn": CONNECTIONS}
        found = agent.translate({**balancer, **self.router(name)})
        assert found["faults"] == []
        for daemon in ("proxy", "vrrp"):
            own_socket = {"status_socket": str(own / f"{daemon}.sock")}
            (own / f"{daemon}.json").write_text(json.dumps({**found[daemon], **own_socket}))

    def start(self, name):
        for daemon in ("proxy", "vrrp"):
            self._start(name, daemon)

    def _start(self, name, daemon):
        own = self.folder / name
        # The check by name looks for this program.
        program = ["bash", "-c", f'exec -a onprem-lb-{daemon} "$0" "$@"', sys.executable, "-m", "_agent.cli", daemon]
        command = ["ip", "netns", "exec", self.nodes[name].namespace, *program, "--config", str(own / f"{daemon}.json")]
        environment = {**os.environ, "PYTHONPATH": str(MODULE_UTILS)}
        with open(own / f"{daemon}.log", "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        self.running[f"{name}'s balancer" if daemon == "proxy" else name] = process


ENGINES = {"native": Native, "agent": Agents}


@contextlib.contextmanager
def running(kind, folder, aborted, changes=None, stalled=lambda since, until: 0.0, **settings):
    """Run the members of a pair, and a server on the client's host that keeps its connections.

    :param kind: a name in ENGINES, or a class
    :param aborted: an event that ends every wait
    :param changes: of each instance
    :param settings: of the plan
    """
    kind = ENGINES.get(kind, kind)
    engine = "agent" if issubclass(kind, Agents) else "native"
    plan = pair.plan([member(number, engine=engine, services=SERVICES, **settings) for number in (1, 2)])
    assert plan.faults == []
    made = kind(plan, folder, aborted, stalled=stalled)
    made.changes = {**made.changes, **(changes or {})}
    with made, contextlib.ExitStack() as stack:
        with inside(made.link.client.namespace):
            made.server = stack.enter_context(socket.create_server(("", PORT), backlog=512))
        yield made


@contextlib.contextmanager
def failing(node, command):
    """Run a shell command in a namespace; what still runs at the end is ended."""
    process = subprocess.Popen(["ip", "netns", "exec", node.namespace, "sh", "-c", command], start_new_session=True)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_open(address, port, limit=1):
    with contextlib.suppress(OSError), socket.create_connection((address, port), limit):
        return True
    return False


def read_port(node):
    with inside(node.namespace):
        return ports.read("eth0", lambda command: (0, node.output(*command), ""))


def known_mac(node, address):
    return node.output("ip", "neighbour", "show", address).partition("lladdr ")[2].partition(" ")[0]
