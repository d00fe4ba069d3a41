# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same plays at the same time through HAProxy and through the agent's proxy, each at a service of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.runtime_api import Runtime
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import linux, segments

from support import leaks
from support.netns.links import sh
from support.netns.namespaces import inside
from support.ports import free_ports
from support.proxy.masters import Running
from support.proxy.proxies import LIMIT, LOCAL, listening
from support.waiting import until

ETH_P_IP, FIN = 0x0800, 0x01
RECEIVE_BUFFER = 1 << 23  # bytes


class Service(NamedTuple):
    """A service, as a play sees it."""

    port: int
    waiting: Callable[[], int]  # how many sessions wait for a slot, as the balancer says
    capture: Any  # a Capture, if there is one


class Play(NamedTuple):
    """What happens at a service: ``perform(service, *servers)`` returns what it has found.

    ``servers`` are listening sockets.
    """

    perform: Callable[..., Any]
    servers: int = 1
    options: Dict[str, Any] = {}  # of each server
    service: Dict[str, Any] = {}


class Balancers:
    """What both balancers are given: in the keys of the agent's configuration."""

    def __init__(self, timeouts: Dict[str, float], retries: int = 3, capture: Any = None) -> None:
        self.timeouts, self.retries, self.capture = timeouts, retries, capture

    @contextlib.contextmanager
    def agent(self, folder, services: List[Dict[str, Any]]):
        known = {"services": services, "timeouts": self.timeouts, "retries": self.retries}
        with Running(folder, known) as running:

            def waiting(service: str) -> int:
                found = running.service(service)
                return sum(each["qcur"] for each in (found, *found["servers"]))

            yield waiting

    @contextlib.contextmanager
    def haproxy(self, folder, services: List[Dict[str, Any]]):
        stats = f"global\nstats socket {folder}/sock mode 600 level admin"
        (folder / "haproxy.cfg").write_text("\n".join([stats, *self._lines(services)]) + "\n")
        process = subprocess.Popen([shutil.which("haproxy"), "-db", "-f", folder / "haproxy.cfg"])
        try:
            for service in services:
                until(lambda port=service["port"]: _listens(port))
            runtime = Runtime(str(folder / "sock"))
            yield lambda service: _qcur(runtime.ask("show stat"), service)
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
            found[balancer.__name__] = _perform(balancer, of_balancer, plays, ports[balancer.__name__], self.capture)

        ports = {each.__name__: free_ports(len(plays)) for each in (self.agent, self.haproxy)}
        together([lambda balancer=each: run(balancer) for each in (self.agent, self.haproxy)])
        return found


def _perform(balancer, folder, plays, ports, capture):
    found: Dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        servers = {
            name: [stack.enter_context(listening()) for _each in range(play.servers)] for name, play in plays.items()
        }
        services = [_service(port, play, servers[name]) for port, (name, play) in zip(ports, plays.items())]
        waiting = stack.enter_context(balancer(folder, services))

        def run(name: str, port: int) -> None:
            service = Service(port, lambda: waiting(f"p{port}"), capture)
            found[name] = plays[name].perform(service, *servers[name])

        together([lambda name=name, port=port: run(name, port) for name, port in zip(plays, ports)])
    return found


def _qcur(answer: str, service: str) -> int:
    """Return the sum of a service's queue and its servers' in the answer to ``show stat``."""
    head, *rows = answer.splitlines()
    stats = [dict(zip(head.lstrip("# ").split(","), row.split(","))) for row in rows]
    return sum(int(row["qcur"] or 0) for row in stats if row["pxname"] == service)


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


@contextlib.contextmanager
def own_network():
    """Be in a network namespace of its own, with what is started meanwhile."""
    name = f"{leaks.prefix()}-{os.getpid()}-plays"
    sh("ip", "netns", "add", name)
    try:
        sh("ip", "-n", name, "link", "set", "lo", "up")
        with inside(name):
            yield
    finally:
        sh("ip", "netns", "del", name)


class Capture:
    """What passes ``lo`` of this network from now on, in its order."""

    def __init__(self) -> None:
        self._heard: List[segments.Segment] = []
        self._one_at_a_time = threading.Lock()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
        self._socket.setsockopt(socket.SOL_SOCKET, linux.SO_RCVBUFFORCE, RECEIVE_BUFFER)
        self._socket.bind(("lo", ETH_P_IP))
        self._socket.setblocking(False)

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_fault: Any) -> None:
        self._socket.close()

    def heard(self) -> List[segments.Segment]:
        """Return all so far: also what has caused anything that the caller knows."""
        with self._one_at_a_time, contextlib.suppress(BlockingIOError):
            while True:
                segment = segments.read(self._socket.recv(256))
                if segment:
                    self._heard.append(segment)
        return list(self._heard)

    def attempts(self, port: int, before_end_of: Tuple[int, int] = (0, 0)) -> List[segments.Ends]:
        """Return the connections that were attempted, each once, however often TCP has repeated its SYN.

        :param before_end_of: from which port to which the end must come after them; without one it may come any time
        """
        heard = self.heard()
        ends = [at for at, each in enumerate(heard) if _ends(each, before_end_of)]
        found = [each.ends for each in heard[: ends[0] if ends else None] if _opens(each, port)]
        return list(dict.fromkeys(found))


def _ends(segment: segments.Segment, ports: Tuple[int, int]) -> bool:
    is_last = segment.flags & (FIN | segments.RST)
    return bool(is_last) and (segment.ends.source_port, segment.ends.destination_port) == ports


def _opens(segment: segments.Segment, port: int) -> bool:
    return segment.flags & (segments.SYN | segments.ACK) == segments.SYN and segment.ends.destination_port == port


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
