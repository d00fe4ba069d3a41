# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same plays at the same time through HAProxy and through the agent's proxy, each at a service of its own."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

from support.ports import free_ports
from support.proxy.masters import Running
from support.proxy.proxies import LIMIT, LOCAL, listening
from support.waiting import until


class Play(NamedTuple):
    """What happens at a service: ``perform(port, servers)`` returns what it has found.

    ``servers`` are listening sockets.
    """

    perform: Callable[..., Any]
    servers: int = 1
    options: Dict[str, Any] = {}  # of each server
    service: Dict[str, Any] = {}


class Balancers:
    """What both balancers are given: in the keys of the agent's configuration."""

    def __init__(self, timeouts: Dict[str, float], retries: int = 3) -> None:
        self.timeouts, self.retries = timeouts, retries

    @contextlib.contextmanager
    def agent(self, folder, services: List[Dict[str, Any]]):
        known = {"services": services, "timeouts": self.timeouts, "retries": self.retries}
        with Running(folder, known):
            yield

    @contextlib.contextmanager
    def haproxy(self, folder, services: List[Dict[str, Any]]):
        (folder / "haproxy.cfg").write_text("\n".join(self._lines(services)) + "\n")
        process = subprocess.Popen([shutil.which("haproxy"), "-db", "-f", folder / "haproxy.cfg"])
        try:
            for service in services:
                until(lambda port=service["port"]: _listens(port))
            yield
        finally:
            process.terminate()
            process.wait(LIMIT)

    def _lines(self, services):
        yield from ("defaults", "mode tcp", f"retries {self.retries}", "option redispatch")
        for name, seconds in self.timeouts.items():
            names = ("client-fin", "server-fin") if name == "fin" else (name,)
            yield from (f"timeout {each} {int(seconds * 1000)}ms" for each in names if seconds)
        for service in services:
            yield from (f"listen {service['name']}", f"bind {LOCAL}:{service['port']}")
            yield f"balance {service.get('balance', 'roundrobin')}"
            for server in service["servers"]:
                options = [f"{key} {server[key]}" for key in ("maxconn", "weight") if key in server]
                yield " ".join(["server", server["name"], f"{LOCAL}:{server['port']}", *options])

    def perform(self, folder, plays: Dict[str, Play]) -> Dict[str, Dict[str, Any]]:
        """Return what each play has found, by the balancer."""
        found: Dict[str, Dict[str, Any]] = {}

        def run(balancer) -> None:
            of_balancer = folder / balancer.__name__
            of_balancer.mkdir(parents=True)
            found[balancer.__name__] = _perform(balancer, of_balancer, plays, ports[balancer.__name__])

        ports = {each.__name__: free_ports(len(plays)) for each in (self.agent, self.haproxy)}
        together([lambda balancer=each: run(balancer) for each in (self.agent, self.haproxy)])
        return found


def _perform(balancer, folder, plays, ports):
    found: Dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        servers = {
            name: [stack.enter_context(listening()) for _each in range(play.servers)] for name, play in plays.items()
        }
        services = [_service(port, play, servers[name]) for port, (name, play) in zip(ports, plays.items())]
        stack.enter_context(balancer(folder, services))

        def run(name: str, port: int) -> None:
            found[name] = plays[name].perform(port, *servers[name])

        together([lambda name=name, port=port: run(name, port) for name, port in zip(plays, ports)])
    return found


def _service(port, play, servers):
    described = [
        {"name": f"s{number}", "address": LOCAL, "port": server.getsockname()[1], **play.options}
        for number, server in enumerate(servers)
    ]
    return {
        "name": f"p{port}",
        "bind": LOCAL,
        "port": port,
        "check": {"type": "none"},
        "servers": described,
        **play.service,
    }


def together(calls: Sequence[Callable[[], None]]) -> None:
    """Make calls at the same time. Raise what the first of them raises."""
    with ThreadPoolExecutor(len(calls)) as pool:
        for each in [pool.submit(call) for call in calls]:
            each.result()


def _listens(port: int) -> bool:
    """Whether a program listens at a port; a connection would reach a server, which counts them."""
    wanted = f"{socket.inet_aton(LOCAL)[::-1].hex().upper()}:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(line.split()[1] == wanted and line.split()[3] == "0A" for line in table)


def everything(connection) -> bytes:
    """Return what arrives until the connection ends in any way."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while True:
            data = connection.recv(100)
            if not data:
                break
            found += data
    return found
